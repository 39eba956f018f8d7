//! Numbers as readers see them: grouped digits, no more decimals than the metric has.
//!
//! It must never print a figure that is not zero as a row of zeros, nor one of hundreds of digits.

/// `1,234.5`: the value with that many decimals, its digits in groups of three. A value that would
/// be all zeros gets the decimals of its first two digits, a very small or large one an exponent,
/// an infinite one says so.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    match value.is_finite() && is_extreme(value) {
        true => format!("{value:.2e}"),
        false => fixed(value, decimals.max(needed(value))),
    }
}

/// The value with these decimals, whatever they leave of it.
fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "not a number".to_owned() } else { "infinite".to_owned() };
    }
    let decimals = decimals.min(9);
    let plain = format!("{:.decimals$}", value.abs());
    let point = plain.find('.').unwrap_or(plain.len());
    let is_negative = value < 0.0 && plain.contains(|sign: char| ('1'..='9').contains(&sign));
    let mut text = if is_negative { "-".to_owned() } else { String::new() };
    for (index, sign) in plain.char_indices() {
        if (1..point).contains(&index) && (point - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(sign);
    }
    text
}

/// Whether nobody would count its digits.
pub(crate) fn is_extreme(value: f64) -> bool {
    let size = value.abs();
    size >= 1e15 || size > 0.0 && size < 1e-9
}

/// A value with its range, all with the same decimals: `0.49 [0.47–0.51]`; the value alone where
/// there is no range.
pub(crate) fn with_range(value: f64, (low, high): (f64, f64), decimals: usize) -> String {
    let needed = decimals.max(needed(if value == 0.0 { high } else { value }));
    let is_extreme = is_extreme(value.abs().max(high.abs()));
    let text = |one| if is_extreme { number(one, decimals) } else { fixed(one, needed) };
    let [value, low, high] = [value, low, high].map(text);
    if low == high { value } else { format!("{value} [{low}–{high}]") }
}

/// The same in a table for a terminal: from 10,000 on in thousands or millions, as long as that
/// leaves a range, else with the fewest decimals that do; and of what has more decimals than its
/// first three digits take these only.
pub(crate) fn short_with_range(value: f64, (low, high): (f64, f64), decimals: usize) -> String {
    let size = value.abs().max(high.abs());
    if is_extreme(size) {
        return with_range(value, (low, high), decimals);
    }
    let (unit, sign) = match size {
        size if size >= 1e7 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let leading = if value == 0.0 { high } else { value };
    let digits = match leading.abs() / unit {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size => 2 + needed(size),
    };
    let digits = if unit > 1.0 { digits } else { decimals.min(digits).max(needed(leading)) };
    let [value_text, low_text, high_text] = [value, low, high].map(|one| fixed(one / unit, digits));
    if low_text == high_text {
        let texts = (0..=decimals).map(|decimals| with_range(value, (low, high), decimals));
        let whole = || with_range(value, (low, high), decimals);
        return texts.filter(|_| unit > 1.0).find(|text| text.contains('[')).unwrap_or_else(whole);
    }
    format!("{value_text}{sign} [{low_text}–{high_text}]")
}

/// The decimals without which a small value has less than two digits; 0 for one from 1 on.
fn needed(value: f64) -> usize {
    let size = value.abs();
    if size == 0.0 || size >= 1.0 {
        return 0;
    }
    let first = (-size.log10()).ceil();
    if first > 9.0 { 0 } else { first as usize }
}

/// A ratio: `0.087`, `0.87`, `1.31`, `41.8`, `1,250`.
pub(crate) fn times(ratio: f64) -> String {
    let decimals = match ratio.abs() {
        size if size < 0.1 => 3,
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    };
    number(ratio, decimals)
}

/// A value of an axis: whole numbers from 10,000 on are grouped, all else is as it was written.
pub(crate) fn axis_value(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(value) if value >= 10_000 && text.len() <= 15 => number(value as f64, 0),
        Ok(_) | Err(_) => text.to_owned(),
    }
}

