//! How an action's argument is written in `ovs-ofctl`'s syntax.

use super::Action;
use crate::text::TextError;
use crate::text::lex::Piece;

/// The form of an argument in text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Syntax {
    /// Behind a colon, as its type is written: `set_queue:5`, `mod_dl_src:00:11:22:33:44:55`.
    /// Nothing where there is no argument.
    Value,
    /// In parentheses: `set_mpls_ttl(5)`.
    Parenthesized,
    /// Behind a colon, in four hexadecimal digits: `push_vlan:0x8100`.
    EthType,
    /// Of its own.
    Own {
        /// Reads what stands behind the name.
        parse: fn(Piece<'_>) -> Result<Action, TextError>,
        /// Writes the whole action, of whose arguments these are the words.
        format: fn(&[String]) -> String,
    },
}
