//! A datapath workload: a trace and the flow entries it meets, as two files of one name, or made.
//!
//! `NAME.pcap` enters port 1 over and over; `NAME.flows` is one flow entry a line in the syntax of
//! `ovs-ofctl`, and a correct switch sends every packet out of port 2. Nothing here may depend on
//! what the workload is about.

pub(crate) mod made;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::text::parse_flow_mod;
use openflow::{Action, Field, Instruction, PortNo};

use crate::settings::Replay;

/// One workload, whose files are there.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) trace: PathBuf,
    /// Number of flow entries that are made; else they are in `NAME.flows` beside the trace.
    pub(crate) entries: Option<u32>,
    /// Packets of the trace.
    pub(crate) frames: usize,
}

impl Workload {
    /// Workload of a switch's replay; files that are made lie in `scratch`.
    pub(crate) fn of(replay: &Replay, scratch: &Path) -> Result<Self> {
        replay.check()?;
        if let (Some(folder), Some(name)) = (&replay.folder, &replay.name) {
            return Self::find(folder, name);
        }
        let flows = replay.flows.unwrap_or_default();
        Ok(Self {
            name: format!("{flows} flows"),
            trace: made::trace(scratch, flows)?,
            entries: replay.entries,
            frames: flows as usize,
        })
    }

    /// The workload `name` of the folder; an error has what makes its files.
    pub(crate) fn find(folder: &Path, name: &str) -> Result<Self> {
        let folder = std::path::absolute(folder).context("cannot find the current folder")?;
        let file = |ending: &str| {
            let path = folder.join(format!("{name}.{ending}"));
            ensure!(
                path.is_file(),
                "no workload {name:?}: there is no file {}; \
                 contrib/workloads/workloads.py make NAME FOLDER writes one, \
                 contrib/workloads/workloads.py list names them",
                path.display()
            );
            Ok(path)
        };
        let (trace, _) = (file("pcap")?, file("flows")?);
        let place = || trace.display().to_string();
        let bytes = files::read(&trace, files::CAPTURE_MAX).with_context(place)?;
        let capture = netdev::pcap::Capture::parse(bytes).with_context(place)?;
        ensure!(!capture.is_empty(), "{}: no packet", place());
        Ok(Self { name: name.to_owned(), trace, entries: None, frames: capture.len() })
    }

    /// The flow entries behind those that are given, each once for each of that many pairs of
    /// ports, read as they are asked for. One that is not understood is an error with its line.
    pub(crate) fn flow_mods<'a>(
        &self,
        given: impl Iterator<Item = Result<FlowMod>> + 'a,
        pairs: usize,
    ) -> Result<Box<dyn Iterator<Item = Result<FlowMod>> + 'a>> {
        let own: Box<dyn Iterator<Item = Result<FlowMod>>> = match self.entries {
            None => Box::new(of_file(self.trace.with_extension("flows"))?),
            Some(count) => Box::new(made::entries(count)),
        };
        let entries = given.chain(own);
        if pairs == 1 {
            return Ok(Box::new(entries));
        }
        Ok(Box::new(entries.flat_map(move |entry| match entry {
            Err(error) => vec![Err(error)],
            Ok(entry) => (0..pairs as u32).map(|pair| Ok(for_pair(&entry, pair))).collect(),
        })))
    }
}

/// The flow entries of a file, read as they are asked for.
fn of_file(path: PathBuf) -> Result<impl Iterator<Item = Result<FlowMod>>> {
    let file = File::open(&path).with_context(|| format!("{}", path.display()))?;
    let lines = BufReader::with_capacity(1 << 20, file).lines().enumerate();
    Ok(lines.filter_map(move |(number, line)| {
        let place = || format!("{}, line {}", path.display(), number + 1);
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(Err(error).with_context(place)),
        };
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        Some(parse_flow_mod(text, FlowModCommand::Add).with_context(place))
    }))
}

/// The entry for one of several pairs of ports, numbered from 0: that of pair 0 has ports 1 and 2,
/// the next 3 and 4. Packets of a pair leave by it, so each entry asks for its port of entry too.
fn for_pair(entry: &FlowMod, pair: u32) -> FlowMod {
    let mut entry = entry.clone();
    entry.matching.set(Field::InPort, u128::from(2 * pair + 1), u128::from(u32::MAX));
    for instruction in &mut entry.instructions {
        let (Instruction::WriteActions(actions) | Instruction::ApplyActions(actions)) = instruction
        else {
            continue;
        };
        for action in actions {
            if let Action::Output { port: port @ PortNo(2), .. } = action {
                *port = PortNo(2 * pair + 2);
            }
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use openflow::flow::FlowModCommand;
    use openflow::text::{format_flow_mod, parse_flow_mod};

    use super::{Workload, for_pair};
    use crate::settings::Replay;

    fn workload_of(folder: &std::path::Path, entries: &str) -> Workload {
        let mut trace = netdev::pcap::file_header();
        assert!(netdev::pcap::append_record(&mut trace, Duration::ZERO, &[1; 60]));
        std::fs::write(folder.join("w.pcap"), trace).unwrap();
        std::fs::write(folder.join("w.flows"), entries).unwrap();
        Workload::find(folder, "w").unwrap()
    }

    #[test]
    fn every_pair_of_ports_has_its_entries() {
        let text = "priority=7,ip,nw_dst=10.0.0.1,actions=dec_ttl,output:2";
        let entry = parse_flow_mod(text, FlowModCommand::Add).unwrap();
        let text = format_flow_mod(&for_pair(&entry, 1));
        assert!(text.contains("in_port=3") && text.contains("output:4"), "{text}");
        assert!(text.contains("nw_dst=10.0.0.1") && text.contains("priority=7"), "{text}");
    }

    #[test]
    fn a_workload_is_found_and_its_entries_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = Workload::find(folder.path(), "w").unwrap_err().to_string();
        assert!(text.contains("w.pcap") && text.contains("workloads.py make"), "{text}");
        let entries = "# a comment\n\nin_port=1,actions=output:2\nin_port=x,actions=drop\n";
        let workload = workload_of(folder.path(), entries);
        assert_eq!((workload.frames, workload.name.as_str()), (1, "w"));
        let read: Vec<_> = workload.flow_mods(std::iter::empty(), 1).unwrap().collect();
        assert_eq!((read.len(), read[0].is_ok()), (2, true));
        let text = format!("{:#}", read[1].as_ref().unwrap_err());
        assert!(text.contains("w.flows, line 4: column 9"), "{text}");
    }

    #[test]
    fn a_workload_is_made_where_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let made = Replay { flows: Some(5), entries: Some(3), ..Replay::default() };
        let workload = Workload::of(&made, folder.path()).unwrap();
        assert_eq!((workload.frames, workload.entries), (5, Some(3)));
        assert!(workload.trace.starts_with(folder.path()) && workload.trace.is_file());
        let given = parse_flow_mod("actions=drop", FlowModCommand::Add).unwrap();
        let all = workload.flow_mods([Ok(given)].into_iter(), 2).unwrap();
        assert_eq!(all.count(), 8, "four for each pair of ports");
    }
}
