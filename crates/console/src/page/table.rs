//! Tables of right-aligned columns: as wide as their widest cell.

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
