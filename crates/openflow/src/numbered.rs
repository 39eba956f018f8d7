//! One macro for the numbered constants of the protocol: an enum that keeps unknown numbers.
//!
//! A decoder must not lose a number that it does not know (a later version may define it), so every
//! such enum has an `Unknown` arm and converts both ways without loss.

/// Defines an enum over an integer with the specification's numbers and the text that tools print.
macro_rules! numbered {
    ($(#[$meta:meta])* pub enum $name:ident : $int:ty {
        $($(#[$vmeta:meta])* $variant:ident = $number:literal => $text:literal
            $(since $since:ident)?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)+
            /// A number that this version of the table does not know.
            Unknown($int),
        }

        impl $name {
            /// Every known value, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The number on the wire.
            #[must_use]
            pub fn number(self) -> $int {
                match self {
                    $(Self::$variant => $number,)+
                    Self::Unknown(number) => number,
                }
            }

            /// The value for a number on the wire; never fails.
            #[must_use]
            pub fn from_number(number: $int) -> Self {
                match number {
                    $($number => Self::$variant,)+
                    other => Self::Unknown(other),
                }
            }

            /// The value that a version has for a number; an unknown one where it has none.
            #[must_use]
            pub fn from_number_in(version: $crate::version::Version, number: $int) -> Self {
                let value = Self::from_number(number);
                if value.is_in(version) { value } else { Self::Unknown(number) }
            }

            /// Whether a version has the value; none has an unknown one.
            #[must_use]
            pub const fn is_in(self, version: $crate::version::Version) -> bool {
                // Each value is in all versions, or in those since one.
                match self {
                    $(Self::$variant => {
                        const SINCE: &[$crate::version::Version] = &[
                            $crate::version::Version::OLDEST,
                            $($crate::version::Version::$since,)?
                        ];
                        SINCE[SINCE.len() - 1] as u8 <= version as u8
                    })+
                    Self::Unknown(_) => false,
                }
            }

            /// The values that a version has, as the bits of a mask.
            #[must_use]
            pub fn mask(version: $crate::version::Version) -> u32 {
                let bit = |value: &Self| 1_u32.checked_shl(value.number().into());
                let known = Self::ALL.iter().filter(|value| value.is_in(version));
                known.filter_map(bit).fold(0, |mask, bit| mask | bit)
            }

            /// The text that `ovs-ofctl` prints and takes.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(_) => "unknown",
                }
            }
        }
    };
}

pub(crate) use numbered;
