//! Statistics and descriptions: a question to the switch, and its answer with Ryu's keys.

use super::{features, matching, render};
use crate::byte_budget::ByteBudget;
use crate::datapath::{Target, odd, odd_answer};
use crate::pause::pause;
use crate::problem::Problem;
use crate::route::{Answer, Call, Reply};
use crate::shape::{Of, Shape, key};
use crate::words;
use axum::http::StatusCode;
use openflow::flow::FlowStatsRequest;
use openflow::message::{ControllerRole, MultipartReplyBody, MultipartRequestBody, Role};
use openflow::text::{format_actions, format_flow_match, format_instructions};
use openflow::{Cookie, DatapathId, GroupId, Message, MeterId, PortNo, QueueId, TableId};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The text of a list, or why there is none.
type Listed = Result<Reply, Problem>;

/// A filter of flow entries.
pub(crate) static FILTER: Shape = Shape {
    name: "filter",
    what: "a filter of flow entries",
    keys: &[
        key("match", Of::Object(|| &matching::MATCH), "entries that are as narrow as this"),
        key("table_id", Of::Named(8, &words::TABLES), "of this table; default: ALL"),
        key("out_port", Of::Named(32, &words::PORTS), "that output to this port"),
        key("out_group", Of::Named(32, &words::GROUPS), "that use this group"),
        key("cookie", Of::Number(64), "with these bits in the cookie"),
        key("cookie_mask", Of::Number(64), "bits of the cookie that are compared"),
        key("priority", Of::Number(16), "of this priority; the controller sorts them out"),
        key("flags", Of::Number(16), "flags of the request; none are defined but 0"),
    ],
};

/// A list under the switch's datapath id.
async fn list(call: &Call, target: &Target, values: impl IntoIterator<Item = Value>) -> Listed {
    let mut text = String::new();
    listed(&mut text, target.datapath.dpid, values, &ByteBudget::of_list(call)).await?;
    Ok(Reply::Text(text))
}

/// Adds the text of a list. Each value becomes text before the next one is made, since a tree of a
/// million flow entries would take gigabytes.
///
/// # Errors
/// When the budget is used up: half a list is none.
pub(crate) async fn listed(
    text: &mut String,
    dpid: DatapathId,
    values: impl IntoIterator<Item = Value>,
    budget: &ByteBudget,
) -> Result<(), Problem> {
    // Writing to a string cannot fail.
    let _ = write!(text, "{{\"{}\":[", dpid.0);
    for (index, value) in values.into_iter().enumerate() {
        let before = text.len();
        let _ = write!(text, "{}{value}", if index == 0 { "" } else { "," });
        budget.take(text.len() - before)?;
        pause(index).await;
    }
    text.push_str("]}");
    Ok(())
}

pub(crate) async fn switches(call: Call) -> Answer {
    let mut dpids: Vec<u64> = call.services.datapaths.all().iter().map(|it| it.dpid.0).collect();
    dpids.sort_unstable();
    Ok(Some(dpids.into()))
}

pub(crate) async fn desc(call: Call) -> Answer {
    let target = call.target()?;
    let MultipartReplyBody::Desc(desc) = target.ask(MultipartRequestBody::Desc).await? else {
        return Err(odd());
    };
    Ok(Some(render::wrapped(target.datapath.dpid, render::desc(&desc))))
}

/// The filter of a body, and the priority that only the controller can filter by.
fn filter(call: &Call, target: &Target) -> Result<(FlowStatsRequest, Option<u16>), Problem> {
    let mut request = FlowStatsRequest::all();
    if call.body.is_null() {
        return Ok((request, None));
    }
    let (fields, version) = (call.fields(&FILTER)?, target.version());
    request.matching = matching::of(&fields, version)?;
    if let Some(table) = fields.named("table_id", &words::TABLES)? {
        let small = u8::try_from(table);
        let too_large = |_| fields.problem("table_id", "a table has 8 bits");
        request.table_id = TableId(small.map_err(too_large)?);
    }
    if let Some(port) = words::port_of(&fields, "out_port", version)? {
        request.out_port = port;
    }
    if let Some(group) = fields.named("out_group", &words::GROUPS)? {
        request.out_group = GroupId(group);
    }
    request.cookie = Cookie(fields.number("cookie")?.unwrap_or(0));
    request.cookie_mask = fields.number("cookie_mask")?.unwrap_or(0);
    if fields.number::<u16>("flags")?.is_some_and(|flags| flags != 0) {
        return Err(fields.problem("flags", "no flag of such a request is defined"));
    }
    for key in ["out_group", "cookie", "cookie_mask"] {
        if !version.has_cookie_mask() && fields.get(key).is_some() {
            return Err(fields.problem(key, format!("{version} has no {key} in such a request")));
        }
    }
    Ok((request, fields.number("priority")?))
}

