//! A table that is never wider than it may be, and never breaks a number.
//!
//! If the columns do not fit, texts are wrapped at their blanks. If that is not enough, the columns
//! that are left over make a further part below, after the columns that name the row. If not even
//! one column fits beside those, each row becomes a list of its cells.

use unicode_width::UnicodeWidthStr as _;

use crate::wrap;

/// A longer word may be cut where that makes a column fit; numbers are shorter.
const WORD_MAX: usize = 24;

/// Rows of cells under heads. A line end in a cell is one in the table.
#[derive(Clone, Debug)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
    keys: usize,
    left: Vec<usize>,
    is_unbroken: bool,
}

/// Signs around the cells.
struct Frame {
    top: Option<[char; 4]>,
    below_heads: Option<[char; 4]>,
    bottom: Option<[char; 4]>,
    left: &'static str,
    between: &'static str,
    right: &'static str,
}

const PLAIN: Frame =
    Frame { top: None, below_heads: None, bottom: None, left: "", between: "  ", right: "" };

const BOXED: Frame = Frame {
    top: Some(['┌', '─', '┬', '┐']),
    below_heads: Some(['╞', '═', '╪', '╡']),
    bottom: Some(['└', '─', '┴', '┘']),
    left: "│ ",
    between: " ┆ ",
    right: " │",
};

/// A column of a part: its place, and its width there.
type Column = (usize, usize);

impl Table {
    /// A table with these heads, whose first column names the row.
    pub fn new(heads: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let heads = heads.into_iter().map(Into::into).collect();
        Self { heads, rows: Vec::new(), keys: 1, left: vec![0], is_unbroken: false }
    }

    /// The first `keys` columns name the row: they stand in each part, aligned to the left.
    #[must_use]
    pub fn keys(self, keys: usize) -> Self {
        Self { keys, left: (0..keys).collect(), ..self }
    }

    /// The columns that are aligned to the left; all others are to the right.
    #[must_use]
    pub fn left(self, columns: impl IntoIterator<Item = usize>) -> Self {
        Self { left: columns.into_iter().collect(), ..self }
    }

