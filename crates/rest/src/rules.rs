//! Rules of the firewall and of QoS: a match in the words of Ryu's apps, a number, a VLAN.
//!
//! Both apps keep their rules in the switch alone: a flow entry of table 0 whose cookie is the VLAN
//! and the number of the rule. So what a switch has is what is shown, also after a restart of the
//! controller. The match is made of [`matching`]'s keys, with names for EtherTypes and protocols.

use crate::byte_budget::ByteBudget;
use crate::datapath::Target;
use crate::ofctl::matching::{parse, to_value};
use crate::pause::pause;
use crate::problem::Problem;
use crate::route::{Answer, Call, Reply};
use crate::rule_numbers::{NO_VLAN, RuleNumbers};
use crate::services::Services;
use crate::shape::{Fields, Key, Of, key};
use crate::topology::hex_dpid;
use futures_util::{StreamExt as _, stream};
use openflow::flow::{FlowMod, FlowModCommand, FlowStats, FlowStatsRequest};
use openflow::message::{MultipartReplyBody, MultipartRequestBody};
use openflow::text::parse_number;
use openflow::{Cookie, DatapathId, Field, Match, Message, TableId, Version};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Switches that are asked at a time.
const AT_A_TIME: usize = 32;
/// Place of the VLAN in a cookie, above the number of the rule.
const COOKIE_SHIFT_VLAN: u32 = 32;

/// EtherTypes by their names.
const ETH_TYPES: [(&str, u64); 3] = [("ARP", 0x0806), ("IPv4", 0x0800), ("IPv6", 0x86dd)];
/// IP protocols by their names.
const PROTOCOLS: [(&str, u64); 4] = [("TCP", 6), ("UDP", 17), ("ICMP", 1), ("ICMPv6", 58)];

const ETH_TYPE_NAMES: &[&str] = &["ARP", "IPv4", "IPv6"];
const PROTOCOL_NAMES: &[&str] = &["TCP", "UDP", "ICMP", "ICMPv6"];

/// Keys of a rule's match.
pub(crate) const IN_PORT: Key = key("in_port", Of::Scalar, "the port that packets come in by");
pub(crate) const DL_SRC: Key = key("dl_src", Of::Scalar, "Ethernet source");
pub(crate) const DL_DST: Key = key("dl_dst", Of::Scalar, "Ethernet destination");
pub(crate) const DL_TYPE: Key = key("dl_type", Of::Word(ETH_TYPE_NAMES), "EtherType");
pub(crate) const NW_SRC: Key = key("nw_src", Of::Scalar, "IPv4 source: address/prefix");
pub(crate) const NW_DST: Key = key("nw_dst", Of::Scalar, "IPv4 destination: address/prefix");
pub(crate) const IPV6_SRC: Key = key("ipv6_src", Of::Scalar, "IPv6 source: address/prefix");
pub(crate) const IPV6_DST: Key = key("ipv6_dst", Of::Scalar, "IPv6 destination: address/prefix");
pub(crate) const NW_PROTO: Key = key("nw_proto", Of::Word(PROTOCOL_NAMES), "IP protocol");
pub(crate) const TP_SRC: Key = key("tp_src", Of::Scalar, "source port of TCP or UDP");
pub(crate) const TP_DST: Key = key("tp_dst", Of::Scalar, "destination port of TCP or UDP");

const MATCH_KEYS: [&str; 12] = [
    "in_port", "dl_src", "dl_dst", "dl_type", "nw_src", "nw_dst", "ipv6_src", "ipv6_dst",
    "nw_proto", "tp_src", "tp_dst", "ip_dscp",
];

/// The VLAN of a request's path: a tag's id, none, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vlan {
    /// Rules of this VLAN; zero is rules for packets of any.
    One(u16),
    /// Rules of every VLAN.
    All,
}

impl Vlan {
    /// The VLAN of the path.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn of(call: &Call) -> Result<Self, Problem> {
        match call.part("vlan") {
            None => Ok(Self::One(NO_VLAN)),
            Some("all") => Ok(Self::All),
            Some(text) => {
                let no_vlan = |why: &str| {
                    Problem::bad(format!("a VLAN id is 2 to 4094, or `all`{why}")).at("vlan")
                };
                let number = parse_number(text);
                let number = number.map_err(|error| no_vlan(&format!("; {}", error.what)))?;
                let is_id = number == 0 || (2..=4094).contains(&number);
                is_id.then_some(Self::One(number)).ok_or_else(|| no_vlan(""))
            }
        }
    }

    /// Whether a VLAN is meant.
    pub(crate) fn has(self, vlan: u16) -> bool {
        self == Self::All || self == Self::One(vlan)
    }
}

