//! The report as one page that opens from disk: no network, no library, light and dark.
//!
//! Everything on it is drawn from the report's data, which is embedded whole for download.

mod details;

use std::fmt::Write;

use super::plot::{Bar, Curve, bars, distributions, escape, grouped};
use super::table::{limit_text, starred};
use super::{Cell, Figure, Measurement, Report, State, links};
use crate::controller::AppKind;
use crate::stats::Reported;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>weir lab: {0}</title><style>{STYLE}</style></head><body><main>\n",
        escape(&report.scenario)
    );
    head(&mut page, report);
    table(&mut page, report);
    plots(&mut page, report);
    details::utilisation(&mut page, report);
    details::cells(&mut page, report);
    details::method(&mut page, report);
    page.push_str("</main>");
    embed(&mut page, report);
    page.push_str("</body></html>\n");
    page
}

/// The data for the download button. Inside a script element only `</` has to be hidden.
fn embed(page: &mut String, report: &Report) {
    // A report holds nothing that JSON cannot: the only failure would be our own mistake.
    let json = serde_json::to_string(report).expect("a report is representable as JSON");
    let json = json.replace("</", "<\\/");
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"raw\">{json}</script><script>{SCRIPT}</script>"
    );
}

fn head(page: &mut String, report: &Report) {
    let machine = &report.machine;
    let kind = if machine.virtual_machine { "virtual machine" } else { "machine" };
    let _ = write!(
        page,
        "<h1>weir lab: {}</h1><p class=\"lead\">{}</p>\
         <p class=\"soft\">{} · {} in turns · {:.0} s · {kind} with {} cores ({}) · {} · \
         {}</p>",
        escape(&report.scenario),
        escape(&report.question),
        escape(&report.started),
        report.repeats_text(),
        report.duration_s,
        machine.cores,
        escape(&machine.cpu),
        escape(&machine.kernel),
        escape(&machine.os),
    );
    page.push_str("<p><button id=\"download\">Download the raw data (JSON)</button></p>");
    if let Some(disturbance) = report.disturbance() {
        let _ = write!(page, "<p class=\"bad\">{}</p>", escape(&disturbance));
    }
    let comparisons = report.headlines();
    if comparisons.is_empty() {
        return;
    }
    page.push_str("<div class=\"card\"><table>");
    for comparison in comparisons {
        let _ = write!(
            page,
            "<tr><td class=\"n big\">{} ×</td><td>{} carries {} the packets a second of {} \
             <span class=\"soft\">({})</span></td></tr>",
            grouped(comparison.ratio, 1),
            escape(&comparison.cell),
            comparison.text(),
            escape(&comparison.baseline),
            escape(&comparison.links),
        );
    }
    page.push_str("</table></div>");
}

/// Columns of the table: heading, unit, figure, and the method whose limit stands below it.
const COLUMNS: [(&str, &str, &str, &str); 7] = [
    ("ping avg", "ms", "ping_avg_ms", ""),
    ("probe p50", "µs", "probe_p50_us", ""),
    ("probe p99", "µs", "probe_p99_us", ""),
    ("TCP", "Mb/s", "tcp_mbps", "tcp"),
    ("UDP", "Mb/s", "udp_mbps", "udp"),
    ("UDP (iperf 2)", "Mb/s", "udp2_mbps", "udp2"),
    ("at saturation", "packets/s", "pps_saturated", "pps"),
];

fn table(page: &mut String, report: &Report) {
    page.push_str("<h2>Figures</h2><div class=\"card\"><table><tr><th>switch + controller</th>");
    for (heading, unit, _, _) in COLUMNS {
        let _ = write!(page, "<th class=\"n\">{heading}<br>{unit}</th>");
    }
    page.push_str("</tr>");
    let mut group = String::new();
    for cell in &report.cells {
        let here = links(&cell.key);
        if here != group {
            let text = escape(&here);
            let _ = write!(page, "<tr class=\"group\"><td colspan=\"8\">{text}</td></tr>");
            group = here;
        }
        let _ = write!(
            page,
            "<tr><td><span class=\"swatch\" style=\"background:var(--c{})\"></span>{}</td>",
            colour(report, cell) % 6,
            escape(&cell.key.title())
        );
        row(page, cell);
        page.push_str("</tr>");
    }
    page.push_str(
        "</table></div><p class=\"soft\">Mean ± half of the 99 % interval (Student's t) over the \
         repeats; where it is wider than the mean, how many repeats that needs. Below it loss, \
         where there was some, and the part that limited, by the rule at the end; with a star \
         where all cores of the machine were busy too.</p>",
    );
}

