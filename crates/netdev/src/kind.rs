//! The row of a port kind, and `open`.
//!
//! A new kind is a file under `kinds/` with its `ROW`, named in `kinds.rs`. The spec text, its
//! errors and help texts are derived from the row.

use crate::error::PortError;
use crate::port::Port;
use crate::spec::PortSpec;

/// One kind of port.
#[derive(Debug)]
pub struct KindRow {
    /// Its word in the spec text.
    pub word: &'static str,
    /// The thing that the name stands for; empty when a name is not needed.
    pub name_hint: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
    /// The options.
    pub options: &'static [OptionRow],
    /// The thing that a port of the kind needs for itself alone: two ports that name the same
    /// cannot both be open. `None` where any number of ports may be the same.
    pub(crate) exclusive: fn(&PortSpec) -> Option<String>,
    /// Opens a port of the kind.
    pub(crate) open: fn(&PortSpec) -> Result<Port, PortError>,
}

/// One option of a kind.
#[derive(Debug)]
pub struct OptionRow {
    /// The name.
    pub name: &'static str,
    /// The values in short, default first.
    pub values: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
}

/// A row of an option.
pub(crate) const fn option(
    name: &'static str,
    values: &'static str,
    help: &'static str,
) -> OptionRow {
    OptionRow { name, values, help }
}

/// [`KindRow::exclusive`] of a kind whose ports need the device of their name.
pub(crate) fn by_name(spec: &PortSpec) -> Option<String> {
    Some(spec.name().to_owned())
}

/// [`KindRow::exclusive`] of a kind of which any number of ports may be the same.
pub(crate) fn shared(_: &PortSpec) -> Option<String> {
    None
}

/// The option by which a port has more than one queue.
pub(crate) const QUEUES: &str = "queues";

/// The most queues of one port.
pub const QUEUES_MAX: u32 = 64;

/// Opens the port that `spec` names, with one queue.
///
/// # Errors
/// Those of the kind; every error names what was tried. [`PortError::Spec`] for a port of several
/// queues, which are for those who use them all: [`open_queues`].
pub fn open(spec: &PortSpec) -> Result<Port, PortError> {
    if spec.queues()? > 1 {
        return Err(spec.bad_value(QUEUES, "1 here: only switch and generator use several").into());
    }
    open_queues(spec)
}

/// Opens the port that `spec` names, with all the queues that it asks for.
///
/// # Errors
/// Those of the kind.
pub fn open_queues(spec: &PortSpec) -> Result<Port, PortError> {
    (spec.kind().open)(spec)
}

/// Parses `text` and opens the port.
///
/// # Errors
/// [`PortError::Spec`] for a wrong text, else as [`open`].
pub fn open_text(text: &str) -> Result<Port, PortError> {
    open(&text.parse()?)
}
