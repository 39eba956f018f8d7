//! Mistakes in a spec text, each with what is allowed in its place.

/// The mistake in a spec text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No colon after the kind.
    #[error(
        "port {text:?} has no kind; write kind:name, for example af_packet:eth0 (kinds: {kinds})"
    )]
    NoKind {
        /// The text as given.
        text: String,
        /// The kinds there are.
        kinds: String,
    },
    /// The text would break the lines of a list, or the terminal.
    #[error("port {text:?} has a line end or another control character; name it without")]
    Control {
        /// The text as given.
        text: String,
    },
    /// The kind is not in the table.
    #[error("unknown port kind {kind:?}; kinds are: {kinds}")]
    UnknownKind {
        /// The word in place of the kind.
        kind: String,
        /// The kinds there are.
        kinds: String,
    },
    /// The kind needs a name.
    #[error("port kind {kind} needs a name: {kind}:{hint}")]
    NoName {
        /// The kind.
        kind: &'static str,
        /// The thing that the name stands for.
        hint: &'static str,
    },
    /// No device can have the name.
    #[error(
        "port {kind}:{name}: no device can have this name; use 1 to 15 bytes without slash, colon \
         and blank"
    )]
    NoDevice {
        /// The kind.
        kind: &'static str,
        /// The name as given.
        name: String,
    },
    /// The kind has no such option.
    #[error("port kind {kind} has no option {option:?}; {allowed}")]
    UnknownOption {
        /// The kind.
        kind: &'static str,
        /// The word in place of the option.
        option: String,
        /// The options there are.
        allowed: String,
    },
    /// The value does not fit the option.
    #[error("option {option}={value:?} of port kind {kind}: use {allowed}")]
    BadValue {
        /// The kind.
        kind: &'static str,
        /// The option.
        option: String,
        /// The value as given.
        value: String,
        /// The values that fit.
        allowed: String,
    },
}