pub(crate) async fn flow(call: Call) -> Listed {
    let target = call.target()?;
    let (request, priority) = filter(&call, &target)?;
    let reply = target.ask(MultipartRequestBody::Flow(request)).await?;
    let MultipartReplyBody::Flow(flows) = reply else { return Err(odd()) };
    let wanted = flows.into_iter().filter(|flow| priority.is_none_or(|it| it == flow.priority));
    list(&call, &target, wanted.map(|flow| render::flow(target.version(), flow))).await
}

/// The same with match and actions of each entry as `ovs-ofctl` and `weir ctl` print them.
pub(crate) async fn flow_text(call: Call) -> Listed {
    let target = call.target()?;
    let reply = target.ask(MultipartRequestBody::Flow(FlowStatsRequest::all())).await?;
    let MultipartReplyBody::Flow(flows) = reply else { return Err(odd()) };
    let flows = flows.into_iter().map(|flow| {
        let text = json!({
            "match": format_flow_match(target.version(), &flow.matching),
            "actions": format_instructions(&flow.instructions),
        });
        let mut value = render::flow(target.version(), flow);
        value["text"] = text;
        value
    });
    list(&call, &target, flows).await
}

pub(crate) async fn aggregate(call: Call) -> Listed {
    let target = call.target()?;
    let (request, priority) = filter(&call, &target)?;
    if priority.is_some() {
        return Err(Problem::bad("the switch sums up entries of all priorities").at("priority"));
    }
    let reply = target.ask(MultipartRequestBody::Aggregate(request)).await?;
    let MultipartReplyBody::Aggregate(sums) = reply else { return Err(odd()) };
    let value = json!({
        "packet_count": sums.packet_count,
        "byte_count": sums.byte_count,
        "flow_count": sums.flow_count,
    });
    list(&call, &target, [value]).await
}

pub(crate) async fn table(call: Call) -> Listed {
    let target = call.target()?;
    let reply = target.ask(MultipartRequestBody::Table).await?;
    let MultipartReplyBody::Table(tables) = reply else { return Err(odd()) };
    list(&call, &target, tables.into_iter().map(|table| render::table(target.version(), &table)))
        .await
}

/// The port of the path; none where it is missing or `ALL`.
fn port_of(call: &Call, target: &Target) -> Result<Option<PortNo>, Problem> {
    let Some(number) = call.number("port")? else { return Ok(None) };
    let port = words::port(target.version(), &number.into());
    port.map(Some).map_err(|problem| problem.at("port"))
}

pub(crate) async fn port(call: Call) -> Listed {
    let target = call.target()?;
    let port = port_of(&call, &target)?.unwrap_or(PortNo::ANY);
    let reply = target.ask(MultipartRequestBody::PortStats(port)).await?;
    let MultipartReplyBody::PortStats(ports) = reply else { return Err(odd()) };
    list(&call, &target, ports.into_iter().map(|port| render::port_stats(target.version(), &port)))
        .await
}

pub(crate) async fn queue(call: Call) -> Listed {
    let target = call.target()?;
    // 1.0 asks for the queues of all ports by the port ALL (its clause 5.3.5).
    let all = if target.version().has_wide_ports() { PortNo::ANY } else { PortNo::ALL };
    let port = port_of(&call, &target)?.unwrap_or(all);
    let queue = call.number("queue_id")?.map_or(QueueId::ALL, QueueId);
    let mut text = String::new();
    queues_of(&mut text, &target, port, queue, &ByteBudget::of_list(&call)).await?;
    Ok(Reply::Text(text))
}

/// Adds counters of queues under the switch's datapath id, as text.
///
/// # Errors
/// When the switch does not answer with them, or there are more bytes than there may be.
pub(crate) async fn queues_of(
    text: &mut String,
    target: &Target,
    port: PortNo,
    queue: QueueId,
    budget: &ByteBudget,
) -> Result<(), Problem> {
    let reply = target.ask(MultipartRequestBody::Queue { port, queue }).await?;
    let MultipartReplyBody::Queue(queues) = reply else { return Err(odd()) };
    let shown = queues.into_iter().map(|queue| render::queue_stats(target.version(), &queue));
    listed(text, target.datapath.dpid, shown, budget).await
}

fn needs_meters(target: &Target) -> Result<(), Problem> {
    let version = target.version();
    if version.has_meters() { Ok(()) } else { Err(Problem::not_in(version, "meters")) }
}

fn needs_groups(target: &Target) -> Result<(), Problem> {
    let version = target.version();
    if version.has_groups() { Ok(()) } else { Err(Problem::not_in(version, "groups")) }
}

