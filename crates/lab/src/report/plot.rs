//! Plots as inline SVG: bars with interval, samples and ceiling; and distributions.
//!
//! Drawn here and not by a script, so that the page needs none and prints as it looks. Colours are
//! the page's variables, which follow light and dark. Must never cut an axis of bars above zero.

use std::fmt::Write;

/// Width of every plot in SVG units; the page scales it.
const WIDTH: f64 = 1180.0;

/// Room for the labels on the left, and for the values on the right.
const LEFT: f64 = 300.0;
const RIGHT: f64 = 250.0;

const ROW: f64 = 26.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 30.0;

/// A row of a bar plot.
#[derive(Clone, Debug, Default)]
pub(super) struct Bar {
    /// Heading that stands above this row, if a new group begins with it.
    pub(super) group: Option<String>,
    /// What it is.
    pub(super) label: String,
    /// Number of the colour.
    pub(super) colour: usize,
    /// The mean.
    pub(super) mean: f64,
    /// Half of the interval.
    pub(super) interval: Option<f64>,
    /// The samples.
    pub(super) samples: Vec<f64>,
    /// The most that the links allow.
    pub(super) ceiling: Option<f64>,
    /// Text behind the bar.
    pub(super) text: String,
}

/// A distribution.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// What it is.
    pub(super) label: String,
    /// Number of the colour.
    pub(super) colour: usize,
    /// Dashed where two curves share a colour.
    pub(super) dashed: bool,
    /// Pairs of quantile (0 to 1) and value.
    pub(super) points: Vec<(f64, f64)>,
}

/// Text that is safe inside HTML and SVG.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A number with its thousands set apart by narrow spaces.
pub(super) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(w, r)| (w, Some(r)));
    let mut out = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && whole.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    if value < 0.0 && out.chars().any(|c| ('1'..='9').contains(&c)) {
        out.insert(0, '-');
    }
    out
}

/// Round steps for an axis from 0 to `max`, about five of them.
fn step(max: f64) -> f64 {
    let rough = (max / 5.0).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
    factor * power
}

