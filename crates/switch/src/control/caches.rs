//! `weir ctl caches`: how the caches of decisions do, level by level, and switching them.

use datapath::fast::{Caches, ForwarderFigures};
use serde_json::{Value, json};

use super::answer::{Record, Records, gone, no_tables};
use crate::agent::Agent;
use crate::config;

/// Switches the caches where that is asked; one record for each worker.
pub(super) async fn caches(agent: &Agent, set: Option<&str>) -> Result<Records, String> {
    if let Some(text) = set {
        let config::Caches(wanted) = text.parse()?;
        let told = agent.bridge.ask(move |worker| worker.set_caches(wanted)).await;
        told.ok_or_else(gone)?;
    }
    let states = agent.bridge.worker_states().await.ok_or_else(gone)?;
    let found: Option<Vec<_>> = states
        .into_iter()
        .map(|state| state.forwarder.map(|(set, figures)| (state.index, set, figures)))
        .collect();
    let record = |(worker, set, figures): &(usize, Caches, ForwarderFigures)| {
        let mut value = value(*set, figures);
        value["worker"] = (*worker).into();
        Record { text: text(*worker, *set, figures), value }
    };
    Ok(found.ok_or_else(no_tables)?.iter().map(record).collect())
}

fn text(worker: usize, set: Caches, figures: &ForwarderFigures) -> String {
    format!(
        "worker {worker}: caches {}\n  {}\n  lines: {} of {} used, {} decisions went for new ones, \
         {} found no place\n  programs: {} kept, {} recorded",
        config::Caches(set),
        hits_text(figures),
        figures.lines_used,
        figures.lines,
        figures.evictions,
        figures.refused,
        figures.programs,
        figures.recorded,
    )
}

/// Who decided about how many frames.
pub(super) fn hits_text(figures: &ForwarderFigures) -> String {
    format!(
        "decided: {} by port, {} by the exact cache ({}), {} by the flow cache ({}), {} by tables",
        figures.port_hits,
        figures.exact_hits,
        rate(figures.exact_hits, figures.exact_misses),
        figures.flow_hits,
        rate(figures.flow_hits, figures.flow_misses),
        by_tables(figures),
    )
}

/// Frames that neither their port nor a cache decided about.
fn by_tables(figures: &ForwarderFigures) -> u64 {
    let decided = figures.port_hits + figures.exact_hits + figures.flow_hits;
    figures.packets.saturating_sub(decided)
}

fn rate(hits: u64, misses: u64) -> String {
    share(hits, misses).map_or("-".to_owned(), |share| format!("{:.1} % hits", 100.0 * share))
}

fn share(hits: u64, misses: u64) -> Option<f64> {
    let asked = hits + misses;
    (asked > 0).then(|| hits as f64 / asked as f64)
}

/// The figures as a value.
pub(super) fn value(set: Caches, figures: &ForwarderFigures) -> Value {
    json!({
        "in_use": config::Caches(set).to_string(),
        "port_hits": figures.port_hits,
        "exact_hits": figures.exact_hits,
        "exact_misses": figures.exact_misses,
        "exact_hit_rate": share(figures.exact_hits, figures.exact_misses),
        "flow_hits": figures.flow_hits,
        "flow_misses": figures.flow_misses,
        "flow_hit_rate": share(figures.flow_hits, figures.flow_misses),
        "by_tables": by_tables(figures),
        "evictions": figures.evictions,
        "refused": figures.refused,
        "lines": figures.lines,
        "lines_used": figures.lines_used,
        "programs": figures.programs,
        "recorded": figures.recorded,
        "walked": figures.walked,
    })
}

#[cfg(test)]
mod tests {
    use datapath::fast::{Caches, ForwarderFigures};

    use super::{text, value};

    #[test]
    fn levels_are_told_apart() {
        let figures = ForwarderFigures {
            packets: 100,
            exact_hits: 60,
            exact_misses: 20,
            flow_hits: 5,
            flow_misses: 15,
            port_hits: 20,
            ..ForwarderFigures::default()
        };
        let set = Caches { exact: true, flow: false };
        let told = value(set, &figures);
        assert_eq!(
            (told["exact_hit_rate"].as_f64(), told["by_tables"].as_u64()),
            (Some(0.75), Some(15))
        );
        assert_eq!(
            (told["flow_hit_rate"].as_f64(), told["in_use"].as_str()),
            (Some(0.25), Some("exact"))
        );
        let told = text(2, set, &figures);
        assert!(told.starts_with("worker 2: caches exact\n  decided: 20 by port"), "{told}");
    }
}
