//! Edits of what runs, by words of the control socket.
//!
//! A word changes one thing, so that its refusal is one line without the place.

use openflow::PortNo;
use serde_json::json;

use super::answer::{Record, Records};
use crate::agent::Bridges;
use crate::config::{BridgeConfig, Config};
use crate::reconcile::{Change, Item, Manner, Refused, reconcile};

/// Carries out an edit of the configuration that runs.
pub(super) async fn edit(
    all: &Bridges,
    change: impl FnOnce(&mut Config) -> Result<(), String>,
) -> Result<(), String> {
    let made = reconcile(all, Manner::OWN, |running| {
        let mut wanted = running.clone();
        change(&mut wanted).map_err(Refused::whole)?;
        Ok(wanted)
    });
    let refused = match made.await {
        Ok(outcome) => outcome.refused,
        Err(refused) => refused,
    };
    if refused.is_empty() {
        return Ok(());
    }
    let why: Vec<String> = refused.into_iter().map(without_place).collect();
    Err(why.join("; "))
}

/// Carries out an edit of the bridge of this name.
pub(super) async fn edit_bridge(
    all: &Bridges,
    name: &str,
    change: impl FnOnce(&mut BridgeConfig) -> Result<(), String>,
) -> Result<(), String> {
    let edit_it = |config: &mut Config| {
        let found = config.bridges.iter_mut().find(|bridge| bridge.name == name);
        change(found.ok_or_else(|| format!("bridge {name} is gone"))?)
    };
    edit(all, edit_it).await
}

fn without_place(Refused { bridge, item, why }: Refused) -> String {
    match (bridge, item) {
        (_, Item::Port(_) | Item::Key("port")) | (None, Item::Bridge) => why,
        (bridge, item @ (Item::Bridge | Item::Key(_))) => Refused { bridge, item, why }.to_string(),
    }
}

/// A record for each change.
pub(super) fn records(changes: Vec<Change>) -> Records {
    let record = |Change { bridge, change, what }| match what {
        Some(what) => Record {
            text: format!("bridge {bridge}: {change}: {what}"),
            value: json!({ "bridge": bridge, "change": change, "what": what }),
        },
        None => Record {
            text: format!("bridge {bridge}: {change}"),
            value: json!({ "bridge": bridge, "change": change }),
        },
    };
    changes.into_iter().map(record).collect()
}

/// Whether a number may be a port's.
pub(super) fn check_number(number: PortNo) -> Result<PortNo, String> {
    if number.0 == 0 || number > PortNo::MAX {
        return Err(format!("port number {number} must be 1 to {}", PortNo::MAX.0));
    }
    Ok(number)
}
