//! The endpoints of Ryu's `ofctl_rest`: statistics, and changes of entries, groups, meters, ports.

pub(crate) mod actions;
mod features;
pub(crate) mod matching;
pub(crate) mod modify;
pub(crate) mod render;
pub(crate) mod stats;

use crate::route::{Body, Row, endpoints};

const FILTER: Body = Body::May(&stats::FILTER);

/// The endpoints.
pub(crate) fn rows() -> Vec<Row> {
    let mut all = Vec::from(of_statistics());
    all.extend(of_features());
    all.extend(of_changes());
    all
}

fn of_statistics() -> [Row; 21] {
    endpoints! {
        GET "/stats/switches" "Datapath ids of all switches" Body::None, true => stats::switches;
        GET "/stats/desc/{dpid}" "A switch's description" Body::None, true => stats::desc;
        GET "/stats/flow/{dpid}" "All flow entries" FILTER, true => stats::flow;
        POST "/stats/flow/{dpid}" "Flow entries that meet a filter" FILTER, true => stats::flow;
        GET "/stats/flowdesc/{dpid}" "All flow entries" FILTER, true => stats::flow;
        POST "/stats/flowdesc/{dpid}" "Flow entries that meet a filter" FILTER, true => stats::flow;
        GET "/stats/aggregateflow/{dpid}" "Sums over all flow entries" FILTER, true
            => stats::aggregate;
        POST "/stats/aggregateflow/{dpid}" "Sums over flow entries that meet a filter" FILTER, true
            => stats::aggregate;
        GET "/stats/table/{dpid}" "Counters of tables" Body::None, true => stats::table;
        GET "/stats/port/{dpid}" "Counters of ports" Body::None, true => stats::port;
        GET "/stats/port/{dpid}/{port}" "Counters of a port" Body::None, true => stats::port;
        GET "/stats/queue/{dpid}" "Counters of queues" Body::None, true => stats::queue;
        GET "/stats/queue/{dpid}/{port}" "Counters of a port's queues" Body::None, true
            => stats::queue;
        GET "/stats/queue/{dpid}/{port}/{queue_id}" "Counters of a queue" Body::None, true
            => stats::queue;
        GET "/stats/meter/{dpid}" "Counters of meters" Body::None, true => stats::meter;
        GET "/stats/meter/{dpid}/{meter_id}" "Counters of a meter" Body::None, true
            => stats::meter;
        GET "/stats/group/{dpid}" "Counters of groups" Body::None, true => stats::group;
        GET "/stats/group/{dpid}/{group_id}" "Counters of a group" Body::None, true
            => stats::group;
        GET "/stats/flowtext/{dpid}"
            "Flow entries; `text` has match and actions as `weir ctl` prints them"
            Body::None, true => stats::flow_text;
        GET "/stats/grouptext/{dpid}"
            "Groups; `text` has the actions of each bucket as `weir ctl` prints them"
            Body::None, true => stats::group_text;
        GET "/stats/role/{dpid}" "This controller's role" Body::None, true => stats::role;
    }
}

fn of_features() -> [Row; 17] {
    endpoints! {
        GET "/stats/tablefeatures/{dpid}" "What tables can do" Body::None, true
            => stats::table_features;
        GET "/stats/queueconfig/{dpid}" "Queues of all ports" Body::None, true
            => stats::queue_config;
        GET "/stats/queueconfig/{dpid}/{port}" "Queues of a port" Body::None, true
            => stats::queue_config;
        GET "/stats/queuedesc/{dpid}" "Queues as OpenFlow 1.4 describes them" Body::None, true
            => stats::queue_desc;
        GET "/stats/queuedesc/{dpid}/{port}" "Queues as OpenFlow 1.4 describes them" Body::None,
            true => stats::queue_desc;
        GET "/stats/queuedesc/{dpid}/{port}/{queue_id}" "Queues as OpenFlow 1.4 describes them"
            Body::None, true => stats::queue_desc;
        GET "/stats/meterfeatures/{dpid}" "What meters can do" Body::None, true
            => stats::meter_features;
        GET "/stats/meterconfig/{dpid}" "Meters" Body::None, true => stats::meter_config;
        GET "/stats/meterconfig/{dpid}/{meter_id}" "A meter" Body::None, true
            => stats::meter_config;
        GET "/stats/meterdesc/{dpid}" "Meters as OpenFlow 1.5 describes them" Body::None, true
            => stats::meter_desc;
        GET "/stats/meterdesc/{dpid}/{meter_id}" "A meter as OpenFlow 1.5 describes it" Body::None,
            true => stats::meter_desc;
        GET "/stats/groupfeatures/{dpid}" "What groups can do" Body::None, true
            => stats::group_features;
        GET "/stats/groupdesc/{dpid}" "Groups" Body::None, true => stats::group_desc;
        GET "/stats/groupdesc/{dpid}/{group_id}" "A group" Body::None, true => stats::group_desc;
        GET "/stats/portdesc/{dpid}" "Ports" Body::None, true => stats::port_desc;
        GET "/stats/portdesc/{dpid}/{port}" "A port" Body::None, true => stats::port_desc;
        POST "/stats/role" "Ask for a role" Body::Must(&modify::ROLE), false => modify::role;
    }
}

fn of_changes() -> [Row; 6] {
    endpoints! {
        POST "/stats/flowentry/{cmd}" "Add, change or delete flow entries"
            Body::Must(&modify::FLOW), false,
            commands &["add", "modify", "modify_strict", "delete", "delete_strict"]
            => modify::flow;
        DELETE "/stats/flowentry/clear/{dpid}" "Delete all flow entries" Body::None, false
            => modify::clear;
        POST "/stats/meterentry/{cmd}" "Add, change or delete a meter"
            Body::Must(&modify::METER), false, commands &["add", "modify", "delete"]
            => modify::meter;
        POST "/stats/groupentry/{cmd}" "Add, change or delete a group"
            Body::Must(&modify::GROUP), false, commands &["add", "modify", "delete"]
            => modify::group;
        POST "/stats/portdesc/modify" "Change a port's settings"
            Body::Must(&modify::PORT), false => modify::port;
        POST "/stats/experimenter/{dpid}" "Send an experimenter's message"
            Body::Must(&modify::EXPERIMENTER), false => modify::experimenter;
    }
}
