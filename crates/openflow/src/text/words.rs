//! Words that no text has: the nearest one that there is, or what OpenFlow has in place of it.
//!
//! Flow entries found in tutorials are mostly written for Open vSwitch, whose own words come first.
//! A word is never replaced: a guess is offered, and nothing is sent.

use super::TextError;
use super::lex::Piece;

/// Words of others, whose they are, and what OpenFlow 1.3 has. A number behind a word, as in
/// `reg0`, is not written here.
const FOREIGN: &[(&[&str], &str, &str)] = &[
    (&["set_tunnel"], OVS, "set_field:VALUE->tun_id"),
    (&["sample"], OVS, NOTHING),
    (&["ct", "nat", "ct_clear", "ct_state", "ct_zone", "ct_mark", "ct_label"], OVS, NO_TRACKING),
    (&["ct_nw_src", "ct_nw_dst", "ct_nw_proto", "ct_tp_src", "ct_tp_dst"], OVS, NO_TRACKING),
    (&["tun_src", "tun_dst", "tun_flags", "tun_ttl", "tun_tos"], OVS, "tun_id of tunnels only"),
    (&["skb_priority", "dp_hash", "recirc_id", "actset_output"], OVS, NOTHING),
];

const OVS: &str = "Open vSwitch's own";
const NO_TRACKING: &str = "no tracking of connections";
const NOTHING: &str = "nothing like it";

/// The error of a word that is not known here: `what` is unknown, these are possible.
pub(super) fn unknown<'w>(
    what: &str,
    key: Piece<'_>,
    possible: impl IntoIterator<Item = &'w str>,
) -> TextError {
    let word = key.text;
    let stem =
        word.split('[').next().unwrap_or(word).trim_end_matches(|c: char| c.is_ascii_digit());
    let is_it = |words: &[&str]| words.contains(&word) || words.contains(&stem);
    if let Some((_, whose, instead)) = FOREIGN.iter().find(|(words, _, _)| is_it(words)) {
        return key.error(format!("`{word}` is {whose}; OpenFlow 1.3 has {instead}"));
    }
    match nearest(word, possible) {
        Some(near) => key.error(format!("unknown {what} `{word}`; did you mean `{near}`?")),
        None => key.error(format!("unknown {what} `{word}`")),
    }
}

/// The one of these words that a mistyped one most likely stands for: two letters away at most, or
/// one where it is short.
#[must_use]
pub fn nearest<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let len = word.chars().count();
    let far = if len < 4 { 1 } else { 2 };
    // The distance of a long text would take seconds, and is at least the difference of lengths.
    let similar = words.into_iter().filter(|known| known.chars().count().abs_diff(len) <= far);
    let away = similar.map(|known| (strsim::osa_distance(word, known), known));
    let near = away.filter(|(distance, _)| (1..=far).contains(distance));
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, nearest};
    use crate::action::ACTIONS;
    use crate::field::Field;

    #[test]
    fn no_foreign_word_is_known() {
        for word in FOREIGN.iter().flat_map(|(words, _, _)| *words) {
            assert!(ACTIONS.iter().all(|row| row.text != *word), "{word}");
            assert!(Field::from_name(word).is_none(), "{word}");
        }
    }

    #[test]
    fn the_nearest_word_is_another_one_and_not_far() {
        let words = ["tcp", "nw_dst"];
        let cases = [("tpc", Some("tcp")), ("nw_dts", Some("nw_dst")), ("ab", None), ("tcp", None)];
        for (word, near) in cases {
            assert_eq!(nearest(word, words), near, "{word}");
        }
    }
}
