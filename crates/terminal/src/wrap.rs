//! A text in lines that are no longer than the terminal is wide.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text in lines of at most `width` columns, broken at blanks; lines after the first begin with
/// `indent`. A word that is longer than a line is cut.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let width = width.max(1);
    let indent = if indent.width() < width { indent } else { "" };
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    let mut is_begun = false;
    for word in text.split(' ') {
        if is_begun && used + 1 + word.width() > width {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            used = indent.width();
        } else if is_begun {
            line.push(' ');
            used += 1;
        }
        for letter in word.chars() {
            let more = letter.width().unwrap_or(0);
            if used + more > width {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(letter);
            used += more;
        }
        is_begun = true;
    }
    lines.push(line);
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_at_blanks_and_only_long_words_are_cut() {
        assert_eq!(wrap("one two three", 8, "  "), ["one two", "  three"]);
        assert_eq!(wrap("one twothreefour", 8, "  "), ["one", "  twothr", "eefour"]);
        assert_eq!(wrap("1,418,608 ± 27,673", 12, ""), ["1,418,608 ±", "27,673"]);
        assert_eq!(wrap("", 8, "  "), [""]);
        assert_eq!(wrap("ab", 0, "  "), ["a", "b"]);
        assert_eq!(wrap("漢字 漢字", 5, ""), ["漢字", "漢字"]);
    }
}
