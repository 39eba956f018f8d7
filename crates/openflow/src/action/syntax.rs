//! Text of an action's or instruction's arguments in `ovs-ofctl`'s syntax.

use crate::text::TextError;
use crate::text::lex::Piece;

/// The form of arguments in text.
#[derive(Debug)]
pub(crate) enum Syntax<T> {
    /// After a colon, as its type is written: `set_queue:5`, `mod_dl_src:00:11:22:33:44:55`.
    /// Nothing where there is no argument.
    Value,
    /// In parentheses: `set_mpls_ttl(5)`.
    Parenthesized,
    /// After a colon, in four hexadecimal digits: `push_vlan:0x8100`.
    EthType,
    /// The argument alone; read in parentheses too, after the name.
    Nameless,
    /// A form of its own.
    Own {
        /// Reads all after the name.
        parse: fn(Piece<'_>) -> Result<T, TextError>,
        /// Writes the whole, of whose arguments these are the words.
        format: fn(&[String]) -> String,
    },
}

// Derived, these would ask for `T: Copy`.
impl<T> Clone for Syntax<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Syntax<T> {}
