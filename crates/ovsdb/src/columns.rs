//! The columns of Open vSwitch's schema that a switch reads or writes, a row each.
//!
//! Monitoring, the remarks about what has no effect, and the table of the documentation follow from
//! these rows. A column without a row is not looked at.

/// The name of the database.
pub const DATABASE: &str = "Open_vSwitch";

/// The direction of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAccess {
    /// The switch reads it.
    Read,
    /// The switch writes it.
    Written,
    /// Both.
    Both,
}

impl ColumnAccess {
    /// Whether the switch reads such a column.
    #[must_use]
    pub fn is_read(self) -> bool {
        match self {
            Self::Read | Self::Both => true,
            Self::Written => false,
        }
    }

    /// The word for people.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Written => "written",
            Self::Both => "read and written",
        }
    }
}

/// The use that is made of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is carried out, or written: the effect, or the occasion.
    Carried(&'static str),
    /// It is accepted and has no effect; a remark says so where somebody sets it.
    Accepted,
}

/// A column, or a key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRow {
    /// The table.
    pub table: &'static str,
    /// The column, and behind a colon the key.
    pub name: &'static str,
    /// Read or written.
    pub access: ColumnAccess,
    /// The use.
    pub usage: Use,
}

impl ColumnRow {
    /// The column.
    #[must_use]
    pub fn column(&self) -> &'static str {
        self.name.split_once(':').map_or(self.name, |(column, _)| column)
    }

    /// The key in a map; `None` for the whole column.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        self.name.split_once(':').map(|(_, key)| key)
    }
}

const fn read(table: &'static str, name: &'static str, effect: &'static str) -> ColumnRow {
    ColumnRow { table, name, access: ColumnAccess::Read, usage: Use::Carried(effect) }
}

const fn written(table: &'static str, name: &'static str, when: &'static str) -> ColumnRow {
    ColumnRow { table, name, access: ColumnAccess::Written, usage: Use::Carried(when) }
}

const fn both(table: &'static str, name: &'static str, effect: &'static str) -> ColumnRow {
    ColumnRow { table, name, access: ColumnAccess::Both, usage: Use::Carried(effect) }
}

const fn accepted(table: &'static str, name: &'static str) -> ColumnRow {
    ColumnRow { table, name, access: ColumnAccess::Read, usage: Use::Accepted }
}

const ROOT: &str = "Open_vSwitch";
const BRIDGE: &str = "Bridge";
const PORT: &str = "Port";
const INTERFACE: &str = "Interface";
const CONTROLLER: &str = "Controller";

