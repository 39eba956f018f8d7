//! A row of the table `Mirror` as a mirror of the datapath.

use std::collections::{BTreeMap, BTreeSet};

use datapath::{Mirror, MirrorOutput, SNAPLEN_MIN, Vids};
use openflow::PortNo;
use ovsdb::{Row, Uuid};

/// Reads a row; `ports` has the numbers of the bridge's rows of the table `Port`. A selected port
/// that has no number selects nothing.
///
/// # Errors
/// There is no destination, or no way to reach it.
pub(super) fn mirror(row: &Row, ports: &BTreeMap<Uuid, PortNo>) -> Result<Mirror, &'static str> {
    let numbers = |column: &str| -> BTreeSet<PortNo> {
        row.references(column).filter_map(|uuid| ports.get(&uuid).copied()).collect()
    };
    let vid = |vid: i64| u16::try_from(vid).ok().filter(|vid| *vid < 4096);
    let port = row.references("output_port").next();
    let output = match (port, row.integer("output_vlan").and_then(vid)) {
        (Some(port), _) => {
            MirrorOutput::Port(*ports.get(&port).ok_or("its output_port is no port of the bridge")?)
        }
        (None, Some(vid)) if vid != 0 => MirrorOutput::Vlan(vid),
        (None, _) => return Err("it has neither output_port nor output_vlan"),
    };
    let (mut sources, mut destinations) = (numbers("select_src_port"), numbers("select_dst_port"));
    if let MirrorOutput::Port(port) = output {
        // It takes nothing else, so there is nothing to select.
        sources.remove(&port);
        destinations.remove(&port);
    }
    let mut vlans = Vids::ALL;
    row.integers("select_vlan").filter_map(vid).for_each(|vid| vlans.add(vid));
    let snaplen = row.integer("snaplen").and_then(|len| u16::try_from(len).ok());
    Ok(Mirror {
        name: row.text("name").unwrap_or_default().to_owned(),
        selects_all: row.is_true("select_all"),
        sources,
        destinations,
        vlans,
        output,
        snaplen: snaplen.filter(|len| *len >= SNAPLEN_MIN),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use openflow::PortNo;
    use ovsdb::{Atom, Datum, Row, Uuid};

    use super::mirror;

    #[test]
    fn a_row_is_a_mirror_or_has_a_fault() {
        let ports = BTreeMap::from([(Uuid(1), PortNo(1)), (Uuid(2), PortNo(7))]);
        let port = |uuid: u128| Datum::one(Atom::Uuid(Uuid(uuid)));
        let row = |columns: &[(&'static str, Datum)]| {
            mirror(
                &Row::of([("name", Datum::one("m"))].into_iter().chain(columns.to_vec())),
                &ports,
            )
        };
        let wanted = |text: &str| Ok(text.parse().unwrap());
        let (src, all) = (("select_src_port", port(1)), ("select_all", Datum::one(true)));
        let output = ("output_port", port(2));
        assert_eq!(row(&[src.clone(), output.clone()]), wanted("m,src=1,output=7"));
        let vlans = [all.clone(), ("output_vlan", Datum::one(9)), ("select_vlan", Datum::one(5))];
        assert_eq!(row(&vlans), wanted("m,all,vlan=5,output-vlan=9"));
        let itself = [src, ("select_dst_port", port(2)), output, ("snaplen", Datum::one(64))];
        assert_eq!(row(&itself), wanted("m,src=1,output=7,snaplen=64"));
        assert!(row(&[all.clone(), ("output_port", port(3))]).unwrap_err().contains("no port"));
        for vid in [0, -1, 4096] {
            assert!(row(&[all.clone(), ("output_vlan", Datum::one(vid))]).is_err(), "{vid}");
        }
        assert!(row(&[all]).unwrap_err().contains("neither"));
    }
}
