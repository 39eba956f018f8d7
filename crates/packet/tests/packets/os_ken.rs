//! The OpenFlow 1.3 cases of os-ken, as far as packets go: what matches, and what each action
//! makes of a frame.
//!
//! `vectors/tools/os_ken_cases.py` wrote them: both frames of a case are bytes that os-ken
//! serialised, checksums included. The walk over the tables here is the least that the cases need;
//! the pipeline itself is tested where it lives.

use crate::written::number;
use openflow::{Field, Match, PortNo};
use packet::{Meta, PacketBuf, extract, rewrite};
use std::collections::BTreeMap;
use testkit::cases::{self, Case, Step};

#[derive(Debug)]
struct Flow {
    wanted: Match,
    actions: Vec<(String, String)>,
}

fn flow(text: &str) -> (u8, Flow) {
    let (wanted, actions) = text.split_once("actions=").unwrap();
    let mut table = 0;
    let mut parsed = Match::any();
    for pair in wanted.split(',').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        if name == "table" {
            table = value.parse().unwrap();
            continue;
        }
        let field = Field::from_name(name).unwrap();
        let (value, mask) = match value.split_once('/') {
            Some((value, mask)) => (number(value), number(mask)),
            None => (number(value), field.full_mask()),
        };
        assert_eq!(parsed.add(field, value, mask), Ok(()), "{pair}");
    }
    let split = |action: &str| {
        let (name, argument) = action.split_once(':').unwrap_or((action, ""));
        (name.to_owned(), argument.to_owned())
    };
    (table, Flow { wanted: parsed, actions: actions.split(',').map(split).collect() })
}

/// The frames that leave, and their ports, for a frame that comes in.
fn walk(flows: &BTreeMap<u8, Flow>, port: u32, frame: &[u8]) -> Vec<(u32, PacketBuf)> {
    let mut buf = PacketBuf::from_slice(frame);
    let mut meta = Meta::port(PortNo(port));
    let mut out = Vec::new();
    let mut table = Some(0);
    while let Some(flow) = table.take().and_then(|number| flows.get(&number)) {
        if !extract(buf.bytes(), &meta).matches(&flow.wanted) {
            break;
        }
        for (name, argument) in &flow.actions {
            match name.as_str() {
                "output" => out.push((argument.parse().unwrap(), buf.clone())),
                "goto_table" => table = Some(argument.parse().unwrap()),
                "write_metadata" => {
                    meta.metadata = number(argument.split_once('/').unwrap().0) as u64;
                }
                _ => assert!(act(&mut buf, &mut meta, name, argument), "{name} did nothing"),
            }
        }
    }
    out
}

fn act(buf: &mut PacketBuf, meta: &mut Meta, name: &str, argument: &str) -> bool {
    match name {
        "copy_ttl_out" => rewrite::copy_ttl_out(buf),
        "copy_ttl_in" => rewrite::copy_ttl_in(buf),
        "set_mpls_ttl" => rewrite::set_mpls_ttl(buf, number(argument) as u8),
        "dec_mpls_ttl" => rewrite::dec_mpls_ttl(buf).unwrap(),
        "mod_nw_ttl" => rewrite::set_nw_ttl(buf, number(argument) as u8),
        "dec_ttl" => rewrite::dec_nw_ttl(buf).unwrap(),
        "push_vlan" => rewrite::push_vlan(buf, number(argument) as u16),
        "push_mpls" => rewrite::push_mpls(buf, number(argument) as u16),
        "push_pbb" => rewrite::push_pbb(buf, number(argument) as u16),
        "pop_vlan" => rewrite::pop_vlan(buf),
        "pop_mpls" => rewrite::pop_mpls(buf, number(argument) as u16),
        "pop_pbb" => rewrite::pop_pbb(buf),
        "set_field" => {
            let (value, field) = argument.split_once("->").unwrap();
            let (value, field) = (number(value), Field::from_name(field).unwrap());
            if field == Field::TunnelId {
                meta.tunnel_id = value as u64;
                return true;
            }
            rewrite::set_field(buf, field, value)
        }
        other => panic!("unknown action {other}"),
    }
}

fn run(case: &Case) -> Result<(), String> {
    let mut flows = BTreeMap::new();
    let mut left = Vec::new();
    for (line, step) in &case.steps {
        match step {
            Step::Flow(text) => {
                let (table, flow) = flow(text);
                assert!(flows.insert(table, flow).is_none(), "line {line}: one entry a table");
            }
            Step::In { port, frame } => left = walk(&flows, *port, frame),
            Step::Out { port, queue: None, frame } => {
                let mut wanted = (*port, PacketBuf::from_slice(frame));
                // os-ken's frames are as long as Ethernet's shortest; padding is the port's task.
                left.iter_mut().for_each(|(_, buf)| buf.pad_to(60));
                wanted.1.pad_to(60);
                if left.first() != Some(&wanted) {
                    return Err(format!("line {line}: {left:?} instead of {wanted:?}"));
                }
                left.remove(0);
            }
            Step::Version(_) => {}
            other => return Err(format!("line {line}: not in these cases: {other:?}")),
        }
    }
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} left as well")) }
}

#[test]
fn frames_match_and_change_as_os_ken_expects() {
    let cases = cases::load_dir(&testkit::cases_dir("os-ken")).unwrap();
    assert_eq!(cases.len(), 711);
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let what = run(case).err()?;
            Some(format!("{} ({})\n  {what}", case.name, case.note.as_deref().unwrap_or_default()))
        })
        .collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
