//! Tables and paragraphs that fit a terminal: the one printer of all programs.
//!
//! ```
//! use terminal::Table;
//!
//! let mut table = Table::new(["port", "packets", "Mpps"]);
//! table.row(["0 eth1", "1000000", "0.3378"]);
//! assert_eq!(table.plain(80), ["port    packets    Mpps", "0 eth1  1000000  0.3378"]);
//! ```
#![forbid(unsafe_code)]

mod table;
mod wrap;

pub use table::Table;
pub use wrap::wrap;

/// Columns of a text that no terminal shows.
const PIPE: usize = 180;

/// Columns and rows of the terminal that standard output is; none where it is no terminal.
#[must_use]
pub fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then(|| (size.ws_col.into(), size.ws_row.into()))
}

/// Columns of standard output: those of the terminal, or 180.
#[must_use]
pub fn width() -> usize {
    size().map_or(PIPE, |(width, _)| width)
}
