//! Tables of right-aligned columns: as wide as their widest cell. What does not fit beside each
//! other stands below each other; it must never be cut.

/// Lines of `rows` under `heads`; the first column is aligned to the left.
pub(super) fn lines(heads: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(at, head)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain([head.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let line = |cells: Vec<&str>| {
        let cell = |(at, (text, width)): (usize, (&str, &usize))| match at {
            0 => format!("{text:<width$}"),
            _ => format!("  {text:>width$}"),
        };
        cells.into_iter().zip(&widths).enumerate().map(cell).collect::<String>()
    };
    let head = line(heads.to_vec());
    let body = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    std::iter::once(head).chain(body).collect()
}

/// Columns between two cells.
const BETWEEN: usize = 2;

/// As [`lines`], on at most `width` columns: columns that do not fit make a table of their own
/// below, after the first one.
pub(super) fn fitting(heads: &[&str], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let column = |at: usize| {
        let cells = rows.iter().filter_map(move |row| row.get(at)).map(|cell| cell.chars().count());
        let head = heads.get(at).map_or(0, |head| head.chars().count());
        cells.chain([head]).max().unwrap_or(0)
    };
    let first = column(0);
    let mut groups: Vec<(Vec<usize>, usize)> = Vec::new();
    for at in 1..heads.len() {
        let more = BETWEEN + column(at);
        match groups.last_mut() {
            Some((group, taken)) if *taken + more <= width => {
                group.push(at);
                *taken += more;
            }
            Some(_) | None => groups.push((vec![at], first + more)),
        }
    }
    if groups.len() < 2 {
        return lines(heads, rows);
    }
    let table = |(group, _): (Vec<usize>, usize)| {
        let places: Vec<usize> = std::iter::once(0).chain(group).collect();
        let heads: Vec<&str> = places.iter().filter_map(|at| heads.get(*at).copied()).collect();
        let cells = |row: &Vec<String>| {
            places.iter().filter_map(|at| row.get(*at).cloned()).collect::<Vec<String>>()
        };
        lines(&heads, &rows.iter().map(cells).collect::<Vec<_>>())
    };
    groups.into_iter().flat_map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::{fitting, lines};

    #[test]
    fn what_does_not_fit_beside_stands_below_and_nothing_is_cut() {
        let heads = ["name", "a", "b", "c"];
        let row = |name: &str| {
            let cells = [name, "123456789", "1234567", "12345"];
            cells.map(str::to_owned).to_vec()
        };
        let rows = [row("first"), row("the second")];
        assert_eq!(fitting(&heads, &rows, 80), lines(&heads, &rows));
        let narrow = fitting(&heads, &rows, 32);
        assert!(narrow.iter().all(|line| line.chars().count() <= 32), "{narrow:?}");
        let text = narrow.join("\n");
        for cell in ["123456789", "1234567", "12345", "the second"] {
            assert!(text.contains(cell), "{text}");
        }
        assert_eq!(narrow.len(), 6, "{text}");
    }
}