/// The text with a capital letter, to begin a sentence or a heading.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `1 start`, `3 starts`.
pub(crate) fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", number(n as f64, 0), if n == 1 { one } else { many })
}

/// Seconds as people say them: `48 s`, `12 min 5 s`, `2 h 10 min`.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "unknown".to_owned();
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::{axis_value, duration, number, short_with_range, times, with_range};

    #[test]
    fn a_range_has_the_decimals_of_its_figure() {
        let texts = [
            with_range(0.01, (0.009_995, 0.010_005), 1),
            with_range(487.0, (467.2, 515.0), 0),
            with_range(0.0, (0.0, 0.000_4), 1),
            with_range(7.0, (7.0, 7.0), 0),
            with_range(5e-14, (0.0, 2.5), 1),
            with_range(5e-14, (0.0, 6e-14), 1),
        ];
        let expected = ["0.01", "487 [467–515]", "0.0000 [0.0000–0.0004]", "7", "0.0 [0.0–2.5]"];
        assert_eq!(texts[..5], expected);
        assert_eq!(texts[5], "5.00e-14 [0.0–6.00e-14]");
        let short = [
            short_with_range(147_123.0, (129_000.0, 149_000.0), 0),
            short_with_range(28_412.3, (27_000.0, 29_000.9), 1),
            short_with_range(10_002.0, (9_993.0, 10_006.0), 0),
            short_with_range(100_000.8, (99_990.7, 100_006.9), 1),
            short_with_range(0.1, (0.1, 0.1), 2),
            short_with_range(0.1234, (0.1, 0.15), 3),
            short_with_range(14_880_952.0, (1.4e7, 1.49e7), 0),
            short_with_range(0.04, (0.01, 0.3), 1),
            short_with_range(0.0, (0.0, 1.6), 1),
            short_with_range(0.0, (0.0, 0.0), 0),
            short_with_range(2e300, (1e300, 3e300), 1),
        ];
        assert_eq!(
            short,
            [
                "147k [129–149]",
                "28.4k [27.0–29.0]",
                "10,002 [9,993–10,006]",
                "100,001 [99,991–100,007]",
                "0.10",
                "0.123 [0.100–0.150]",
                "14.9M [14.0–14.9]",
                "0.04 [0.01–0.30]",
                "0.0 [0.0–1.6]",
                "0",
                "2.00e300 [1.00e300–3.00e300]",
            ]
        );
    }

    #[test]
    fn a_number_is_neither_a_row_of_zeros_nor_of_hundreds_of_digits() {
        for (value, decimals, text) in [
            (1_234_567.0, 0, "1,234,567"),
            (999.96, 1, "1,000.0"),
            (-1_234.5, 1, "-1,234.5"),
            (-0.0, 2, "0.00"),
            (0.0, 0, "0"),
            (0.004, 2, "0.004"),
            (0.4, 0, "0.4"),
            (0.25, 2, "0.25"),
            (4e-9, 2, "0.000000004"),
            (f64::INFINITY, 2, "infinite"),
            (999_999_999_999_999.0, 0, "999,999,999,999,999"),
            (1e15, 2, "1.00e15"),
            (-1.5e300, 2, "-1.50e300"),
            (9e-10, 2, "9.00e-10"),
            (1e-300, 2, "1.00e-300"),
        ] {
            assert_eq!(number(value, decimals), text);
        }
    }

    #[test]
    fn ratios_values_of_axes_and_durations_read_well() {
        let texts = [0.0874, 0.8741, 1.312, 41.83, 1_250.4].map(times);
        assert_eq!(texts, ["0.087", "0.87", "1.31", "41.8", "1,250"]);
        let texts = ["61000", "1518", "dl_dst 10000"].map(axis_value);
        assert_eq!(texts, ["61,000", "1518", "dl_dst 10000"]);
        let texts = [48.2, 725.0, 7_801.0].map(duration);
        assert_eq!(texts, ["48 s", "12 min 5 s", "2 h 10 min"]);
    }
}
