//! `weir ctl reload` and SIGHUP: the file is read again, and what has changed in it is applied.
//!
//! The file as it was read last is compared with the file as it is now, so that ports which were
//! added by `weir ctl` stay.

use std::rc::Rc;

use tokio::signal::unix::Signal;

use super::answer::Records;
use super::edit::records;
use crate::agent::Bridges;
use crate::config::{Config, FileText, PortConfig};
use crate::reconcile::{CONFIG, Item, Manner, Refused, open_within, reconcile};

/// Reloads on every SIGHUP, for ever.
pub(crate) async fn reload_on_hangup(all: Rc<Bridges>, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        match reload(&all).await {
            Ok(records) if records.is_empty() => tracing::info!("SIGHUP: nothing has changed"),
            Ok(records) => {
                for record in records {
                    tracing::info!(change = record.text, "SIGHUP");
                }
            }
            Err(why) => tracing::warn!(why, "SIGHUP: not reloaded"),
        }
    }
}

/// Reloads; a record for each change.
pub(super) async fn reload(all: &Bridges) -> Result<Records, String> {
    let _alone = all.reload().await;
    let (args, before) = all.loaded().ok_or("the switch was started without a file to read")?;
    let file = args.config.clone().ok_or("the switch was started without --config")?;
    // Ports and bridges may change meanwhile.
    let name = file.display().to_string();
    let text = open_within(CONFIG, name, move || FileText::read(file)).await?;
    let text = text.map_err(|error| error.to_string())?;
    let changed = args.changed_since(&before, &text);
    let (mut config, difference) = changed.map_err(|error| error.to_string())?;
    let made = reconcile(all, Manner::OWN, |running| {
        let over = difference.over(running);
        over.map_err(|(bridge, why)| Refused::of(&bridge, Item::Bridge, why))
    });
    match made.await {
        Ok(outcome) if outcome.refused.is_empty() => {
            all.set_loaded(config);
            Ok(records(outcome.changes))
        }
        Ok(outcome) => {
            // What is not as the file says is tried again by the next reload.
            let running = all.config();
            outcome.refused.iter().for_each(|refused| take_back(&mut config, refused, &running));
            all.set_loaded(config);
            Err(texts(&outcome.refused))
        }
        Err(refused) => Err(format!("{}; nothing was changed", texts(&refused))),
    }
}

fn texts(refused: &[Refused]) -> String {
    let texts: Vec<String> = refused.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// Takes out of a configuration what is refused: it has what runs instead.
fn take_back(config: &mut Config, refused: &Refused, running: &Config) {
    let find =
        |bridge: &&crate::config::BridgeConfig| Some(&bridge.name) == refused.bridge.as_ref();
    let Some(runs) = running.bridges.iter().find(find) else {
        config.bridges.retain(|bridge| Some(&bridge.name) != refused.bridge.as_ref());
        return;
    };
    let mut bridges = config.bridges.iter_mut();
    let Some(bridge) = bridges.find(|bridge| bridge.name == runs.name) else { return };
    match refused.item {
        Item::Bridge => {}
        Item::Key(_) => bridge.listeners.clone_from(&runs.listeners),
        Item::Port(number) => {
            let Some(refused) = bridge.remove_port(number) else { return };
            let device = refused.spec.exclusive();
            let is_it = |port: &&PortConfig| match &device {
                Some(_) => port.spec.exclusive() == device,
                // Others may be the same; this one has its number, or no other one of the file.
                None => {
                    let is_others = bridge.ports.iter().any(|other| other.number == port.number);
                    port.spec == refused.spec && !is_others
                }
            };
            let mut found = runs.ports.iter().filter(is_it).cloned();
            let same = found.clone().find(|port| port.number == number);
            if let Some(port) = same.or_else(|| found.next()) {
                bridge.remove_port(port.number);
                let set = runs.port_set(port.number);
                bridge.add_port(port, set);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use openflow::PortNo;

    use super::{Item, Refused, take_back};
    use crate::config::{Config, parse_config};

    fn config(text: &str) -> Config {
        parse_config(text).unwrap().resolve().unwrap()
    }

    #[test]
    fn what_is_refused_is_in_the_file_as_it_runs() {
        let cases = [
            // A port with a device of its own has it under another number, or in another way.
            ("3=tap:a?mtu=9000", "3=tap:a", 3, vec!["3=tap:a"]),
            ("4=tap:a", "3=tap:a", 4, vec!["3=tap:a"]),
            // Of those that may be the same, it is the one of its number, or the one that is left.
            ("1=null:x\", \"2=null:x", "1=null:x\", \"2=null:x", 2, vec!["1=null:x", "2=null:x"]),
            ("1=null:x\", \"5=null:x", "1=null:x\", \"2=null:x", 5, vec!["1=null:x", "2=null:x"]),
            ("1=null:y", "1=null:x", 1, vec![]),
        ];
        for (wanted, runs, number, expected) in cases {
            let ports = |text: &str| config(&format!("port = [\"{text}\"]"));
            let mut wanted = ports(wanted);
            let refused = Refused::of("br0", Item::Port(PortNo(number)), "for a test");
            take_back(&mut wanted, &refused, &ports(runs));
            let found: Vec<String> =
                wanted.bridges[0].ports.iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{runs}: {number}");
        }
        // Its settings are those that run.
        let set = |rate: &str| config(&format!("port = [\"1=null:x\"]\nrate = [\"1={rate}\"]"));
        let mut wanted = set("2M");
        take_back(&mut wanted, &Refused::of("br0", Item::Port(PortNo(1)), ""), &set("1M"));
        assert_eq!(wanted.bridges[0].port_set(PortNo(1)).rate_bps, Some(1_000_000));
    }
}
