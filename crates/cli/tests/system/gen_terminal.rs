//! `weir gen` on a terminal of 80 columns and 24 rows: the live page, the line below it,
//! completion, history, and a terminal that is left as it was.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

/// A console on a terminal of its own.
struct OnTerminal {
    child: Child,
    keyboard: File,
    terminal: File,
    /// The terminal's modes before.
    modes: LocalModes,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// Bytes of it up to the end of what was waited for.
    waited: usize,
    /// Lines that were typed.
    typed: usize,
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OnTerminal {
    fn start(variables: &[(&str, &str)]) -> Self {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let terminal = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        let child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["gen", "--port", "null:a", "--port", "null:b", "--line-rate", "10M"])
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal.try_clone().unwrap())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let mut screen = keyboard.try_clone().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..len].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, keyboard, terminal, modes, output, seen: String::new(), waited: 0, typed: 0 }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `is_there` holds of all that has been written.
    fn wait_until(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_there(&self.seen) {
            if Instant::now() >= deadline {
                let last = self.seen.len().saturating_sub(2_000);
                panic!("no {what:?} in {:?}", self.seen.get(last..));
            }
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(100)) {
                self.seen += &String::from_utf8_lossy(&bytes);
            }
        }
    }

    /// Waits until `text` has been written behind what was waited for before.
    fn wait_for(&mut self, text: &str) {
        let from = self.waited;
        self.wait_until(text, |seen| seen[from..].contains(text));
        self.waited += self.seen[from..].find(text).unwrap() + text.len();
    }

    /// Types a line as soon as the editor takes one: it then switches bracketed paste on.
    fn line(&mut self, keys: &str) {
        let typed = self.typed;
        self.wait_until("a prompt", |seen| seen.matches("\x1b[?2004h").count() > typed);
        self.typed += 1;
        self.press(keys);
    }
}

#[test]
fn a_live_page_stands_above_the_line_that_is_edited() {
    let mut console = OnTerminal::start(&[]);
    // The three lowest rows are the line editor's.
    console.wait_for("\x1b[22;24r");
    console.wait_for("\x1b[1mPorts 0-1 of 2  <Main Page>");
    // Completed by the tabulator.
    console.line("set all rat\t80\r");
    console.wait_for("Forever /80%");
    console.line("page ra\t\r");
    console.wait_for("<Range Page>");
    console.wait_for("192.168.1.254");
    console.line("page stats\r");
    console.wait_for("<Stats Page>");
    // The last line but one, from the history.
    console.line("\x1b[A\x1b[A\r");
    console.wait_for("<Range Page>");
    console.line("set all rat 7\r");
    console.wait_for("error: column 9: \"rat\" cannot stand here; did you mean rate?");
    // The help is longer than the rows below the page, and has the terminal until the next line.
    console.line("help\r");
    console.wait_for("\x1b[r");
    console.wait_for("the page comes back with the next line");
    console.line("\r");
    console.wait_for("\x1b[22;24r");
    // So are all words that may follow; one tabulator lists them.
    console.line("set all \t");
    console.wait_for("\x1b[r");
    console.wait_for("late_after");
    console.press("rate 7\r");
    console.wait_for("\x1b[22;24r");
    console.line("page main\r");
    console.wait_for("Forever /7%");
    console.line("quit\r");
    console.wait_for("\x1b[r");
    console.wait_for("<Stats Page>");
    assert_eq!(console.child.wait().unwrap().code(), Some(0));
    assert_eq!(tcgetattr(&console.terminal).unwrap().local_modes, console.modes);
}

#[test]
fn ctrl_c_stops_the_ports_with_a_report_and_then_ends() {
    let mut console = OnTerminal::start(&[]);
    console.line("start all\r");
    console.wait_for("TL Single:0");
    console.line("\x03");
    console.wait_for("<Stats Page>");
    console.wait_for("the page comes back");
    console.line("\x03");
    console.wait_for("<Stats Page>");
    assert_eq!(console.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_the_console_while_it_waits_for_a_key() {
    let mut console = OnTerminal::start(&[]);
    console.wait_for("weir gen> ");
    let kill = format!("kill -TERM {}", console.child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    console.wait_for("<Stats Page>");
    assert_eq!(console.child.wait().unwrap().code(), Some(130));
    assert_eq!(tcgetattr(&console.terminal).unwrap().local_modes, console.modes);
}

#[test]
fn no_colour_and_no_cursor_where_they_are_not_wanted() {
    let mut console = OnTerminal::start(&[("NO_COLOR", "1")]);
    console.wait_for("\x1b[1;1HPorts 0-1 of 2  <Main Page>");
    drop(console);
    let mut console = OnTerminal::start(&[("TERM", "dumb")]);
    console.wait_for("weir gen> ");
    console.press("page\n");
    console.wait_for("Ports 0-1 of 2  <Main Page>");
    assert!(!console.seen.contains('\x1b'), "{:?}", console.seen);
    console.press("quit\n");
    console.wait_for("<Stats Page>");
    assert_eq!(console.child.wait().unwrap().code(), Some(0));
}