/// The switches that the path names, each ready.
///
/// # Errors
/// When it names none, or none is connected.
pub(crate) fn targets(services: &Services, call: &Call) -> Result<Vec<Target>, Problem> {
    let text = call.part("switch").unwrap_or("all");
    if text != "all" {
        return Ok(vec![Target::of(&services.datapaths, hex_dpid(text)?)?]);
    }
    let mut dpids: Vec<DatapathId> = services.datapaths.all().iter().map(|it| it.dpid).collect();
    dpids.sort_unstable();
    if dpids.is_empty() {
        return Err(Problem::not_found("no switch is connected"));
    }
    // One that leaves meanwhile is not among them.
    Ok(dpids.iter().filter_map(|dpid| Target::of(&services.datapaths, *dpid).ok()).collect())
}

/// The values of all switches, in their order. Many are asked at a time, so that a network of
/// hundreds of switches, some of them slow, is answered for in the time of few.
///
/// # Errors
/// The first of them, with what every switch says that is not shown.
pub(crate) async fn each<F: Future<Output = Result<Value, Problem>>>(
    targets: Vec<Target>,
    show: impl Fn(Target) -> F,
) -> Answer {
    let dpids = dpids_of(&targets);
    let all = all_of(&dpids, at_a_time(targets, show).await, "are shown")?;
    Ok(Some(all.into()))
}

/// The same for what may be long: the texts of the switches, joined to one.
///
/// # Errors
/// As [`each`].
pub(crate) async fn each_text<F: Future<Output = Result<String, Problem>>>(
    targets: Vec<Target>,
    show: impl Fn(Target) -> F,
) -> Result<Reply, Problem> {
    let dpids = dpids_of(&targets);
    let all = all_of(&dpids, at_a_time(targets, show).await, "are shown")?;
    Ok(Reply::Text(joined(all).await))
}

/// A list of texts. Each is let go before the next one is copied, and others get their turn.
async fn joined(all: Vec<String>) -> String {
    let mut text = String::with_capacity(all.iter().map(|one| one.len() + 1).sum::<usize>() + 2);
    text.push('[');
    for (index, one) in all.into_iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "," });
        text.push_str(&one);
        drop(one);
        tokio::task::yield_now().await;
    }
    text.push(']');
    text
}

fn dpids_of(targets: &[Target]) -> Vec<DatapathId> {
    targets.iter().map(|target| target.datapath.dpid).collect()
}

/// The values of all switches, or their faults: the first of them in words, and each by its id.
fn all_of<T>(
    dpids: &[DatapathId],
    outcomes: Vec<Result<T, Problem>>,
    what: &str,
) -> Result<Vec<T>, Problem> {
    let (mut good, mut first, mut failed) = (Vec::new(), None, Map::new());
    for (outcome, dpid) in outcomes.into_iter().zip(dpids) {
        match outcome {
            Ok(value) => good.push(value),
            Err(problem) => {
                failed.insert(dpid.to_string(), problem.to_value());
                first.get_or_insert((problem, *dpid));
            }
        }
    }
    let Some((problem, dpid)) = first else { return Ok(good) };
    if dpids.len() == 1 {
        return Err(problem);
    }
    let prefix = format!("{} of {} switches {what}; {dpid}", good.len(), dpids.len());
    Err(problem.with_prefix(&prefix).of_switches(failed))
}

/// The outcomes of all switches, in their order. One that is slow keeps no other waiting.
async fn at_a_time<T, F: Future<Output = Result<T, Problem>>>(
    targets: Vec<Target>,
    work: impl Fn(Target) -> F,
) -> Vec<Result<T, Problem>> {
    let numbered = targets.into_iter().enumerate().map(|(number, target)| {
        let work = work(target);
        async move { (number, work.await) }
    });
    let mut all: Vec<_> = stream::iter(numbered).buffer_unordered(AT_A_TIME).collect().await;
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, done)| done).collect()
}