fn row(page: &mut String, cell: &Cell) {
    match &cell.state {
        State::Measured => {}
        State::Missing(reason) | State::Failed(reason) | State::Skipped(reason) => {
            let reason = escape(reason.lines().next().unwrap_or_default());
            let _ = write!(page, "<td colspan=\"7\" class=\"bad\">{reason}</td>");
            return;
        }
    }
    for (_, _, id, method) in COLUMNS {
        let measurement =
            cell.measurements.iter().find(|m| m.figures.iter().any(|figure| figure.id == id));
        let content = measurement.map_or_else(|| "-".to_owned(), |m| value(m, id, method));
        let _ = write!(page, "<td class=\"n\">{content}</td>");
    }
}

fn value(measurement: &Measurement, id: &str, method: &str) -> String {
    let Some(figure) = measurement.figure(id) else {
        let (class, word, why) = match &measurement.unfit {
            Some(why) => ("soft", "not here", why.clone()),
            None if measurement.errors.is_empty() => ("soft", "-", String::new()),
            None => ("bad", "failed", measurement.errors.join("\n")),
        };
        return format!("<span class=\"{class}\" title=\"{}\">{word}</span>", escape(&why));
    };
    let mut text = mean(figure);
    let loss = measurement.figures.iter().find(|f| f.id.ends_with("_loss_pct"));
    let loss = loss.and_then(|figure| figure.summary.as_ref()).map_or(0.0, |s| s.mean);
    if !method.is_empty() && loss >= 0.01 {
        let _ = write!(text, "<br><span class=\"pm\">loss {loss:.2} %</span>");
    }
    if let Some(limit) = measurement.limit.as_ref().filter(|_| !method.is_empty()) {
        let (why, label) = (escape(&limit.why), starred(limit));
        let class = details::part_class(limit.part);
        let _ = write!(text, "<br><span class=\"chip {class}\" title=\"{why}\">{label}</span>");
    }
    text
}

fn mean(figure: &Figure) -> String {
    let Some(summary) = &figure.summary else { return "-".to_owned() };
    let number = |value: f64| grouped(value, figure.decimals);
    match summary.reported_mean() {
        Reported::Known { value, interval } => {
            let half = number(interval.width() / 2.0);
            format!("{} <span class=\"pm\">± {half}</span>", number(value))
        }
        Reported::Single { value } => number(value),
        too_few @ Reported::TooFew { .. } => {
            format!("<span class=\"pm\">{}</span>", too_few.text(figure.decimals))
        }
    }
}

