//! The refusal of a name that there is not: with the nearest name that there is, and all of them.

use strsim::damerau_levenshtein;

/// Most letters that may differ, of a name of any length.
const SLIPS_MAX: usize = 3;

/// `no scenario "grops": did you mean groups? there is ...`
pub(crate) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let nearest = known.iter().min_by_key(|one| damerau_levenshtein(one, name));
    let hint = match nearest {
        Some(nearest) if damerau_levenshtein(nearest, name) <= SLIPS_MAX.min(name.len() / 2) => {
            format!("did you mean {nearest}? ")
        }
        Some(_) | None => String::new(),
    };
    format!("no {what} {name:?}: {hint}there is {}", known.join(", "))
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
