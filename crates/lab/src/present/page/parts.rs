//! Small pieces of the page: sentences with links, swatches, chips, dates.

use std::fmt::Write;

use super::escape::escape;
use crate::present::claims::{Claim, ClaimPart, Tone};

/// The sentences as a list, each with the sign of its tone.
pub(super) fn claim_list(page: &mut String, claims: &[Claim]) {
    page.push_str("<ul class=\"claims\">");
    for claim in claims {
        let _ = write!(page, "<li class=\"{}\">", tone_class(claim.tone));
        sentence(page, claim);
        page.push_str("</li>");
    }
    page.push_str("</ul>");
}

/// The sentences as text.
pub(super) fn claim_paragraph(page: &mut String, claims: &[Claim]) {
    page.push_str("<div class=\"prose results\">");
    for claim in claims {
        page.push_str("<p>");
        sentence(page, claim);
        page.push_str("</p>");
    }
    page.push_str("</div>");
}

fn sentence(page: &mut String, claim: &Claim) {
    let label = claim.tone.label();
    if !label.is_empty() {
        let _ = write!(page, "<span class=\"chip {}\">{label}</span> ", tone_class(claim.tone));
    }
    for part in &claim.parts {
        let _ = match part {
            ClaimPart::Words(text) => write!(page, "{}", escape(text)),
            ClaimPart::Strong(text) => write!(page, "<strong>{}</strong>", escape(text)),
            ClaimPart::Link(text, anchor) => {
                write!(page, "<a class=\"claim\" href=\"#{anchor}\">{}</a>", escape(text))
            }
        };
    }
}

/// The class of a tone.
pub(super) fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Ahead => "ahead",
        Tone::Behind => "behind",
        Tone::Both => "both",
        Tone::NoDifference => "even",
        Tone::Fact => "fact",
        Tone::Caution => "caution",
    }
}

/// The class of an absence by its word.
pub(super) fn state_class(word: &str) -> &'static str {
    if word == "failed" { "behind" } else { "even" }
}

/// The mark of a switch's colour; there are eight, and each has its shape.
pub(super) fn swatch(index: usize) -> String {
    format!("<i class=\"swatch c{}\" aria-hidden=\"true\"></i>", index % 8)
}

/// `23 November 2026, 08:00 UTC` for `2026-11-23T08:00:00Z`; anything else as it is.
pub(super) fn when(started: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let parse = || {
        let (date, time) = started.split_once('T')?;
        let mut date = date.splitn(3, '-');
        let (year, month, day) = (date.next()?, date.next()?, date.next()?);
        let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
        let day: u8 = day.parse().ok()?;
        Some(format!("{day} {month} {year}, {} UTC", time.get(..5)?))
    };
    parse().unwrap_or_else(|| started.to_owned())
}

#[cfg(test)]
mod tests {
    use super::when;

    #[test]
    fn dates_read_well() {
        assert_eq!(when("2026-11-23T08:00:00Z"), "23 November 2026, 08:00 UTC");
        for odd in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-23T8"] {
            assert_eq!(when(odd), odd);
        }
    }
}