    /// No cell is wrapped: each row is one line.
    #[must_use]
    pub fn unbroken(self) -> Self {
        Self { is_unbroken: true, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The lines, with two blanks between columns.
    #[must_use]
    pub fn plain(&self, width: usize) -> Vec<String> {
        self.lines(width, &PLAIN)
    }

    /// The table in a box, without a line end behind it.
    #[must_use]
    pub fn boxed(&self, width: usize) -> String {
        self.lines(width, &BOXED).join("\n")
    }

    fn lines(&self, width: usize, frame: &Frame) -> Vec<String> {
        match self.parts(width, frame) {
            Some(parts) => parts.iter().flat_map(|part| self.part(part, frame)).collect(),
            None => self.lists(width),
        }
    }

    /// Width of a column: as it is, and with its texts wrapped as far as that goes.
    fn measure(&self, at: usize) -> (usize, usize) {
        let cells = self.rows.iter().filter_map(|row| row.get(at)).chain(self.heads.get(at));
        cells.fold((0, 0), |(whole, least), cell| {
            let lines = cell.lines().map(str::width).max().unwrap_or(0);
            if self.is_unbroken {
                return (whole.max(lines), least.max(lines));
            }
            let words = cell.split_whitespace().map(|word| match word.width() {
                long if long > WORD_MAX && !word.starts_with(|c: char| c.is_ascii_digit()) => {
                    WORD_MAX
                }
                fitting => fitting,
            });
            (whole.max(lines), least.max(words.max().unwrap_or(0)))
        })
    }

    /// The columns of each part; none where a part does not fit.
    fn parts(&self, width: usize, frame: &Frame) -> Option<Vec<Vec<Column>>> {
        let sizes: Vec<(usize, usize)> = (0..self.heads.len()).map(|at| self.measure(at)).collect();
        let fitting = |places: &[usize]| {
            let between = frame.between.width() * places.len().saturating_sub(1);
            let room = width.checked_sub(frame.left.width() + between + frame.right.width())?;
            fit(places, &sizes, room)
        };
        let keys: Vec<usize> = (0..self.keys.min(sizes.len())).collect();
        let (mut parts, mut places) = (Vec::new(), keys.clone());
        for at in keys.len()..sizes.len() {
            places.push(at);
            if fitting(&places).is_none() && places.len() > keys.len() + 1 {
                places.pop();
                parts.push(fitting(&places)?);
                places.truncate(keys.len());
                places.push(at);
            }
        }
        parts.push(fitting(&places)?);
        Some(parts)
    }

    fn part(&self, columns: &[Column], frame: &Frame) -> Vec<String> {
        let rule = |signs: Option<[char; 4]>| {
            let [left, line, between, right] = signs?;
            let dashes = |(_, width): &Column| line.to_string().repeat(width + 2);
            let dashes = columns.iter().map(dashes).collect::<Vec<_>>().join(&between.to_string());
            Some(format!("{left}{dashes}{right}"))
        };
        let mut lines: Vec<String> = rule(frame.top).into_iter().collect();
        lines.extend(self.cells(&self.heads, columns, frame));
        lines.extend(rule(frame.below_heads));
        lines.extend(self.rows.iter().flat_map(|row| self.cells(row, columns, frame)));
        lines.extend(rule(frame.bottom));
        lines
    }

    /// The lines of a row.
    fn cells(&self, row: &[String], columns: &[Column], frame: &Frame) -> Vec<String> {
        let wrapped = |(at, width): &Column| -> Vec<String> {
            let cell = row.get(*at).map_or("", String::as_str);
            cell.lines().flat_map(|line| wrap(line, *width, "")).collect()
        };
        let cells: Vec<Vec<String>> = columns.iter().map(wrapped).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let line = |number: usize| {
            let cell = |((at, width), lines): (&Column, &Vec<String>)| {
                let text = lines.get(number).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(text.width()));
                if self.left.contains(at) {
                    format!("{text}{blanks}")
                } else {
                    format!("{blanks}{text}")
                }
            };
            let cells: Vec<String> = columns.iter().zip(&cells).map(cell).collect();
            let line = format!("{}{}{}", frame.left, cells.join(frame.between), frame.right);
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Each row as a list of its cells, with a blank line between two.
    fn lists(&self, width: usize) -> Vec<String> {
        let list = |row: &Vec<String>| {
            let cells = self.heads.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            let cell = |(head, cell): (&String, &String)| {
                let words = head.split_whitespace().chain(cell.split_whitespace());
                wrap(&words.collect::<Vec<_>>().join(" "), width, "  ")
            };
            cells.flat_map(cell).chain([String::new()]).collect::<Vec<_>>()
        };
        let mut lines: Vec<String> = self.rows.iter().flat_map(list).collect();
        lines.pop();
        lines
    }
}

/// The widths of columns on `room` columns together: narrow ones have what they need, wide ones
/// share the rest. None where their longest words do not fit.
fn fit(places: &[usize], sizes: &[(usize, usize)], room: usize) -> Option<Vec<Column>> {
    let size = |at: usize| sizes.get(at).copied().unwrap_or_default();
    let mut spare = room.checked_sub(places.iter().map(|at| size(*at).1).sum())?;
    let mut by_wish = places.to_vec();
    by_wish.sort_by_key(|at| size(*at).0 - size(*at).1);
    let mut widths = Vec::with_capacity(places.len());
    for (done, at) in by_wish.into_iter().enumerate() {
        let (whole, least) = size(at);
        let more = (whole - least).min(spare / (places.len() - done));
        spare -= more;
        widths.push((at, least + more));
    }
    widths.sort_unstable();
    Some(widths)
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr as _;

    use super::Table;

    /// A report of the generator's, whose last columns do not fit on 80.
    fn streams() -> Table {
        let heads = ["stream", "sent", "lost", "%", "at port", "duplicated", "reordered"];
        let mut table = Table::new(heads.into_iter().chain(["p50, us", "p99, us", "max, us"]));
        table
            .row(["0 udp", "1000000", "12", "0.0012", "1", "0", "0", "337.8", "1203.4", "99999.9"]);
        table.row(["1 with a longer name", "7", "0", "0", "0", "3", "4", "5.5", "6.6", "-"]);
        table
    }

    #[test]
    fn no_width_breaks_a_number_or_is_exceeded() {
        let numbers = ["1000000", "0.0012", "337.8", "1203.4", "99999.9"];
        for width in 12..140 {
            let boxed = streams().boxed(width).lines().map(str::to_owned).collect();
            for lines in [streams().plain(width), boxed] {
                let text = lines.join("\n");
                assert!(lines.iter().all(|line| line.width() <= width), "{width}:\n{text}");
                for number in numbers {
                    let is_whole = text.split([' ', '\n']).any(|word| word == number);
                    assert!(is_whole, "{number} at {width}:\n{text}");
                }
            }
        }
    }

    #[test]
    fn columns_that_do_not_fit_stand_below_the_names() {
        let mut table = Table::new(["name", "a", "b", "c"]);
        for name in ["first", "the second"] {
            table.row([name, "123456789", "1234567", "12345"]);
        }
        assert_eq!(table.plain(80).len(), 3);
        let narrow = [
            "name                a        b",
            "first       123456789  1234567",
            "the second  123456789  1234567",
            "name            c",
            "first       12345",
            "the second  12345",
        ];
        assert_eq!(table.plain(32), narrow);
        assert_eq!(table.plain(12)[..5], ["name first", "a 123456789", "b 1234567", "c 12345", ""]);
    }

    #[test]
    fn an_unbroken_table_has_a_line_a_row_at_any_width() {
        for (width, lines) in [(80, 2), (30, 4)] {
            let mut table = Table::new(["name", "a", "b"]).unbroken();
            table.row(["first", "487 [467–515]", "1,290 [1,190–1,460]"]);
            assert_eq!(table.plain(width).len(), lines, "{:?}", table.plain(width));
        }
    }

    #[test]
    fn texts_wrap_at_blanks_and_boxes_close() {
        let mut table = Table::new(["name", "value", "remark"]).left(0..3);
        table.row(["a", "1,418,608 ± 27,673", "one\ntwo words and more"]);
        let expected = "\
┌──────┬────────────────────┬─────────────────┐
│ name ┆ value              ┆ remark          │
╞══════╪════════════════════╪═════════════════╡
│ a    ┆ 1,418,608 ± 27,673 ┆ one             │
│      ┆                    ┆ two words and   │
│      ┆                    ┆ more            │
└──────┴────────────────────┴─────────────────┘";
        assert_eq!(table.boxed(47), expected);
    }
}
