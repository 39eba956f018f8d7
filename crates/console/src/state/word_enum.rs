//! Enums whose variants are words of the console: one list for variants, words and order.

/// Declares such an enum, with `ALL`, `word` and `of_word`.
macro_rules! word_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub(crate) const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// Its word.
            pub(crate) fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one with this word.
            pub(crate) fn of_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.word() == word)
            }
        }
    };
}

pub(crate) use word_enum;
