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
            put_text(&mut svg, "head", 0.0, y + ROW * 0.7, "start", group);
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
        "<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" \
         xmlns=\"http://www.w3.org/2000/svg\">"
    )
}

/// A text at a place; `anchor` is the SVG word for the end of it that is there.
fn put_text(svg: &mut String, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
    let text = escape(text);
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    );
}

fn put_line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = write!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn axis(svg: &mut String, most: f64, scale: f64, height: f64, unit: &str) {
    let step = step(most);
    let decimals = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let mut value = 0.0;
    while value <= most * 1.0001 {
        let x = LEFT + value * scale;
        put_line(svg, "grid", (x, TOP), (x, height - BOTTOM));
        put_text(svg, "axis", x, height - 10.0, "middle", &grouped(value, decimals));
        value += step;
    }
    put_text(svg, "axis", WIDTH - RIGHT + 16.0, height - 10.0, "start", unit);
}

fn bar(svg: &mut String, row: &Bar, y: f64, scale: f64, most: f64) {
    let middle = y + ROW / 2.0;
    let text_y = middle + 4.5;
    put_text(svg, "", LEFT - 10.0, text_y, "end", &row.label);
    let (colour, top, width) = (row.colour % 6, y + 5.0, (row.mean * scale).max(0.0));
    let _ = write!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\" \
         fill=\"var(--c{colour})\" opacity=\"0.82\"/>",
        ROW - 10.0
    );
    let mut end = LEFT + row.mean * scale;
    if let Some(interval) = row.interval {
        let low = LEFT + (row.mean - interval).max(0.0) * scale;
        let high = LEFT + (row.mean + interval).min(most) * scale;
        end = end.max(high);
        put_line(svg, "whisker", (low, middle), (high, middle));
        for x in [low, high] {
            put_line(svg, "whisker", (x, middle - 5.0), (x, middle + 5.0));
        }
    }
    for sample in &row.samples {
        let x = LEFT + sample * scale;
        end = end.max(x);
        let _ = write!(svg, "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{middle:.1}\" r=\"2.6\"/>");
    }
    if let Some(ceiling) = row.ceiling.filter(|ceiling| *ceiling <= most * 1.0001) {
        let x = LEFT + ceiling * scale;
        end = end.max(x);
        put_line(svg, "ceiling", (x, y + 2.0), (x, y + ROW - 2.0));
    }
    put_text(svg, "", end + 10.0, text_y, "start", &row.text);
}

const CURVES_HEIGHT: f64 = 340.0;
const CURVES_LEFT: f64 = 60.0;
const CURVES_RIGHT: f64 = 820.0;

/// The logarithmic axis of the distributions, in powers of ten.
struct Decades {
    first: f64,
    last: f64,
}

impl Decades {
    fn x(&self, value: f64) -> f64 {
        let share = (value.max(1.0).log10() - self.first) / (self.last - self.first);
        CURVES_LEFT + share * (CURVES_RIGHT - CURVES_LEFT)
    }
}

fn curve_y(quantile: f64) -> f64 {
    TOP + (1.0 - quantile) * (CURVES_HEIGHT - TOP - BOTTOM - 10.0)
}

/// Cumulative distributions over a logarithmic axis of microseconds.
pub(super) fn distributions(curves: &[Curve]) -> String {
    let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let low = values().fold(f64::MAX, f64::min).max(1.0);
    let high = values().fold(1.0, f64::max);
    if curves.is_empty() || low > high {
        return String::new();
    }
    let first = low.log10().floor();
    let decades = Decades { first, last: high.log10().ceil().max(first + 1.0) };
    let mut svg = open(CURVES_HEIGHT);
    for quantile in [0.0, 0.25, 0.5, 0.75, 0.99] {
        let y = curve_y(quantile);
        put_line(&mut svg, "grid", (CURVES_LEFT, y), (CURVES_RIGHT, y));
        let percent = format!("{:.0} %", quantile * 100.0);
        put_text(&mut svg, "axis", CURVES_LEFT - 8.0, y + 4.0, "end", &percent);
    }
    let mut power = decades.first;
    while power <= decades.last {
        let value = 10_f64.powf(power);
        let (x, bottom) = (decades.x(value), curve_y(0.0));
        put_line(&mut svg, "grid", (x, TOP), (x, bottom));
        let label = format!("{} µs", grouped(value, 0));
        put_text(&mut svg, "axis", x, bottom + 20.0, "middle", &label);
        power += 1.0;
    }
    for (index, curve) in curves.iter().enumerate() {
        put_curve(&mut svg, curve, &decades, TOP + 18.0 + 22.0 * index as f64);
    }
    svg.push_str("</svg>");
    svg
}

/// A curve, and its line in the legend at height `y`.
fn put_curve(svg: &mut String, curve: &Curve, decades: &Decades, y: f64) {
    let colour = curve.colour % 6;
    let dash = if curve.dashed { " stroke-dasharray=\"6 4\"" } else { "" };
    let stroke = format!("class=\"curve\" stroke=\"var(--c{colour})\"{dash}");
    let points: Vec<String> = curve
        .points
        .iter()
        .map(|(quantile, value)| format!("{:.1},{:.1}", decades.x(*value), curve_y(*quantile)))
        .collect();
    let (points, above) = (points.join(" "), y - 4.5);
    let _ = write!(
        svg,
        "<polyline {stroke} points=\"{points}\"/>\
         <polyline {stroke} points=\"850,{above:.1} 880,{above:.1}\"/>"
    );
    put_text(svg, "", 890.0, y, "start", &curve.label);
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
