//! The lower half of the page: utilisations, each cell in full, and how it was measured.

use std::fmt::Write;

use super::super::plot::{escape, grouped};
use super::super::table::limit_text;
use super::super::{Cell, Measurement, Report, links};
use crate::ceilings::{Ceilings, packet_in_overhead, packet_out_overhead};
use crate::limit::{CORE_FULL, LINK_FULL, MACHINE_FULL, Part};
use crate::load::{Load, ProcessRole};
use crate::stats::Reported;

/// The part's class in the style sheet.
pub(super) fn part_class(part: Part) -> &'static str {
    match part {
        Part::Port => "port",
        Part::ControlLink => "control_link",
        Part::Controller => "controller",
        Part::Switch => "switch",
        Part::Host => "host",
        Part::Machine => "machine",
        Part::OfferedLoad | Part::None => "",
    }
}

/// How busy every part was in every measurement that loads the path.
pub(super) fn utilisation(page: &mut String, report: &Report) {
    page.push_str(
        "<h2>Utilisation</h2><p class=\"soft\">Mean over the repeats, each in its busiest whole \
         second. Links in percent of their rate with FCS, preamble and gap; programs in percent \
         of one core; the machine in percent of all cores. Red is saturated by the rule.</p>\
         <div class=\"card\"><table><tr><th>cell</th><th>measurement</th><th>port</th>\
         <th>control link</th><th>controller</th><th>switch</th><th>host (lab)</th><th>machine</th>\
         <th class=\"n\">drops in<br>link queues</th><th>limited by</th></tr>",
    );
    let mut group = String::new();
    for cell in &report.cells {
        let here = links(&cell.key);
        let loaded = cell.measurements.iter().filter(|m| m.limit.is_some());
        for (index, measurement) in loaded.enumerate() {
            if here != group {
                let text = escape(&here);
                let _ = write!(page, "<tr class=\"group\"><td colspan=\"10\">{text}</td></tr>");
                group.clone_from(&here);
            }
            let title = if index == 0 { escape(&cell.key.title()) } else { String::new() };
            utilisation_row(page, &title, measurement);
        }
    }
    page.push_str("</table></div>");
}

