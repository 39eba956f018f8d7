//! Version negotiation by the hello exchange (clause 6.3.1): a pure function.
//!
//! It must never guess: where there is no common version the result is an error with a text for
//! the peer.

use openflow::message::Hello;
use openflow::{Version, VersionBitmap};

/// The body of our hello. It has a bitmap unless we speak 1.0 alone, which has no hello elements.
pub(crate) fn hello(ours: VersionBitmap) -> Hello {
    let has_bitmap = ours.versions().any(Version::has_version_bitmap);
    Hello { versions: has_bitmap.then_some(ours) }
}

/// The highest version of a set; the set of a connection is never empty.
pub(crate) fn highest(ours: VersionBitmap) -> Option<Version> {
    ours.highest_common(ours)
}

/// The version in the header of an answer to a peer without an agreed version: the highest of ours
/// up to the peer's number, else our lowest.
pub(crate) fn answer_version(ours: VersionBitmap, peer: u8) -> Version {
    let reached = Version::ALL
        .iter()
        .rev()
        .copied()
        .find(|version| ours.contains(version.number()) && version.number() <= peer);
    let lowest = Version::ALL.iter().copied().find(|version| ours.contains(version.number()));
    reached.or(lowest).unwrap_or(Version::OLDEST)
}

/// The version of the connection.
///
/// # Errors
/// A text for the peer when there is none.
pub(crate) fn agree(
    ours: VersionBitmap,
    peer: u8,
    theirs: Option<VersionBitmap>,
) -> Result<Version, String> {
    let refuse =
        |offer: String| format!("Weir speaks {} here, the peer offers {offer}", names(ours));
    if let Some(theirs) = theirs {
        return ours.highest_common(theirs).ok_or_else(|| refuse(numbers(theirs)));
    }
    let own = highest(ours).map_or(0, Version::number);
    let smaller = own.min(peer);
    match Version::from_number(smaller) {
        Some(version) if ours.contains(smaller) => Ok(version),
        Some(_) | None => Err(refuse(format!("version {} (wire {peer:#04x})", known(peer)))),
    }
}

fn names(set: VersionBitmap) -> String {
    let names: Vec<_> = Version::ALL
        .iter()
        .filter(|version| set.contains(version.number()))
        .map(|version| version.name())
        .collect();
    names.join(", ")
}

fn numbers(set: VersionBitmap) -> String {
    let numbers: Vec<_> =
        (0..32).filter(|&number| set.contains(number)).map(|n| format!("{n:#04x}")).collect();
    if numbers.is_empty() {
        "no version at all".into()
    } else {
        format!("the wire versions {}", numbers.join(", "))
    }
}

fn known(number: u8) -> &'static str {
    Version::from_number(number).map_or("unknown", |version| version.row().release)
}

#[cfg(test)]
mod tests {
    use super::{agree, answer_version, hello};
    use openflow::{Version, VersionBitmap};

    const BOTH: VersionBitmap = VersionBitmap(1 << 1 | 1 << 4);

    #[test]
    fn two_bitmaps_give_the_highest_common_version() {
        assert_eq!(agree(BOTH, 6, Some(VersionBitmap(0b111_0010))), Ok(Version::V1_3));
        assert_eq!(agree(BOTH, 6, Some(VersionBitmap(0b110_0010))), Ok(Version::V1_0));
        let text = agree(BOTH, 6, Some(VersionBitmap(0b110_0000))).unwrap_err();
        assert!(text.contains("OpenFlow10, OpenFlow13") && text.contains("0x05, 0x06"), "{text}");
        let text = agree(BOTH, 4, Some(VersionBitmap(0))).unwrap_err();
        assert!(text.contains("no version at all"));
    }

    #[test]
    fn without_a_bitmap_the_smaller_number_counts() {
        assert_eq!(agree(BOTH, 1, None), Ok(Version::V1_0));
        assert_eq!(agree(BOTH, 5, None), Ok(Version::V1_3));
        assert!(agree(BOTH, 2, None).unwrap_err().contains("1.1"));
        let only_v1_3 = VersionBitmap::of(&[Version::V1_3]);
        assert!(agree(only_v1_3, 1, None).is_err());
        assert!(agree(BOTH, 0, None).is_err());
        assert_eq!(agree(VersionBitmap::of(&[Version::V1_0]), 4, None), Ok(Version::V1_0));
    }

    #[test]
    fn our_hello_has_a_bitmap_unless_it_says_1_0_alone() {
        assert_eq!(hello(BOTH).versions, Some(BOTH));
        assert_eq!(hello(VersionBitmap::of(&[Version::V1_0])).versions, None);
    }

    #[test]
    fn answers_before_agreement_use_a_version_the_peer_may_know() {
        assert_eq!(answer_version(BOTH, 3), Version::V1_0);
        assert_eq!(answer_version(BOTH, 0x47), Version::V1_3);
        assert_eq!(answer_version(VersionBitmap::of(&[Version::V1_3]), 1), Version::V1_3);
    }
}
