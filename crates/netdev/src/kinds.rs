//! The kinds of port: a file each, and its line here.

/// Declares the file of each kind and the table of their rows.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        $(pub mod $kind;)+

        /// The rows of all kinds, in the order of help texts.
        pub const KINDS: &[crate::kind::KindRow] = &[$($kind::ROW),+];
    };
}

kinds! {
    af_packet,
    tap,
    memory,
    pcap,
    null,
    dpdk,
}
