//! Names: each once, and the refusal of one that there is not, with the nearest that there is and
//! all of them.

use openflow::text::nearest;

/// `no scenario "grops": did you mean groups? there is ...`
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near = nearest(name, known.iter().copied());
    let hint = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
    format!("no {what} {name:?}: {hint}there is {}", known.join(", "))
}

/// Each of some things once, in the order in which they come first.
#[must_use]
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::unknown;

    #[test]
    fn the_nearest_name_is_offered_where_one_is_near() {
        let text = |name| unknown("scenario", name, ["groups", "channel", "soak"]);
        for (name, hint) in [
            ("grops", "did you mean groups? "),
            ("chanel", "did you mean channel? "),
            ("saok", "did you mean soak? "),
            ("x", ""),
            ("elsewhere", ""),
        ] {
            let expected = format!("no scenario {name:?}: {hint}there is groups, channel, soak");
            assert_eq!(text(name), expected);
        }
    }
}