/// Changes each switch, many at a time, and every one to its end: a switch that refuses or is
/// silent keeps no other from its change. What each is answered for with, in their order.
///
/// # Errors
/// The first of them, with how many switches have done it, and what every other one says.
pub(crate) async fn change_each<F: Future<Output = Result<Value, Problem>>>(
    targets: Vec<Target>,
    change: impl Fn(Target) -> F,
) -> Answer {
    let dpids = dpids_of(&targets);
    let all = all_of(&dpids, at_a_time(targets, change).await, "have done it")?;
    Ok(Some(all.into()))
}

/// A rule that a switch has.
pub(crate) struct Rule {
    pub(crate) number: u32,
    pub(crate) vlan: u16,
    pub(crate) flow: FlowStats,
}

/// The flow entries of table 0.
///
/// # Errors
/// When the switch does not answer with them.
pub(crate) async fn flows(target: &Target) -> Result<Vec<FlowStats>, Problem> {
    let request = FlowStatsRequest { table_id: TableId(0), ..FlowStatsRequest::all() };
    let reply = target.ask(MultipartRequestBody::Flow(request)).await?;
    let MultipartReplyBody::Flow(flows) = reply else {
        let status = axum::http::StatusCode::BAD_GATEWAY;
        return Err(Problem::new(status, "the switch answers with other statistics"));
    };
    Ok(flows)
}

/// The rules among the flow entries: those of the priorities that `is_rule` says.
pub(crate) fn rules(flows: Vec<FlowStats>, is_rule: impl Fn(u16) -> bool) -> Vec<Rule> {
    let held = flows.into_iter().filter(|flow| is_rule(flow.priority));
    held.map(|flow| {
        let number = u32::try_from(flow.cookie.0 & u64::from(u32::MAX)).unwrap_or(0);
        let vid = flow.matching.exact(Field::VlanVid).unwrap_or(0) & 0xfff;
        Rule { number, vlan: u16::try_from(vid).unwrap_or(0), flow }
    })
    .collect()
}

/// The match of a rule: the keys of its object and the VLAN.
///
/// # Errors
/// When a value is wrong, or keys contradict each other.
pub(crate) fn matching(fields: &Fields<'_>, version: Version, vlan: u16) -> Result<Match, Problem> {
    let mut object = Map::new();
    let (mut eth_type, mut protocol) = (None, None);
    for (name, value) in fields.iter().filter(|(name, _)| MATCH_KEYS.contains(name)) {
        match name {
            "dl_type" => eth_type = fields.word(name)?,
            "nw_proto" => protocol = fields.word(name)?,
            _ => {
                object.insert(name.to_owned(), value.clone());
            }
        }
    }
    let has = |names: [&str; 2]| names.iter().any(|name| object.contains_key(*name));
    let implied = match protocol {
        _ if has(["nw_src", "nw_dst"]) => Some("IPv4"),
        _ if has(["ipv6_src", "ipv6_dst"]) => Some("IPv6"),
        _ if has(["ip_dscp", "ip_dscp"]) => Some("IPv4"),
        Some("ICMP") => Some("IPv4"),
        Some("ICMPv6") => Some("IPv6"),
        Some(_) if eth_type.is_none() => {
            return Err(fields.problem("nw_proto", "it needs the key dl_type: IPv4 or IPv6"));
        }
        _ => None,
    };
    contradictions(fields, eth_type, protocol)?;
    if object.is_empty() && eth_type.is_none() && protocol.is_none() {
        let words = "a rule for every packet is none: name what packets must show";
        return Err(Problem::bad(words).at(fields.place()).allowing(MATCH_KEYS));
    }
    let number = |names: &[(&str, u64)], word| {
        names.iter().find(|(name, _)| Some(*name) == word).map(|(_, number)| *number)
    };
    if let Some(number) = number(&ETH_TYPES, eth_type.or(implied)) {
        object.insert("dl_type".into(), number.into());
    }
    if let Some(number) = number(&PROTOCOLS, protocol) {
        object.insert("nw_proto".into(), number.into());
    }
    if vlan != NO_VLAN {
        object.insert("dl_vlan".into(), vlan.into());
    }
    parse(version, &Value::Object(object), fields.place())
}