/// Every pair of switch and controller has a colour.
fn colour(report: &Report, cell: &Cell) -> usize {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for cell in &report.cells {
        let pair = (cell.key.dut.as_str(), cell.key.controller.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    let own = (cell.key.dut.as_str(), cell.key.controller.as_str());
    pairs.iter().position(|pair| *pair == own).unwrap_or_default()
}

type Ceiling = fn(&Cell) -> Option<f64>;

/// The plots: heading, figure, and its ceiling by the links.
const PLOTS: [(&str, &str, Ceiling); 5] = [
    ("Packets a second at saturation", "pps_saturated", |cell| {
        lesser(cell.ceilings.port_small_pps, cell.ceilings.control_small_pps)
    }),
    ("TCP payload", "tcp_mbps", |cell| {
        lesser(cell.ceilings.port_tcp_bps, cell.ceilings.control_tcp_bps).map(|bps| bps / 1e6)
    }),
    ("UDP payload that arrived (iperf3)", "udp_mbps", |cell| {
        lesser(cell.ceilings.port_udp_bps, cell.ceilings.control_udp_bps).map(|bps| bps / 1e6)
    }),
    ("UDP payload that arrived (iperf 2, as in E1)", "udp2_mbps", |cell| {
        lesser(cell.ceilings.port_udp_bps, cell.ceilings.control_udp_bps).map(|bps| bps / 1e6)
    }),
    ("Round-trip time by ping, average", "ping_avg_ms", |_| None),
];

fn lesser(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn plots(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>Plots</h2><p class=\"soft\">Bar: mean. Whiskers: 99 % interval. Circles: the single \
         repeats. Dashed line: the most that the links allow, by arithmetic.</p>",
    );
    for (heading, id, ceiling) in PLOTS {
        let (rows, unit) = plot_rows(report, id, ceiling);
        if !rows.is_empty() {
            let svg = bars(&rows, &unit);
            let _ = write!(page, "<div class=\"card\"><h3>{heading}</h3>{svg}</div>");
        }
    }
    let curves = curves(report);
    if !curves.is_empty() {
        let _ = write!(
            page,
            "<div class=\"card\"><h3>Round-trip time by the open-loop probe, cumulative</h3>{}\
             <p class=\"soft\">Measured from the time at which each probe was due. Mean of the \
             repeats' quantiles.</p></div>",
            distributions(&curves)
        );
    }
}

fn plot_rows(report: &Report, id: &str, ceiling: Ceiling) -> (Vec<Bar>, String) {
    let (mut rows, mut unit, mut group) = (Vec::new(), String::new(), String::new());
    for cell in &report.cells {
        let Some(figure) = cell.figure(id) else { continue };
        let Some(summary) = &figure.summary else { continue };
        unit.clone_from(&figure.unit);
        let here = links(&cell.key);
        let limit = cell
            .measurements
            .iter()
            .find(|m| m.figure(id).is_some())
            .and_then(|m| m.limit.as_ref())
            .map_or_else(String::new, |limit| format!("  [{}]", limit_text(limit)));
        let (interval, value) = match summary.reported_mean() {
            Reported::Known { .. } | Reported::Single { .. } => {
                (summary.ci99, grouped(summary.mean, figure.decimals))
            }
            too_few @ Reported::TooFew { .. } => (None, too_few.text(figure.decimals)),
        };
        rows.push(Bar {
            group: (here != group).then(|| here.clone()),
            label: cell.key.title(),
            colour: colour(report, cell),
            mean: summary.mean,
            interval,
            samples: figure.samples.clone(),
            ceiling: ceiling(cell),
            text: format!("{value}{limit}"),
        });
        group = here;
    }
    (rows, unit)
}

/// More curves than this are no picture.
const CURVES_MAX: usize = 12;

fn curves(report: &Report) -> Vec<Curve> {
    let several = report.cells.iter().any(|c| links(&c.key) != links(&report.cells[0].key));
    report
        .cells
        .iter()
        .filter_map(|cell| {
            let points = quantiles(cell.measurement("probe")?)?;
            let rates = format!(" {}/{}", cell.key.port_rate, cell.key.control_rate);
            let label = cell.key.title() + if several { &rates } else { "" };
            let dashed = cell.key.app == AppKind::LearningSwitch;
            Some(Curve { label, colour: colour(report, cell), dashed, points })
        })
        .take(CURVES_MAX)
        .collect()
}

/// The mean of the repeats' quantiles.
fn quantiles(measurement: &Measurement) -> Option<Vec<(f64, f64)>> {
    let lists: Vec<Vec<(f64, f64)>> = measurement
        .samples
        .iter()
        .filter_map(|sample| serde_json::from_value(sample.raw.get("quantiles_us")?.clone()).ok())
        .collect();
    let first = lists.first()?;
    let mean = |index: usize| {
        let values = lists.iter().filter_map(|list| Some(list.get(index)?.1));
        values.sum::<f64>() / lists.len() as f64
    };
    Some(first.iter().enumerate().map(|(index, point)| (point.0, mean(index))).collect())
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::report::{Report, sample};

    #[test]
    fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
        let page = render(&sample::report(6));
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "src=", "@import", "NaN"] {
            assert!(!outside.contains(word), "{word}");
        }
        for word in
            ["prefers-color-scheme: dark", "apt-get install openvswitch-switch", "iperf 3.12"]
        {
            assert!(page.contains(word), "{word} is missing");
        }
        assert!(page.contains("What does &lt;it&gt; cost?"));
    }

    #[test]
    fn the_embedded_data_are_the_report() {
        let report = sample::report(2);
        let page = render(&report);
        let start = page.find("id=\"raw\">").unwrap() + "id=\"raw\">".len();
        let json = &page[start..start + page[start..].find("</script>").unwrap()];
        let read: Report = serde_json::from_str(json).unwrap();
        assert!(read == report, "the page holds other data than the report");
    }
}