pub(crate) async fn meter(call: Call) -> Listed {
    let target = call.target()?;
    needs_meters(&target)?;
    let meter = call.number("meter_id")?.map_or(MeterId::ALL, MeterId);
    let mut text = String::new();
    meters_of(&mut text, &target, meter, &ByteBudget::of_list(&call)).await?;
    Ok(Reply::Text(text))
}

/// Adds counters of meters under the switch's datapath id, as text.
///
/// # Errors
/// When the switch does not answer with them, or there are more bytes than there may be.
pub(crate) async fn meters_of(
    text: &mut String,
    target: &Target,
    meter: MeterId,
    budget: &ByteBudget,
) -> Result<(), Problem> {
    let reply = target.ask(MultipartRequestBody::Meter(meter)).await?;
    let MultipartReplyBody::Meter(meters) = reply else { return Err(odd()) };
    let shown = meters.into_iter().map(|it| render::meter_stats(target.version(), it));
    listed(text, target.datapath.dpid, shown, budget).await
}

pub(crate) async fn meter_config(call: Call) -> Listed {
    let target = call.target()?;
    needs_meters(&target)?;
    let meter = call.number("meter_id")?.map_or(MeterId::ALL, MeterId);
    let reply = target.ask(MultipartRequestBody::MeterConfig(meter)).await?;
    let MultipartReplyBody::MeterConfig(meters) = reply else { return Err(odd()) };
    list(&call, &target, meters.into_iter().map(|meter| render::meter_config(&meter))).await
}

pub(crate) async fn meter_features(call: Call) -> Listed {
    let target = call.target()?;
    needs_meters(&target)?;
    let reply = target.ask(MultipartRequestBody::MeterFeatures).await?;
    let MultipartReplyBody::MeterFeatures(features) = reply else { return Err(odd()) };
    list(&call, &target, [render::meter_features(&features)]).await
}

pub(crate) async fn meter_desc(call: Call) -> Answer {
    let target = call.target()?;
    Err(Problem::not_in(target.version(), "descriptions of meters; see /stats/meterconfig"))
}

pub(crate) async fn queue_desc(call: Call) -> Answer {
    call.target()?;
    let words = "queues are described by /stats/queueconfig, whatever version is spoken";
    Err(Problem::new(StatusCode::NOT_IMPLEMENTED, words))
}

pub(crate) async fn queue_config(call: Call) -> Listed {
    let target = call.target()?;
    let version = target.version();
    let port = match port_of(&call, &target)? {
        Some(port) => port,
        None if version.has_queues_of_any_port() => PortNo::ANY,
        None => {
            let words = format!("{version} asks for the queues of one port: name it in the path");
            return Err(Problem::bad(words).at("port"));
        }
    };
    let config = target.queues(port).await?;
    list(&call, &target, [render::queue_config(version, config.port, &config.queues)]).await
}

pub(crate) async fn group(call: Call) -> Listed {
    let target = call.target()?;
    needs_groups(&target)?;
    let group = call.number("group_id")?.map_or(GroupId::ALL, GroupId);
    let reply = target.ask(MultipartRequestBody::Group(group)).await?;
    let MultipartReplyBody::Group(groups) = reply else { return Err(odd()) };
    list(&call, &target, groups.into_iter().map(|it| render::group_stats(target.version(), it)))
        .await
}

pub(crate) async fn group_desc(call: Call) -> Listed {
    let target = call.target()?;
    needs_groups(&target)?;
    let wanted = call.number("group_id")?;
    let reply = target.ask(MultipartRequestBody::GroupDesc).await?;
    let MultipartReplyBody::GroupDesc(groups) = reply else { return Err(odd()) };
    let groups = groups.into_iter().filter(|group| wanted.is_none_or(|id| id == group.group_id.0));
    list(&call, &target, groups.map(|group| render::group_desc(target.version(), &group))).await
}

/// The same with the actions of each bucket as `weir ctl` prints them.
pub(crate) async fn group_text(call: Call) -> Listed {
    let target = call.target()?;
    needs_groups(&target)?;
    let reply = target.ask(MultipartRequestBody::GroupDesc).await?;
    let MultipartReplyBody::GroupDesc(groups) = reply else { return Err(odd()) };
    let groups = groups.into_iter().map(|group| {
        let texts: Vec<String> =
            group.buckets.iter().map(|bucket| format_actions(&bucket.actions)).collect();
        let mut value = render::group_desc(target.version(), &group);
        value["text"] = texts.into();
        value
    });
    list(&call, &target, groups).await
}

