//! Features: a message for each, which the switch takes or refuses.

use openflow::Version;
use openflow::message::{Message, MultipartReplyBody, MultipartRequestBody};

use super::{CheckError, CheckedSwitch, Finding, Truth, change};

/// A feature: its name, and the text of the match, the actions, or the whole message.
type Row = (&'static str, &'static str);

/// Features of an area, and the versions that have them.
type Area = (&'static str, &'static [Row], fn(Version) -> bool);

const AREAS: &[Area] = &[
    ("match", MATCHES, |_| true),
    ("match", MATCHES_OXM, Version::has_oxm),
    ("action", ACTIONS, |_| true),
    ("action", ACTIONS_OXM, Version::has_oxm),
    ("group", GROUPS, Version::has_groups),
    ("meter", METERS, Version::has_meters),
];

/// Match fields of all versions, exact and under a mask.
const MATCHES: &[Row] = &[
    ("in_port", "in_port=1"),
    ("eth_dst", "dl_dst=02:00:00:00:00:02"),
    ("eth_src", "dl_src=02:00:00:00:00:01"),
    ("eth_type", "dl_type=0x88b5"),
    ("vlan_vid", "dl_vlan=5"),
    ("vlan_pcp", "dl_vlan=5,dl_vlan_pcp=3"),
    ("ipv4_src", "ip,nw_src=10.0.0.1"),
    ("ipv4_dst", "ip,nw_dst=10.0.0.2"),
    ("ipv4_src, masked", "ip,nw_src=10.0.0.0/8"),
    ("ipv4_dst, masked", "ip,nw_dst=10.0.0.0/8"),
    ("ip_proto", "ip,nw_proto=89"),
    ("ip_dscp", "ip,nw_tos=32"),
    ("tcp_src", "tcp,tp_src=80"),
    ("tcp_dst", "tcp,tp_dst=80"),
    ("udp_src", "udp,tp_src=53"),
    ("udp_dst", "udp,tp_dst=53"),
    ("icmpv4_type", "icmp,icmp_type=8"),
    ("icmpv4_code", "icmp,icmp_type=8,icmp_code=0"),
    ("arp_op", "arp,arp_op=1"),
    ("arp_spa", "arp,arp_spa=10.0.0.1"),
];

/// Match fields of versions with OXM.
const MATCHES_OXM: &[Row] = &[
    ("eth_dst, masked", "dl_dst=02:00:00:00:00:00/ff:00:00:00:00:00"),
    ("eth_src, masked", "dl_src=02:00:00:00:00:00/ff:00:00:00:00:00"),
    ("vlan_vid, masked", "vlan_vid=0x1000/0x1000"),
    ("ip_ecn", "ip,nw_ecn=1"),
    ("metadata", "metadata=5"),
    ("metadata, masked", "metadata=0x10/0xf0"),
    ("tunnel_id", "tun_id=7"),
    ("arp_sha", "arp,arp_sha=02:00:00:00:00:01"),
    ("sctp_dst", "sctp,tp_dst=80"),
    ("ipv6_src", "ipv6,ipv6_src=2001:db8::1"),
    ("ipv6_dst, masked", "ipv6,ipv6_dst=2001:db8::/32"),
    ("ipv6_flabel", "ipv6,ipv6_label=5"),
    ("icmpv6_type", "icmp6,icmpv6_type=135"),
    ("ipv6_nd_target", "icmp6,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8::1"),
    ("mpls_label", "mpls,mpls_label=16"),
    ("mpls_tc", "mpls,mpls_tc=2"),
    ("mpls_bos", "mpls,mpls_bos=1"),
    ("tcp_src, masked", "tcp,tp_src=0x400/0xfc00"),
    ("tcp_flags, masked", "tcp,tcp_flags=+syn-ack"),
    ("nw_ttl", "ip,nw_ttl=64"),
    ("ip_frag", "ip,ip_frag=no"),
    ("pkt_mark", "pkt_mark=1"),
];

/// Actions of all versions.
const ACTIONS: &[Row] = &[
    ("output", "output:2"),
    ("output, in_port", "in_port"),
    ("output, flood", "flood"),
    ("output, all", "all"),
    ("output, controller", "controller"),
    ("output, normal", "normal"),
    ("set eth_src", "mod_dl_src:02:00:00:00:00:99,output:2"),
    ("set eth_dst", "mod_dl_dst:02:00:00:00:00:99,output:2"),
    ("set vlan_vid", "mod_vlan_vid:7,output:2"),
    ("strip vlan", "strip_vlan,output:2"),
    ("set ipv4_src", "mod_nw_src:10.0.0.9,output:2"),
    ("set ipv4_dst", "mod_nw_dst:10.0.0.9,output:2"),
    ("set ip_dscp", "mod_nw_tos:32,output:2"),
    ("set udp_dst", "mod_tp_dst:9,output:2"),
    ("set_queue", "set_queue:1,output:2"),
];

