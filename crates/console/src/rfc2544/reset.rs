//! The reset of a device in the middle of a trial (RFC 6201), by a command or by the operator.
//!
//! The command runs beside the trial, in a shell. One that is still running when the trial has
//! ended is waited for, so that the next trial finds the device whole; a signal ends it. It must
//! never let the trial wait for the command.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use generator::method::on_ports::PortTrialError;
use generator::method::reset::reset;
use generator::method::{Measurer, MethodError, TrialInput, TrialRow};
use serde_json::json;

use super::{MethodAnswer, ends, limits};
use crate::stderr::print_line;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The outcome of a reset.
type Caused = Result<(), String>;

/// Measures one reset.
pub(super) fn measure<M: Measurer<Error = PortTrialError>>(
    measurer: &mut M,
    input: TrialInput,
    command: Option<&str>,
    stop: &AtomicBool,
) -> Result<MethodAnswer, MethodError<PortTrialError>> {
    let is_over = AtomicBool::new(false);
    let wait = Duration::try_from_secs_f64(input.duration_s / 4.0).unwrap_or(Duration::MAX);
    let has_ended = || stop.load(Ordering::Relaxed) || is_over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let mut causing = None;
        let found = reset(measurer, input, |_| {
            causing = Some(scope.spawn(|| cause(command, wait, &has_ended, stop)));
        });
        is_over.store(true, Ordering::Relaxed);
        let caused = causing
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let found = found?;
        if let Some(Err(why)) = caused {
            return Err(MethodError::Trial(PortTrialError::Port(why)));
        }
        let (stamps, lost) =
            (found.by_time_stamps_s.scaled(1e3), found.by_frame_loss_s.scaled(1e3));
        let text = format!(
            "reset {:.3} ms {} by time stamps, {:.3} ms {} by frame loss{}",
            stamps.value,
            ends(&stamps, 3),
            lost.value,
            ends(&lost, 3),
            if found.is_finished { "" } else { "; not over at the end of the trial" },
        ) + &unsent_text(&found.trial);
        let text = text + limits(false, found.is_tester_limited);
        Ok(MethodAnswer { text, value: json!(found) })
    })
}

/// Frames that the tester did not send, and the reason.
fn unsent_text(trial: &TrialRow) -> String {
    let count = |count: u64, why| match count {
        0 => String::new(),
        count => format!("; {count} frames not sent: {why}"),
    };
    let by_tester = trial.unsent.saturating_sub(trial.unsent_down);
    count(trial.unsent_down, "the link of the sending port was down")
        + &count(by_tester, "its link was up and it took none, which is no part of the reset")
}

/// Waits, and then resets the device or asks the operator to.
fn cause(
    command: Option<&str>,
    wait: Duration,
    has_ended: &(dyn Fn() -> bool + Sync),
    stop: &AtomicBool,
) -> Caused {
    let begun = std::time::Instant::now();
    while begun.elapsed() < wait {
        if has_ended() {
            return Err("the trial ended before the reset".to_owned());
        }
        std::thread::sleep(LOOK.min(wait));
    }
    let Some(command) = command else {
        print_line(format_args!("reset the device now"));
        return Ok(());
    };
    // The output would mix with the results.
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    let failed = |why: &dyn std::fmt::Display| format!("--reset-command {command:?}: {why}");
    let child = shell.spawn().map_err(|error| failed(&error))?;
    ended(child, stop).map_err(|why| failed(&why))
}

/// Waits for the command; a signal ends it.
fn ended(mut child: Child, stop: &AtomicBool) -> Caused {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(status.to_string()),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                // It may have ended by itself in the meantime.
                let _ = child.kill();
                let _ = child.wait();
                return Err("interrupted".to_owned());
            }
            Ok(None) => std::thread::sleep(LOOK),
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use generator::method::TrialRow;

    use super::{cause, ended, unsent_text};

    #[test]
    fn unsent_frames_are_reported_with_the_reason() {
        let trial = |unsent, unsent_down| TrialRow {
            rate_pps: 1.0,
            duration_s: 1.0,
            sent: 9,
            in_time: 0,
            unsent,
            unsent_down,
            sent_late: 0,
            forwarding_rate_pps: 0.0,
        };
        assert_eq!(unsent_text(&trial(0, 0)), "");
        let both = unsent_text(&trial(5, 3));
        assert!(both.contains("; 3 frames not sent: the link"), "{both}");
        assert!(both.contains("; 2 frames not sent: its link was up"), "{both}");
    }

    #[test]
    fn a_failing_command_is_an_error_and_a_hanging_one_is_ended() {
        let (go_on, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        let run = |command| cause(Some(command), Duration::ZERO, &|| false, &go_on);
        assert_eq!(run("true"), Ok(()));
        assert!(run("exit 7").unwrap_err().contains('7'));
        let hanging = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(ended(hanging, &stop), Err("interrupted".to_owned()));
        let late = cause(None, Duration::from_secs(600), &|| true, &go_on);
        assert!(late.unwrap_err().contains("before the reset"));
    }
}