/// Keys that cannot stand beside each other: of IPv4, of IPv6, of ARP.
fn contradictions(
    fields: &Fields<'_>,
    eth_type: Option<&str>,
    protocol: Option<&str>,
) -> Result<(), Problem> {
    let named = |names: &[&'static str]| {
        names.iter().copied().find(|name| fields.iter().any(|(own, _)| own == *name))
    };
    let (four, six) = (named(&["nw_src", "nw_dst"]), named(&["ipv6_src", "ipv6_dst"]));
    let wrong = match (eth_type, four, six, protocol) {
        (_, Some(four), Some(six), _) => Some(format!("{four} and {six}")),
        (Some("ARP"), _, _, Some(_)) => Some("dl_type=ARP and nw_proto".to_owned()),
        (Some(kind @ ("ARP" | "IPv4")), _, Some(six), _) => {
            Some(format!("dl_type={kind} and {six}"))
        }
        (Some("IPv6"), Some(four), _, _) => Some(format!("dl_type=IPv6 and {four}")),
        (Some("IPv4"), _, _, Some("ICMPv6")) => Some("dl_type=IPv4 and nw_proto=ICMPv6".to_owned()),
        (Some("IPv6"), _, _, Some("ICMP")) => Some("dl_type=IPv6 and nw_proto=ICMP".to_owned()),
        (_, Some(four), _, Some("ICMPv6")) => Some(format!("{four} and nw_proto=ICMPv6")),
        (_, _, Some(six), Some("ICMP")) => Some(format!("{six} and nw_proto=ICMP")),
        _ => None,
    };
    wrong.map_or(Ok(()), |keys| Err(Problem::bad(format!("Invalid combination: [{keys}]"))))
}

/// A rule's match with the names that bodies have.
pub(crate) fn match_of(version: Version, rule: &Rule) -> Map<String, Value> {
    let Value::Object(mut object) = to_value(version, &rule.flow.matching) else {
        return Map::new();
    };
    for (key, names) in [("dl_type", ETH_TYPES.as_slice()), ("nw_proto", PROTOCOLS.as_slice())] {
        let number = object.get(key).and_then(Value::as_u64);
        if let Some((name, _)) = names.iter().find(|(_, own)| Some(*own) == number) {
            object.insert(key.into(), (*name).into());
        }
    }
    object
}

/// Adds the rules of a VLAN as a switch is shown with them: lists by VLAN. Each rule becomes text
/// before the next one is looked at, since a tree of a million rules would take gigabytes.
///
/// # Errors
/// There is no room for them.
pub(crate) async fn by_vlan(
    text: &mut String,
    held: &[Rule],
    vlan: Vlan,
    key: &str,
    budget: &ByteBudget,
    show: impl Fn(&Rule) -> Map<String, Value>,
) -> Result<(), Problem> {
    let mut lists = BTreeMap::<u16, Vec<&Rule>>::new();
    for (index, rule) in held.iter().filter(|rule| is_of(vlan, rule)).enumerate() {
        lists.entry(rule.vlan).or_default().push(rule);
        pause(index).await;
    }
    text.push('[');
    for (number, list) in lists.into_values().enumerate() {
        text.push_str(if number == 0 { "{" } else { ",{" });
        // Writing to a string cannot fail.
        if let Some(vlan) = list.last().and_then(|rule| show(rule).remove("dl_vlan")) {
            let _ = write!(text, "\"vlan_id\":{vlan},");
        }
        let _ = write!(text, "\"{key}\":[");
        for (index, rule) in list.into_iter().enumerate() {
            let before = text.len();
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{}", Value::Object(show(rule)));
            budget.take(text.len() - before)?;
            pause(index).await;
        }
        text.push_str("]}");
    }
    text.push(']');
    Ok(())
}

/// Numbers and flow-mods of a new rule, one for each VLAN that the request names.
pub(crate) fn added(
    numbers: &RuleNumbers,
    target: &Target,
    existing: &[Rule],
    vlan: Vlan,
) -> Vec<(u32, u16, FlowMod)> {
    let dpid = target.datapath.dpid;
    let vlans = match vlan {
        Vlan::One(vlan) => vec![vlan],
        Vlan::All => numbers.vlans(dpid),
    };
    let one = |vlan: u16| {
        let held = existing.iter().filter(|rule| rule.vlan == vlan).map(|rule| rule.number).max();
        let number = numbers.next(dpid, vlan, held.unwrap_or(0));
        let cookie = (u64::from(vlan) << COOKIE_SHIFT_VLAN) + u64::from(number);
        let flow = FlowMod { cookie: Cookie(cookie), ..FlowMod::new(FlowModCommand::Add) };
        (number, vlan, flow)
    };
    vlans.into_iter().map(one).collect()
}