/// Actions and instructions of versions with OXM.
const ACTIONS_OXM: &[Row] = &[
    ("push_vlan 0x8100", "push_vlan:0x8100,set_field:0x1007->vlan_vid,output:2"),
    ("push_vlan 0x88a8", "push_vlan:0x88a8,set_field:0x1007->vlan_vid,output:2"),
    ("push_mpls", "push_mpls:0x8847,set_field:16->mpls_label,output:2"),
    ("push_pbb", "push_pbb:0x88e7,output:2"),
    ("dec_nw_ttl", "dec_ttl,output:2"),
    ("write_actions", "write_actions(output:2)"),
    ("clear_actions", "clear_actions"),
    ("write_metadata", "write_metadata:5,goto_table:1"),
    ("goto_table", "goto_table:1"),
];

const GROUPS: &[Row] = &[
    ("all", "group_id=1,type=all,bucket=output:1,bucket=output:2"),
    ("indirect", "group_id=1,type=indirect,bucket=output:2"),
    ("select", "group_id=1,type=select,bucket=weight:1,output:1,bucket=weight:1,output:2"),
    ("fast failover", "group_id=1,type=ff,bucket=watch_port:2,output:2"),
];

const METERS: &[Row] = &[
    ("kbps, drop", "meter=1,kbps,band=type=drop,rate=1000"),
    ("pktps, drop", "meter=1,pktps,band=type=drop,rate=1000"),
    ("burst", "meter=1,kbps,burst,band=type=drop,rate=1000,burst_size=100"),
    ("dscp remark", "meter=1,kbps,band=type=dscp_remark,rate=1000,prec_level=1"),
];

/// The message that asks for a feature of an area.
fn message(area: &str, text: &str) -> Result<Message, CheckError> {
    // What the actions need of a packet is there.
    let matching = if text.starts_with("strip_vlan") { "dl_vlan=5" } else { "udp" };
    match area {
        "match" => change("flow", &format!("priority=9,{text},actions=output:2")),
        "action" => change("flow", &format!("priority=9,{matching},actions={text}")),
        key => change(key, text),
    }
}

/// Asks for every feature; each begins with empty tables.
pub fn probe_features(
    switch: &mut dyn CheckedSwitch,
    version: Version,
) -> Result<Vec<Finding>, CheckError> {
    let mut findings = vec![tables(switch)?];
    for (area, rows, _) in AREAS.iter().filter(|(_, _, is_in)| is_in(version)) {
        for (feature, text) in *rows {
            switch.clear()?;
            findings.push(match switch.send(vec![message(area, text)?])? {
                (_, None) => Finding::new(area, feature, Truth::Yes, ""),
                (_, Some(why)) => Finding::new(area, feature, Truth::No, why),
            });
        }
    }
    switch.clear()?;
    Ok(findings)
}

/// The flow tables, by their statistics.
fn tables(switch: &mut dyn CheckedSwitch) -> Result<Finding, CheckError> {
    let (verdict, note) = match switch.multipart(MultipartRequestBody::Table) {
        Ok(MultipartReplyBody::Table(tables)) => (Truth::Yes, tables.len().to_string()),
        Ok(other) => (Truth::Unknown, format!("{other:?}")),
        Err(CheckError::Refused(why)) => (Truth::No, why),
        Err(error) => return Err(error),
    };
    Ok(Finding::new("tables", "number", verdict, note))
}

#[cfg(test)]
mod tests {
    use super::{AREAS, message};
    use openflow::{Version, Xid};

    #[test]
    fn every_row_is_a_message_of_its_version() {
        for version in [Version::V1_0, Version::V1_3] {
            let mut count = 0;
            for (area, rows, _) in AREAS.iter().filter(|(_, _, is_in)| is_in(version)) {
                for (feature, text) in *rows {
                    let message = message(area, text).unwrap();
                    wire::encode(version, Xid(1), &message)
                        .unwrap_or_else(|error| panic!("{version:?} {area} {feature}: {error}"));
                    count += 1;
                }
            }
            assert!(count > 30);
        }
    }
}
