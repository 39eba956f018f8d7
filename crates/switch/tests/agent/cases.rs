//! Every case of the workspace through the wire: commands over an OpenFlow connection to a running
//! switch, frames at memory ports.
//!
//! The same files run on the datapaths by themselves, in virtual time; here time is real, so what
//! waits is left out, and so is what a controller or a wire cannot do to a port. A case that cannot
//! be played must say why, it must never pass unseen.

mod fuzz;
mod play;
mod talk;
mod wire;
mod words;

use std::path::Path;
use std::time::{Duration, Instant};

use testkit::cases::{Case, Step, load_dir, parse};

use play::{Player, obstacle};
use talk::Talk;

/// A meter of one packet a second has let another one through by then.
const TOO_LATE: Duration = Duration::from_millis(500);

/// Plays the cases of a folder that can be played over a connection.
fn run_all(area: &str, at_least: usize) {
    let cases = load_dir(&testkit::cases_dir(area)).unwrap_or_else(|error| panic!("{error}"));
    let playable: Vec<&Case> = cases.iter().filter(|case| obstacle(case).is_none()).collect();
    println!("{area}: {} of {} cases can be played", playable.len(), cases.len());
    assert!(playable.len() >= at_least, "{area}: only {} cases", playable.len());
    let failures: Vec<String> = playable.iter().filter_map(|case| play(case).err()).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Times that a case with a meter is played when the machine is too slow for the meter's rate.
const ATTEMPTS: usize = 20;

/// Plays a case. The failure of one with a meter says nothing when the machine was too slow for the
/// meter's rate; then it is played again.
fn play(case: &Case) -> Result<(), String> {
    let has_meter = case.steps.iter().any(|(_, step)| matches!(step, Step::Meter(_)));
    retry_slow(has_meter, || {
        let player = Player::start();
        let began = Instant::now();
        (player.play(case), began.elapsed())
    })
}

/// Repeats a failed attempt that took too long, where it depends on time, up to [`ATTEMPTS`] times.
fn retry_slow(
    depends_on_time: bool,
    mut attempt: impl FnMut() -> (Result<(), String>, Duration),
) -> Result<(), String> {
    let mut slow = 0;
    loop {
        let (Err(failure), took) = attempt() else { return Ok(()) };
        slow += 1;
        if !depends_on_time || took <= TOO_LATE {
            return Err(failure);
        }
        if slow == ATTEMPTS {
            return Err(format!("{failure} ({ATTEMPTS} times, each slower than {TOO_LATE:?})"));
        }
    }
}

#[test]
fn a_case_that_fails_late_is_not_played_for_ever() {
    let late = TOO_LATE * 2;
    let count = |depends_on_time, took, ends_well_after: usize| {
        let mut played = 0;
        let result = retry_slow(depends_on_time, || {
            played += 1;
            (if played > ends_well_after { Ok(()) } else { Err("x".to_owned()) }, took)
        });
        (played, result.is_ok())
    };
    assert_eq!(count(true, late, usize::MAX), (ATTEMPTS, false));
    assert_eq!(count(true, late, 3), (4, true));
    assert_eq!(count(true, TOO_LATE / 2, usize::MAX), (1, false), "fails whatever the rate");
    assert_eq!(count(false, late, usize::MAX), (1, false), "has no meter");
}

#[test]
fn the_cases_of_the_pipeline_run_through_the_wire() {
    run_all("pipeline", 170);
}

#[test]
fn the_actions_of_os_ken_run_through_the_wire() {
    run_all("os-ken/action", 226);
}

#[test]
fn the_matches_of_os_ken_run_through_the_wire() {
    run_all("os-ken/match", 476);
}

#[test]
fn the_cases_of_controllers_run() {
    let cases = load_dir(&testkit::cases_dir("channel")).unwrap_or_else(|error| panic!("{error}"));
    assert!(cases.len() >= 20, "only {} cases", cases.len());
    let failures: Vec<String> =
        cases.iter().filter_map(|case| Talk::start().play(case).err()).collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn what_is_otherwise_than_the_case_says_is_seen() {
    let frame = "02000000000202000000000188b500000000";
    for (steps, failure) in [
        (format!("in: 1 {frame}\nout: 3 {frame}\n"), "nothing left by port 3"),
        (format!("in: 1 {frame}\nout: 2 {frame}00ff\n"), "the frame is"),
        (format!("in: 1 {frame}\n"), "nobody expected on port 2"),
        (format!("in: 1 {frame}\nout: 2 {frame}\ndrop: no_match\n"), "drop_no_match is 0"),
        ("error: OFPFMFC_OVERLAP\n".into(), "nothing was refused"),
        ("flow: actions=group:1\n".into(), "refused with OFPBAC_BAD_OUT_GROUP"),
        ("counter: table 0 active = 2\n".into(), "table 0 active is 1, expected 2"),
        ("removed: idle\n".into(), "nothing was removed"),
    ] {
        let text = format!("case: a\nflow: in_port=1,actions=output:2\n{steps}");
        let cases = parse(Path::new("a.case"), &text).unwrap();
        let found = Player::start().patience(Duration::from_millis(300)).play(&cases[0]);
        let found = found.expect_err(&steps);
        assert!(found.contains(failure), "{found}");
    }
}
