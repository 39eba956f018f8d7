//! The terminal of `weir ctl top`: keys come one by one, the page has a screen of its own, and both
//! are as before when it ends, however it ends.

use std::io::{Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::SortKey;
use crate::failure::Failure;

/// The other screen, without a cursor; and back. The sequences are xterm's.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A key that was pressed.
pub(super) enum Key {
    Quit,
    Sort(SortKey),
    Other,
}

/// The terminal, until it is dropped.
pub(super) struct Screen {
    /// The modes before; none where the input is no terminal.
    modes: Option<Termios>,
    keys: UnboundedReceiver<u8>,
}

impl Screen {
    /// Takes the terminal. Where the input is another thing there are no keys.
    pub(super) fn begin() -> Result<Self, Failure> {
        let (pressed, keys) = unbounded_channel();
        let modes = tcgetattr(std::io::stdin()).ok();
        let screen = Self { modes, keys };
        if let Some(modes) = &screen.modes {
            let mut raw = modes.clone();
            // Ctrl-C stays a signal; Ctrl-Z would leave a shell with this screen.
            raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            raw.special_codes[SpecialCodeIndex::VSUSP] = 0;
            set(&raw)?;
            let read = move || {
                let bytes = std::io::stdin().lock().bytes().map_while(Result::ok);
                // Nobody waits for keys after the end.
                bytes.map(|byte| pressed.send(byte)).take_while(Result::is_ok).for_each(drop);
            };
            let thread = std::thread::Builder::new().name("keys".to_owned()).spawn(read);
            thread.map_err(|error| Failure::refused(error.to_string()))?;
        }
        write(ENTER);
        Ok(screen)
    }

    /// The next key.
    pub(super) async fn key(&mut self) -> Key {
        match self.keys.recv().await {
            Some(b'q' | b'Q') => Key::Quit,
            Some(b'p') => Key::Sort(SortKey::Packets),
            Some(b'b') => Key::Sort(SortKey::Bytes),
            Some(b'd') => Key::Sort(SortKey::Drops),
            Some(b'n') => Key::Sort(SortKey::Number),
            Some(_) => Key::Other,
            // The input has ended: signals end it.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
        if let Some(modes) = &self.modes {
            // A terminal that is gone has no modes.
            drop(set(modes));
        }
    }
}

fn set(modes: &Termios) -> Result<(), Failure> {
    tcsetattr(std::io::stdin(), OptionalActions::Now, modes)
        .map_err(|error| Failure::refused(format!("the terminal: {error}")))
}

/// A terminal that is gone shows as a failure of the page.
fn write(sequence: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(sequence.as_bytes()).and_then(|()| out.flush());
}