/// The result of a change in a VLAN, `success` or `failure`.
pub(crate) fn result(vlan: u16, word: &str, details: impl Into<String>) -> Value {
    let mut object = json!({"result": word, "details": details.into()});
    if vlan != NO_VLAN {
        object["vlan_id"] = vlan.into();
    }
    object
}

/// Ryu's words about rules that were deleted: done, and none of them there; the key of a number.
pub(crate) struct DeletionWords {
    pub(crate) deleted: &'static str,
    pub(crate) missing: &'static str,
    pub(crate) number: &'static str,
}

/// Deletes the rules with a number (all without one) of a VLAN; gives the answer of the switch.
///
/// # Errors
/// When the switch refuses it.
pub(crate) async fn delete(
    target: &Target,
    rules: Vec<Rule>,
    number: Option<u32>,
    vlan: Vlan,
    words: &DeletionWords,
) -> Result<Value, Problem> {
    let wanted = |rule: &Rule| vlan.has(rule.vlan) && number.is_none_or(|it| it == rule.number);
    let (mut gone, mut messages) = (BTreeMap::<u16, Vec<u32>>::new(), Vec::new());
    for rule in rules.into_iter().filter(wanted) {
        gone.entry(rule.vlan).or_default().push(rule.number);
        let mut flow = FlowMod::new(FlowModCommand::DeleteStrict);
        flow.priority = rule.flow.priority;
        flow.matching = rule.flow.matching;
        if target.version().has_cookie_mask() {
            (flow.cookie, flow.cookie_mask) = (rule.flow.cookie, u64::MAX);
        }
        messages.push(Message::FlowMod(flow));
    }
    target.apply(messages).await?;
    let DeletionWords { deleted, missing, number: key } = words;
    let result: Value = if gone.is_empty() {
        let named = number.map(|number| format!(" : {key}={number}")).unwrap_or_default();
        result(NO_VLAN, "failure", format!("{missing}{named}"))
    } else {
        let results = gone.into_iter().map(|(vlan, numbers)| {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            result(vlan, "success", format!("{deleted} : {key}={}", numbers.join(",")))
        });
        results.collect::<Vec<_>>().into()
    };
    Ok(of_switch(target, "command_result", result))
}

/// Whether a rule of this VLAN is asked for.
pub(crate) fn is_of(vlan: Vlan, rule: &Rule) -> bool {
    vlan.has(rule.vlan)
}

/// The number of a rule in a body: `all`, or a number.
///
/// # Errors
/// When it is neither.
pub(crate) fn number_of(fields: &Fields<'_>, key: &str) -> Result<Option<u32>, Problem> {
    if fields.get(key).and_then(Value::as_str) == Some("all") {
        return Ok(None);
    }
    let number: Option<u32> = fields.number(key)?;
    number.map(Some).ok_or_else(|| fields.problem(key, "a number or `all` must stand here"))
}

/// The answer of a switch: its id and a value.
pub(crate) fn of_switch(target: &Target, key: &str, value: impl Into<Value>) -> Value {
    let mut object = Map::new();
    object.insert("switch_id".into(), target.datapath.dpid.to_string().into());
    object.insert(key.into(), value.into());
    Value::Object(object)
}

/// The same as a text, which wants its value and a closing brace.
pub(crate) fn text_of_switch(target: &Target, key: &str) -> String {
    format!("{{\"switch_id\":\"{}\",\"{key}\":", target.datapath.dpid)
}

#[cfg(test)]
mod tests {
    use super::{Rule, Vlan, by_vlan, joined, matching};
    use crate::byte_budget::ByteBudget;
    use crate::firewall::RULE;
    use crate::shape::Fields;
    use openflow::flow::{FlowModFlags, FlowStats};
    use openflow::text::format_match;
    use openflow::{Cookie, Match, TableId, Version};
    use serde_json::{Map, Value, json};