pub(crate) async fn group_features(call: Call) -> Listed {
    let target = call.target()?;
    needs_groups(&target)?;
    let reply = target.ask(MultipartRequestBody::GroupFeatures).await?;
    let MultipartReplyBody::GroupFeatures(features) = reply else { return Err(odd()) };
    list(&call, &target, [render::group_features(target.version(), &features)]).await
}

pub(crate) async fn table_features(call: Call) -> Listed {
    let target = call.target()?;
    let version = target.version();
    if !version.has_table_features() {
        return Err(Problem::not_in(version, "features of tables"));
    }
    let reply = target.ask(MultipartRequestBody::TableFeatures(Vec::new())).await?;
    let MultipartReplyBody::TableFeatures(tables) = reply else { return Err(odd()) };
    list(&call, &target, tables.into_iter().map(|table| features::table(version, &table))).await
}

pub(crate) async fn port_desc(call: Call) -> Listed {
    let target = call.target()?;
    let version = target.version();
    let wanted = port_of(&call, &target)?;
    let ports = if version.has_port_desc() {
        let reply = target.ask(MultipartRequestBody::PortDesc).await?;
        let MultipartReplyBody::PortDesc(ports) = reply else { return Err(odd()) };
        ports
    } else {
        let answer = target.request(Message::FeaturesRequest).await?;
        let Message::FeaturesReply(features) = answer else { return Err(odd_answer(&answer)) };
        features.ports
    };
    let ports = ports.into_iter().filter(|port| wanted.is_none_or(|it| it == port.port_no));
    list(&call, &target, ports.map(|port| render::port_desc(version, &port))).await
}

pub(crate) async fn role(call: Call) -> Listed {
    let target = call.target()?;
    let version = target.version();
    if !version.has_roles() {
        return Err(Problem::not_in(version, "roles"));
    }
    let asked = Role { role: ControllerRole::NoChange, generation_id: 0 };
    let answer = target.request(Message::RoleRequest(asked)).await?;
    let Message::RoleReply(role) = answer else { return Err(odd_answer(&answer)) };
    let value = json!({
        "role": words::ROLES.value(role.role.number()),
        "generation_id": role.generation_id,
    });
    list(&call, &target, [value]).await
}

#[cfg(test)]
mod tests {
    use super::FILTER;
    use crate::byte_budget::ByteBudget;
    use crate::pause::VALUES_A_TURN;
    use crate::problem::Problem;
    use crate::shape::Fields;
    use openflow::DatapathId;
    use serde_json::{Value, json};

    async fn listed(
        dpid: u64,
        values: impl IntoIterator<Item = Value>,
        budget: &ByteBudget,
    ) -> Result<String, Problem> {
        let mut text = String::new();
        super::listed(&mut text, DatapathId(dpid), values, budget).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn a_list_is_whole_or_refused() {
        let values = || [json!({"a": 1}), json!([2])];
        let list = |bytes_max| async move {
            let budget = ByteBudget::new(bytes_max, "less");
            listed(10, values(), &budget).await
        };
        assert_eq!(list(100).await.unwrap(), r#"{"10":[{"a":1},[2]]}"#);
        assert_eq!(listed(1, [], &ByteBudget::new(0, "less")).await.unwrap(), r#"{"1":[]}"#);
        let refused = list(10).await.unwrap_err().to_value();
        assert_eq!(refused["error"], "the answer has more than 10 bytes: ask for less");
    }

    #[tokio::test]
    async fn lists_of_all_switches_share_a_budget_and_end_with_it() {
        let budget = ByteBudget::new(30, "less");
        let made = std::cell::Cell::new(0);
        // Ten bytes each, with the comma.
        let values = |count: usize| {
            let made = &made;
            (0..count).map(move |_| {
                made.set(made.get() + 1);
                json!("1234567")
            })
        };
        listed(1, values(2), &budget).await.unwrap();
        assert!(listed(2, values(1000), &budget).await.is_err());
        assert_eq!(made.get(), 2 + 2);
    }

    #[tokio::test]
    async fn a_long_list_leaves_others_their_turn() {
        let values = (0..10 * VALUES_A_TURN).map(|number| json!(number));
        let budget = ByteBudget::new(usize::MAX, "less");
        let listing = listed(1, values, &budget);
        let turns = std::cell::Cell::new(0);
        let other = async {
            loop {
                turns.set(turns.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            text = listing => assert!(text.unwrap().ends_with("2559]}")),
            () = other => {}
        }
        assert_eq!(turns.get(), 10);
    }

    #[test]
    fn a_filter_has_no_other_keys() {
        let body = json!({"matsch": {}});
        let problem = Fields::of(&body, &FILTER, "").unwrap_err().to_value();
        assert_eq!(problem["at"], "matsch");
        assert!(problem["allowed"].as_array().unwrap().contains(&json!("out_port")));
    }
}