fn utilisation_row(page: &mut String, title: &str, measurement: &Measurement) {
    let loads: Vec<&Load> =
        measurement.samples.iter().filter_map(|sample| sample.load.as_ref()).collect();
    let mean = |of: &dyn Fn(&Load) -> Option<f64>| {
        let values: Vec<f64> = loads.iter().filter_map(|load| of(load)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let link = |control: bool| {
        mean(&|load: &Load| load.busiest_link(control).and_then(|link| link.utilisation))
    };
    let program = |role: ProcessRole| {
        let cpu = mean(&|load: &Load| load.process(role).map(|process| process.cpu_cores));
        let full = mean(&|load: &Load| load.process(role).map(|process| process.saturation));
        meter(cpu, full.is_some_and(|full| full >= CORE_FULL))
    };
    let machine = mean(&|load: &Load| Some(load.machine));
    let drops =
        mean(&|load: &Load| Some(load.links.iter().map(|link| link.drops).sum::<u64>() as f64));
    let above = |value: Option<f64>, full: f64| value.is_some_and(|value| value >= full);
    let (port, control) = (link(false), link(true));
    let _ = write!(
        page,
        "<tr><td>{title}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td>{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
        escape(&measurement.label),
        meter(port, above(port, LINK_FULL)),
        meter(control, above(control, LINK_FULL)),
        program(ProcessRole::Controller),
        program(ProcessRole::Switch),
        program(ProcessRole::Host),
        meter(machine, above(machine, MACHINE_FULL)),
        drops.map_or_else(|| "-".to_owned(), |drops| grouped(drops, 0)),
        measurement.limit.as_ref().map_or_else(String::new, |limit| {
            let class = part_class(limit.part);
            let why = escape(&limit.why);
            format!("<span class=\"chip {class}\" title=\"{why}\">{}</span>", limit_text(limit))
        }),
    );
}

fn meter(share: Option<f64>, full: bool) -> String {
    let Some(share) = share else { return "<span class=\"soft\">not shaped</span>".to_owned() };
    let class = if full { "meter full" } else { "meter" };
    let width = (share * 100.0).clamp(0.0, 100.0);
    format!(
        "<div class=\"{class}\"><i style=\"width:{width:.1}%\"></i></div>\
         <span class=\"pm\">{:.0} %</span>",
        share * 100.0
    )
}

/// Every cell with all its figures, ceilings, commands and errors.
pub(super) fn cells(page: &mut String, report: &Report) {
    page.push_str("<h2>Every cell in full</h2><div class=\"card\">");
    for cell in &report.cells {
        let _ = write!(
            page,
            "<details><summary>{} <span class=\"soft\">({})</span></summary>",
            escape(&cell.key.title()),
            escape(&links(&cell.key))
        );
        ceilings(page, &cell.ceilings);
        figures(page, cell);
        commands(page, cell);
        page.push_str("</details>");
    }
    page.push_str("</div>");
}

fn ceilings(page: &mut String, ceilings: &Ceilings) {
    let mbps = |bps: Option<f64>| bps.map(|bps| format!("{:.2} Mb/s", bps / 1e6));
    let pps = |pps: Option<f64>| pps.map(|pps| format!("{} packets/s", grouped(pps, 0)));
    let lines = [
        ("port, UDP payload (1470 of 1536 byte times)", mbps(ceilings.port_udp_bps)),
        ("port, TCP payload (1448 of 1538 byte times)", mbps(ceilings.port_tcp_bps)),
        ("port, smallest frames", pps(ceilings.port_small_pps)),
        ("control link, UDP payload", mbps(ceilings.control_udp_bps)),
        ("control link, TCP payload", mbps(ceilings.control_tcp_bps)),
        ("control link, smallest frames", pps(ceilings.control_small_pps)),
    ];
    page.push_str("<h3>Ceilings by arithmetic</h3><table>");
    for (what, value) in lines {
        let value = value.unwrap_or_else(|| "none: not shaped, or carries no packets".to_owned());
        let _ = write!(page, "<tr><td>{what}</td><td class=\"n\">{value}</td></tr>");
    }
    page.push_str("</table>");
}

fn figures(page: &mut String, cell: &Cell) {
    page.push_str(
        "<h3>Figures</h3><table><tr><th>figure</th><th>by</th><th class=\"n\">n</th>\
         <th class=\"n\">mean</th><th class=\"n\">± 99 %</th><th class=\"n\">median</th>\
         <th class=\"n\">min</th><th class=\"n\">max</th><th class=\"n\">mdev</th>\
         <th>outliers</th></tr>",
    );
    for measurement in &cell.measurements {
        for figure in &measurement.figures {
            let Some(summary) = &figure.summary else { continue };
            let number = |value: f64| grouped(value, figure.decimals.max(1));
            let reported = summary.reported_mean();
            let half = match reported {
                Reported::Known { interval, .. } => number(interval.width() / 2.0),
                Reported::Single { .. } => "-".to_owned(),
                Reported::TooFew { .. } => reported.text(figure.decimals),
            };
            let outliers: Vec<String> =
                summary.outliers.iter().map(|index| format!("repeat {}", index + 1)).collect();
            let _ = write!(
                page,
                "<tr><td>{}, {}</td><td class=\"soft\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td>{}</td></tr>",
                escape(&figure.label),
                escape(&figure.unit),
                escape(&measurement.tools.join("; ")),
                summary.n,
                number(summary.mean),
                half,
                number(summary.median),
                number(summary.min),
                number(summary.max),
                number(summary.mdev),
                outliers.join(", "),
            );
        }
    }
    page.push_str("</table>");
    for measurement in &cell.measurements {
        for error in &measurement.errors {
            let (label, error) = (escape(&measurement.label), escape(error));
            let _ = write!(page, "<p class=\"bad\">{label}:</p><pre>{error}</pre>");
        }
        if let Some(limit) = &measurement.limit {
            let (label, why) = (escape(&measurement.label), escape(&limit.why));
            let _ = write!(
                page,
                "<p>{label}: {} <span class=\"soft\">({why})</span></p>",
                limit_text(limit)
            );
        }
    }
}

fn commands(page: &mut String, cell: &Cell) {
    let all = cell.commands.iter().chain(cell.measurements.iter().flat_map(|m| &m.commands));
    let lines: Vec<String> = all.map(|line| escape(line)).collect();
    if !lines.is_empty() {
        let _ = write!(page, "<h3>Commands</h3><pre>{}</pre>", lines.join("\n"));
    }
}

/// The rule, the notes, the programs and the parameters.
pub(super) fn method(page: &mut String, report: &Report) {
    let _ = write!(
        page,
        "<h2>How it was measured</h2><h3>The rule for the limiting part</h3><p>{}</p>",
        escape(&report.rule)
    );
    if let Some(version) = report.cells.first().map(|cell| cell.key.version) {
        let release = version.row().release;
        let _ = write!(
            page,
            "<h3>The arithmetic of the ceilings</h3><p>A UDP datagram of 1,470 bytes takes 1,536 \
             byte times of an Ethernet line, a TCP segment of 1,448 takes 1,538 (FCS, preamble and \
             gap counted). Through the controller the whole frame crosses the control link twice: \
             as packet-in with {} bytes more and as packet-out with {} bytes more (OpenFlow \
             {release}), inside a TCP stream that itself takes 1,538 byte times for every \
             1,448.</p>",
            packet_in_overhead(version),
            packet_out_overhead(version),
        );
    }
    page.push_str("<h3>Notes</h3>");
    for note in &report.notes {
        let _ = write!(page, "<p>{}</p>", escape(note));
    }
    let machine = &report.machine;
    let _ = write!(
        page,
        "<h3>Machine</h3><p>{}; {} cores; {} MiB of memory; {}; {}; {}; load average at the \
         start {}. Hosts, switch, controller and measuring programs share it.</p>",
        escape(&machine.cpu),
        machine.cores,
        grouped(machine.memory_mib as f64, 0),
        escape(&machine.kernel),
        escape(&machine.os),
        if machine.virtual_machine { "a virtual machine" } else { "no hypervisor seen" },
        escape(&machine.load_average),
    );
    page.push_str("<h3>Programs</h3><table>");
    for program in &report.programs {
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td class=\"soft\">{}</td></tr>",
            escape(&program.name),
            escape(&program.version),
            escape(&program.path)
        );
    }
    let timing = serde_json::to_string_pretty(&report.timing).unwrap_or_default();
    let _ =
        write!(page, "</table><h3>Parameters of the methods</h3><pre>{}</pre>", escape(&timing));
}