    fn flow() -> FlowStats {
        FlowStats {
            table_id: TableId(0),
            duration_s: 0,
            duration_ns: 0,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            flags: FlowModFlags::default(),
            importance: 0,
            cookie: Cookie(0),
            packet_count: 0,
            byte_count: 0,
            matching: Match::default(),
            instructions: Vec::new(),
        }
    }

    #[tokio::test]
    async fn rules_are_listed_by_vlan_within_the_shared_budget() {
        let rule = |number, vlan| Rule { number, vlan, flow: flow() };
        let held = [rule(1, 5), rule(2, 0), rule(3, 5), rule(4, 7)];
        let show = |rule: &Rule| {
            let mut shown = Map::new();
            shown.insert("id".into(), rule.number.into());
            if rule.vlan != 0 {
                shown.insert("dl_vlan".into(), rule.vlan.into());
            }
            shown
        };
        let budget = ByteBudget::new(200, "one switch");
        let mut text = String::new();
        by_vlan(&mut text, &held, Vlan::All, "rules", &budget, show).await.unwrap();
        let expected = json!([
            {"rules": [{"id": 2}]},
            {"vlan_id": 5, "rules": [{"id": 1, "dl_vlan": 5}, {"id": 3, "dl_vlan": 5}]},
            {"vlan_id": 7, "rules": [{"id": 4, "dl_vlan": 7}]},
        ]);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        text.clear();
        by_vlan(&mut text, &held, Vlan::One(9), "rules", &budget, show).await.unwrap();
        assert_eq!(text, "[]");
        budget.take(150).unwrap_err();
        let refused = by_vlan(&mut text, &held, Vlan::One(7), "rules", &budget, show).await;
        assert!(refused.unwrap_err().words().ends_with("ask for one switch"));
    }

    #[tokio::test]
    async fn texts_are_joined_to_a_list() {
        assert_eq!(joined(Vec::new()).await, "[]");
        assert_eq!(joined(vec!["1".into()]).await, "[1]");
        assert_eq!(joined(vec!["1".into(), "[2]".into(), "3".into()]).await, "[1,[2],3]");
    }

    fn read(version: Version, vlan: u16, value: &Value) -> Result<String, String> {
        let fields = Fields::of(value, &RULE, "").map_err(|problem| problem.words().to_owned())?;
        let matching = matching(&fields, version, vlan);
        matching.map(|it| format_match(&it)).map_err(|it| it.words().to_owned())
    }

    #[test]
    fn names_imply_what_they_need() {
        for (version, vlan, value, expected) in [
            (
                Version::V1_3,
                0,
                json!({"nw_src": "10.0.0.1/32", "nw_proto": "ICMP"}),
                "icmp,nw_src=10.0.0.1",
            ),
            (Version::V1_3, 0, json!({"ipv6_dst": "fd00::/8"}), "ipv6,ipv6_dst=fd00::/8"),
            (Version::V1_3, 5, json!({"dl_type": "ARP"}), "arp,dl_vlan=5"),
            (
                Version::V1_3,
                0,
                json!({"dl_type": "IPv6", "nw_proto": "TCP", "tp_dst": 80}),
                "tcp6,tp_dst=80",
            ),
            (Version::V1_3, 0, json!({"in_port": 1}), "in_port=1"),
            (Version::V1_0, 2, json!({"nw_dst": "10.0.0.0/8"}), "ip,dl_vlan=2,nw_dst=10.0.0.0/8"),
        ] {
            assert_eq!(read(version, vlan, &value).as_deref(), Ok(expected), "{value}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for value in [
            json!({"nw_src": "10.0.0.1", "ipv6_dst": "::1"}),
            json!({"dl_type": "ARP", "nw_proto": "TCP"}),
            json!({"dl_type": "IPv6", "nw_src": "10.0.0.1"}),
            json!({"dl_type": "IPv4", "nw_proto": "ICMPv6"}),
            json!({"nw_src": "10.0.0.1", "nw_proto": "ICMPv6"}),
            json!({"nw_proto": "TCP"}),
            json!({"dl_type": "IPX"}),
            json!({"dl_tpye": "IPv4"}),
            json!({"priority": 5}),
        ] {
            assert!(read(Version::V1_3, 0, &value).is_err(), "{value}");
        }
        assert!(read(Version::V1_0, 0, &json!({"ipv6_src": "::1"})).is_err());
    }
}
