//! `weir ctl caches`: hits and misses of the caches, level by level, and switching them.

use datapath::fast::{Caches, ForwarderFigures};
use serde_json::{Value, json};

use super::answer::{Record, Records};
use super::edit::edit_bridge;
use crate::agent::{Agent, Bridges};
use crate::config;
use crate::reconcile::{gone, no_tables};

/// Switches the caches if `set` is given; one record for each worker.
pub(super) async fn caches(
    all: &Bridges,
    agent: &Agent,
    set: Option<&str>,
) -> Result<Records, String> {
    if let Some(text) = set {
        let wanted: config::CachesArg = text.parse()?;
        let has_tier = agent.bridge.ask(|worker| worker.has_tier()).await.ok_or_else(gone)?;
        if wanted.0.kernel && !has_tier.contains(&true) {
            let reason = "no port of the bridge is in the kernel tier: weir ctl ports says why (a \
                          switch that was started without it in --caches needs a new start)";
            return Err(reason.to_owned());
        }
        let set = |bridge: &mut config::BridgeConfig| {
            bridge.caches = wanted;
            Ok(())
        };
        edit_bridge(all, &agent.name, set).await?;
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
        "worker {worker}: caches {}\n  {}{}\n  lines: {} of {} used, {} decisions went for new \
         ones, {} found no place\n  programs: {} kept, {} compiled",
        config::CachesArg(set),
        hits_text(set, figures),
        kernel_text(set, figures),
        figures.lines_used,
        figures.lines,
        figures.evictions,
        figures.refused,
        figures.programs,
        figures.compiled,
    )
}

/// The figures of the kernel tier, where it is on.
fn kernel_text(set: Caches, figures: &ForwarderFigures) -> String {
    if !set.kernel {
        return String::new();
    }
    format!(
        "\n  kernel: {} decisions, {} went for new ones, {} found no place",
        figures.kernel_entries, figures.kernel_evictions, figures.kernel_refused,
    )
}

/// The number of frames that each level decided.
pub(super) fn hits_text(set: Caches, figures: &ForwarderFigures) -> String {
    let in_kernel = match set.kernel {
        true => format!("{} in the kernel, ", figures.kernel_hits),
        false => String::new(),
    };
    format!(
        "decided: {in_kernel}{} by port, {} by the frame cache ({}), {} by the key cache ({}), \
         {} by tables",
        figures.port_hits,
        figures.frame_hits,
        rate(figures.frame_hits, figures.frame_misses),
        figures.key_hits,
        rate(figures.key_hits, figures.key_misses),
        figures.by_tables(),
    )
}

fn rate(hits: u64, misses: u64) -> String {
    share(hits, misses).map_or("-".to_owned(), |share| format!("{:.1} % hits", 100.0 * share))
}

fn share(hits: u64, misses: u64) -> Option<f64> {
    let asked = hits + misses;
    (asked > 0).then(|| hits as f64 / asked as f64)
}

/// The figures as a value. The names with `exact_` and `flow_` and `recorded` are earlier ones of
/// the frame cache, the key cache and `compiled`, for scripts that read them.
pub(super) fn value(set: Caches, figures: &ForwarderFigures) -> Value {
    let (frame, key) = (
        share(figures.frame_hits, figures.frame_misses),
        share(figures.key_hits, figures.key_misses),
    );
    json!({
        "in_use": config::CachesArg(set).to_string(),
        "kernel_hits": figures.kernel_hits,
        "kernel_entries": figures.kernel_entries,
        "kernel_evictions": figures.kernel_evictions,
        "kernel_refused": figures.kernel_refused,
        "port_hits": figures.port_hits,
        "frame_hits": figures.frame_hits,
        "frame_misses": figures.frame_misses,
        "frame_hit_rate": frame,
        "key_hits": figures.key_hits,
        "key_misses": figures.key_misses,
        "key_hit_rate": key,
        "by_tables": figures.by_tables(),
        "evictions": figures.evictions,
        "refused": figures.refused,
        "lines": figures.lines,
        "lines_used": figures.lines_used,
        "programs": figures.programs,
        "compiled": figures.compiled,
        "walked": figures.walked,
        "exact_hits": figures.frame_hits,
        "exact_misses": figures.frame_misses,
        "exact_hit_rate": frame,
        "flow_hits": figures.key_hits,
        "flow_misses": figures.key_misses,
        "flow_hit_rate": key,
        "recorded": figures.compiled,
    })
}

#[cfg(test)]
mod tests {
    use datapath::fast::{Caches, ForwarderFigures};

    use super::{text, value};

    #[test]
    fn levels_are_counted_apart() {
        let figures = ForwarderFigures {
            packets: 100,
            frame_hits: 60,
            frame_misses: 20,
            key_hits: 5,
            key_misses: 15,
            port_hits: 20,
            ..ForwarderFigures::default()
        };
        let set = Caches { frame: true, key: false, kernel: false };
        let shown = value(set, &figures);
        assert_eq!(
            (shown["frame_hit_rate"].as_f64(), shown["by_tables"].as_u64()),
            (Some(0.75), Some(15))
        );
        assert_eq!(
            (shown["key_hit_rate"].as_f64(), shown["in_use"].as_str()),
            (Some(0.25), Some("frame"))
        );
        let shown = text(2, set, &figures);
        assert!(shown.starts_with("worker 2: caches frame\n  decided: 20 by port"), "{shown}");
    }
}