/// Horizontal bars from zero with interval, samples and ceiling.
pub(super) fn bars(rows: &[Bar], unit: &str) -> String {
    let most = rows
        .iter()
        .map(|row| row.mean + row.interval.unwrap_or_default().min(row.mean))
        .chain(rows.iter().flat_map(|row| row.samples.iter().copied()))
        .fold(0.0, f64::max);
    // A ceiling far beyond everything measured would only squeeze the bars.
    let ceiling = rows.iter().filter_map(|row| row.ceiling).filter(|c| *c < 3.0 * most);
    let most = ceiling.fold(most, f64::max).max(1e-6);
    let groups = rows.iter().filter(|row| row.group.is_some()).count();
    let height = TOP + BOTTOM + ROW * (rows.len() + groups) as f64;
    let scale = (WIDTH - LEFT - RIGHT) / most;
    let mut svg = open(height);
    axis(&mut svg, most, scale, height, unit);
    let mut y = TOP;
    for row in rows {
        if let Some(group) = &row.group {
            let (base, group) = (y + ROW * 0.7, escape(group));
            let _ = write!(svg, r#"<text class="head" x="0" y="{base:.1}">{group}</text>"#);
            y += ROW;
        }
        bar(&mut svg, row, y, scale, most);
        y += ROW;
    }
    svg.push_str("</svg>");
    svg
}

fn open(height: f64) -> String {
    format!(
        r#"<svg viewBox="0 0 {WIDTH:.0} {height:.0}" role="img" xmlns="http://www.w3.org/2000/svg">"#
    )
}

fn axis(svg: &mut String, most: f64, scale: f64, height: f64, unit: &str) {
    let step = step(most);
    let decimals = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let (top, bottom) = (TOP, height - BOTTOM);
    let mut value = 0.0;
    while value <= most * 1.0001 {
        let x = LEFT + value * scale;
        let label = grouped(value, decimals);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{x:.1}" y1="{top}" x2="{x:.1}" y2="{bottom:.1}"/><text class="axis" x="{x:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
            height - 10.0
        );
        value += step;
    }
    let (x, y) = (WIDTH - RIGHT + 16.0, height - 10.0);
    let _ = write!(svg, r#"<text class="axis" x="{x:.1}" y="{y:.1}">{}</text>"#, escape(unit));
}

fn bar(svg: &mut String, row: &Bar, y: f64, scale: f64, most: f64) {
    let middle = y + ROW / 2.0;
    let colour = row.colour % 6;
    let text_y = middle + 4.5;
    let _ = write!(
        svg,
        r#"<text x="{:.1}" y="{text_y:.1}" text-anchor="end">{}</text><rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" rx="2" fill="var(--c{colour})" opacity="0.82"/>"#,
        LEFT - 10.0,
        escape(&row.label),
        y + 5.0,
        (row.mean * scale).max(0.0),
        ROW - 10.0
    );
    let mut end = LEFT + row.mean * scale;
    if let Some(interval) = row.interval {
        let low = LEFT + (row.mean - interval).max(0.0) * scale;
        let high = LEFT + (row.mean + interval).min(most) * scale;
        end = end.max(high);
        let (above, below) = (middle - 5.0, middle + 5.0);
        let _ = write!(
            svg,
            r#"<path class="whisker" fill="none" d="M{low:.1} {middle:.1}H{high:.1}M{low:.1} {above:.1}V{below:.1}M{high:.1} {above:.1}V{below:.1}"/>"#
        );
    }
    for sample in &row.samples {
        let x = LEFT + sample * scale;
        end = end.max(x);
        let _ = write!(svg, r#"<circle class="dot" cx="{x:.1}" cy="{middle:.1}" r="2.6"/>"#);
    }
    if let Some(ceiling) = row.ceiling.filter(|ceiling| *ceiling <= most * 1.0001) {
        let x = LEFT + ceiling * scale;
        end = end.max(x);
        let (above, below) = (y + 2.0, y + ROW - 2.0);
        let _ = write!(
            svg,
            r#"<line class="ceiling" x1="{x:.1}" y1="{above:.1}" x2="{x:.1}" y2="{below:.1}"/>"#
        );
    }
    let (x, text) = (end + 10.0, escape(&row.text));
    let _ = write!(svg, r#"<text x="{x:.1}" y="{text_y:.1}">{text}</text>"#);
}

/// Cumulative distributions over a logarithmic axis of microseconds.
pub(super) fn distributions(curves: &[Curve]) -> String {
    const HEIGHT: f64 = 340.0;
    const X0: f64 = 60.0;
    const X1: f64 = 820.0;
    let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let low = values().fold(f64::MAX, f64::min).max(1.0);
    let high = values().fold(1.0, f64::max);
    if curves.is_empty() || low > high {
        return String::new();
    }
    let (first, last) = (low.log10().floor(), high.log10().ceil().max(low.log10().floor() + 1.0));
    let x_of = |value: f64| X0 + (value.max(1.0).log10() - first) / (last - first) * (X1 - X0);
    let y_of = |quantile: f64| TOP + (1.0 - quantile) * (HEIGHT - TOP - BOTTOM - 10.0);
    let mut svg = open(HEIGHT);
    for quantile in [0.0, 0.25, 0.5, 0.75, 0.99] {
        let y = y_of(quantile);
        let percent = quantile * 100.0;
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{X0}" y1="{y:.1}" x2="{X1}" y2="{y:.1}"/><text class="axis" x="{:.1}" y="{:.1}" text-anchor="end">{percent:.0} %</text>"#,
            X0 - 8.0,
            y + 4.0
        );
    }
    let mut power = first;
    while power <= last {
        let value = 10_f64.powf(power);
        let x = x_of(value);
        let bottom = y_of(0.0);
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom:.1}"/><text class="axis" x="{x:.1}" y="{:.1}" text-anchor="middle">{} µs</text>"#,
            bottom + 20.0,
            grouped(value, 0)
        );
        power += 1.0;
    }
    for (index, curve) in curves.iter().enumerate() {
        let points: Vec<String> = curve
            .points
            .iter()
            .map(|(quantile, value)| format!("{:.1},{:.1}", x_of(*value), y_of(*quantile)))
            .collect();
        let colour = curve.colour % 6;
        let dash = if curve.dashed { r#" stroke-dasharray="6 4""# } else { "" };
        let y = TOP + 18.0 + 22.0 * index as f64;
        let _ = write!(
            svg,
            r#"<polyline class="curve" stroke="var(--c{colour})"{dash} points="{}"/><line class="curve" stroke="var(--c{colour})"{dash} x1="850" y1="{:.1}" x2="880" y2="{:.1}"/><text x="890" y="{y:.1}">{}</text>"#,
            points.join(" "),
            y - 4.5,
            y - 4.5,
            escape(&curve.label)
        );
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::{Bar, Curve, bars, distributions, escape, grouped, step};

    #[test]
    fn numbers_are_set_apart_and_text_is_made_safe() {
        assert_eq!(grouped(60703.4, 0), "60\u{202f}703");
        assert_eq!(grouped(1234.5, 1), "1234.5");
        assert_eq!(grouped(-1234567.0, 0), "-1\u{202f}234\u{202f}567");
        assert_eq!(grouped(-0.001, 1), "0.0");
        assert_eq!(escape("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }

    #[test]
    fn axes_have_round_steps() {
        for (max, expected) in [(100.0, 20.0), (94.0, 20.0), (7.0, 2.0), (0.9, 0.2), (61e3, 2e4)] {
            assert!((step(max) - expected).abs() < 1e-9 * expected, "{max}: {}", step(max));
        }
    }

    #[test]
    fn a_bar_has_its_interval_samples_and_ceiling() {
        let row = Bar {
            label: "a < b".into(),
            mean: 90.0,
            interval: Some(2.0),
            samples: vec![89.0, 91.0],
            ceiling: Some(94.15),
            ..Bar::default()
        };
        let svg = bars(&[row.clone(), Bar { ceiling: Some(1e6), ..row }], "Mb/s");
        assert_eq!(svg.matches("class=\"ceiling\"").count(), 1, "one is out of sight");
        assert_eq!(svg.matches("class=\"dot\"").count(), 4);
        assert!(svg.contains("a &lt; b") && svg.ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn nothing_measured_draws_no_nonsense() {
        assert!(!bars(&[Bar::default()], "x").contains("NaN"));
        assert_eq!(distributions(&[]), "");
        let curve = Curve {
            label: "c".into(),
            colour: 9,
            dashed: true,
            points: vec![(0.0, 50.0), (1.0, 900.0)],
        };
        let svg = distributions(&[curve]);
        assert!(svg.contains("var(--c3)") && !svg.contains("NaN"));
    }
}