/// All rows, by table.
#[rustfmt::skip]
pub const COLUMNS: &[ColumnRow] = &[
    read(ROOT, "bridges", "the bridges"),
    read(ROOT, "next_cfg", "the number of the wanted configuration"),
    written(ROOT, "cur_cfg", "when a configuration is carried out, together with what came of it"),
    read(ROOT, "ssl", "key and certificates for controllers"),
    read(ROOT, "other_config:stats-update-interval", "milliseconds between statistics, from 5000"),
    written(ROOT, "iface_types", "at the start"),
    written(ROOT, "datapath_types", "at the start"),
    written(ROOT, "dpdk_initialized", "at the start"),
    accepted(ROOT, "other_config:vlan-limit"),
    accepted(ROOT, "other_config:flow-limit"),
    accepted(ROOT, "other_config:max-idle"),
    accepted(ROOT, "other_config:max-revalidator"),
    accepted(ROOT, "other_config:n-handler-threads"),
    accepted(ROOT, "other_config:n-revalidator-threads"),
    accepted(ROOT, "other_config:hw-offload"),
    accepted(ROOT, "other_config:dpdk-init"),
    accepted(ROOT, "other_config:flow-restore-wait"),
    accepted(ROOT, "other_config:enable-statistics"),
    accepted(ROOT, "datapaths"),
    read(BRIDGE, "name", "the bridge's name"),
    read(BRIDGE, "ports", "its ports"),
    read(BRIDGE, "controller", "its controllers, and places where controllers may connect"),
    read(BRIDGE, "fail_mode", "secure, or else standalone"),
    read(BRIDGE, "protocols", "the versions of OpenFlow to speak; 1.0 and 1.3 where none is named"),
    read(BRIDGE, "datapath_type", "system and netdev are the same here"),
    read(BRIDGE, "other_config:datapath-id", "the datapath id"),
    read(BRIDGE, "other_config:hwaddr", "the address of the LOCAL port"),
    read(BRIDGE, "other_config:dp-desc", "the description of the datapath"),
    read(BRIDGE, "other_config:dp-sn", "the serial number in the description"),
    read(BRIDGE, "other_config:mac-aging-time", "seconds until a silent address is forgotten"),
    read(BRIDGE, "other_config:disable-in-band", "true always: there is no in-band control"),
    written(BRIDGE, "datapath_id", "when the bridge is made or its id changes"),
    written(BRIDGE, "datapath_version", "when the bridge is made"),
    read(BRIDGE, "mirrors", "its mirrors, 32 at most"),
    read(BRIDGE, "flow_tables", "names and limits of single tables"),
    accepted(BRIDGE, "flood_vlans"),
    accepted(BRIDGE, "stp_enable"),
    accepted(BRIDGE, "rstp_enable"),
    accepted(BRIDGE, "mcast_snooping_enable"),
    accepted(BRIDGE, "netflow"),
    accepted(BRIDGE, "sflow"),
    accepted(BRIDGE, "ipfix"),
    accepted(BRIDGE, "other_config:mac-table-size"),
    accepted(BRIDGE, "other_config:forward-bpdu"),
    accepted(BRIDGE, "other_config:in-band-queue"),
    read(PORT, "name", "the port's name"),
    read(PORT, "interfaces", "its interface; several are an error"),
    read(PORT, "tag", "the VLAN of an access port, the native VLAN of others"),
    read(PORT, "trunks", "the VLANs of a trunk; all where none is named"),
    read(PORT, "vlan_mode", "access, trunk, native-tagged, native-untagged"),
    read(PORT, "qos", "rate and queues of the port"),
    read(PORT, "protected", "no frame goes by NORMAL from one such port to another"),
    accepted(PORT, "mac"),
    accepted(PORT, "lacp"),
    accepted(PORT, "bond_mode"),
    accepted(PORT, "cvlans"),
    accepted(PORT, "other_config:priority-tags"),
    read(INTERFACE, "name", "the device"),
    read(INTERFACE, "type", "system or empty: a device of the kernel; internal, tap; patch"),
    read(INTERFACE, "options:peer", "the other end of a patch port"),
    read(INTERFACE, "ingress_policing_rate", "kilobits a second that are taken"),
    read(INTERFACE, "ingress_policing_burst", "kilobits that may come at once"),
    read(INTERFACE, "ingress_policing_kpkts_rate", "thousands of packets a second that are taken"),
    read(INTERFACE, "ingress_policing_kpkts_burst", "thousands of packets that may come at once"),
    read(INTERFACE, "ofport_request", "the port number"),
    both(INTERFACE, "ofport", "the number, kept over restarts; -1 for a device that cannot be had"),
    written(INTERFACE, "error", "why it cannot, in the transaction of cur_cfg"),
    written(INTERFACE, "mac_in_use", "when it changes"),
    written(INTERFACE, "ifindex", "when it changes"),
    written(INTERFACE, "admin_state", "when it changes"),
    written(INTERFACE, "link_state", "when it changes"),
    written(INTERFACE, "link_speed", "when it changes"),
    written(INTERFACE, "duplex", "when it changes"),
    written(INTERFACE, "mtu", "when it changes"),
    written(INTERFACE, "statistics", "when a port comes, and each stats-update-interval"),
    read(INTERFACE, "mac", "the address of an internal port or a TAP device"),
    read(INTERFACE, "mtu_request", "the MTU of the device"),
    accepted(INTERFACE, "options:stream"),
    accepted(INTERFACE, "options:pstream"),
    accepted(INTERFACE, "bfd"),
    accepted(INTERFACE, "cfm_mpid"),
    accepted(INTERFACE, "lldp"),
    read(CONTROLLER, "target", "the endpoint; unix: and punix: only below the run folder"),
    read(CONTROLLER, "max_backoff", "the longest of all controllers of the bridge"),
    read(CONTROLLER, "inactivity_probe", "the longest of all controllers of the bridge"),
    read(CONTROLLER, "controller_rate_limit", "the highest of all controllers of the bridge"),
    read(CONTROLLER, "controller_burst_limit", "the highest of all controllers of the bridge"),
    written(CONTROLLER, "is_connected", "when it changes"),
    written(CONTROLLER, "role", "when it changes"),
    written(CONTROLLER, "status", "when it has connected or disconnected"),
    accepted(CONTROLLER, "enable_async_messages"),
    accepted(CONTROLLER, "other_config:dscp"),
    read("Flow_Table", "name", "the table's name"),
    read("Flow_Table", "flow_limit", "the most flow entries of the table"),
    read("Flow_Table", "overflow_policy", "refuse; evict: the least important entry makes room"),
    read("Flow_Table", "groups", "fields that group entries; one of the largest group makes room"),
    accepted("Flow_Table", "prefixes"),
    read("Mirror", "name", "the mirror's name"),
    read("Mirror", "select_all", "every packet of every port"),
    read("Mirror", "select_src_port", "ports whose incoming packets are copied"),
    read("Mirror", "select_dst_port", "ports whose outgoing packets are copied"),
    read("Mirror", "select_vlan", "the VLANs whose packets are copied; all where none is named"),
    read("Mirror", "output_port", "the port that the copies leave by, and nothing else"),
    read("Mirror", "output_vlan", "the VLAN that carries the copies"),
    read("Mirror", "snaplen", "bytes of a packet that are copied, from 14"),
    written("Mirror", "statistics", "each stats-update-interval: what its output_port has sent"),
    read("QoS", "type", "linux-htb, linux-hfsc; linux-noop for none"),
    read("QoS", "other_config:max-rate", "bits a second of the port; else its device's speed"),
    read("QoS", "queues", "the queues by number"),
    read("Queue", "other_config:min-rate", "bits a second that the queue has in any case"),
    read("Queue", "other_config:max-rate", "the most bits a second that it has"),
    accepted("Queue", "other_config:burst"),
    accepted("Queue", "other_config:priority"),
    accepted("Queue", "dscp"),
    read("SSL", "private_key", "the file of the key"),
    read("SSL", "certificate", "the file of the certificate"),
    read("SSL", "ca_cert", "the file of the CA's certificate"),
    accepted("SSL", "bootstrap_ca_cert"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{COLUMNS, Use};

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ovs.md");
    const BEGIN: &str = "<!-- columns -->\n";
    const END: &str = "<!-- end of columns -->\n";

    /// `WEIR_WRITE_DOCS=1` writes the table into the page.
    #[test]
    fn the_page_has_the_columns() {
        let rows = COLUMNS.iter().map(|row| {
            let (direction, usage) = match row.usage {
                Use::Carried(text) => (row.access.text(), text),
                Use::Accepted => ("accepted", "no effect"),
            };
            format!("| {} | `{}` | {direction} | {usage} |\n", row.table, row.name)
        });
        let head = "| table | column | | effect, or when |\n|---|---|---|---|\n";
        let table = format!("{head}{}", rows.collect::<String>());
        let page = std::fs::read_to_string(PAGE).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (held, after) = rest.split_once(END).unwrap();
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            std::fs::write(PAGE, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        } else {
            assert_eq!(held, table, "WEIR_WRITE_DOCS=1 writes it into docs/ovs.md");
        }
    }

    #[test]
    fn no_row_stands_twice() {
        let names: BTreeSet<_> = COLUMNS.iter().map(|row| (row.table, row.name)).collect();
        assert_eq!(names.len(), COLUMNS.len());
    }
}
