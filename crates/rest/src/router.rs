//! The endpoints of Ryu's `rest_router`: addresses and static routes of switches that route.
//!
//! Changes are kept by the controller's app [`ManagedRouters`], which serves the packets; a
//! change is answered when the switch has the flow entries for it. Ryu made every switch a router;
//! here a switch becomes one by its first address. As in Ryu, what goes against what is there
//! (an address that overlaps, a gateway in no network) is answered 200 with `failure`, and a route
//! is shown once its gateway has been heard.

use crate::datapath::Target;
use crate::problem::Problem;
use crate::route::{Answer, Body, Call, Row, endpoints};
use crate::rules::{self, Vlan};
use crate::shape::{Fields, Of, Shape, key};
use axum::http::StatusCode;
use controller::apps::{
    ManagedRouters, NetworkPrefix, RouterChange, RouterRefusal, RouterUpdate, ShownRouter,
};
use serde_json::{Map, Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;

static CONFIG: Shape = Shape {
    name: "router",
    what: "an address or a route of a router",
    keys: &[
        key("address", Of::Text, "a new address with the length of its network: 10.0.1.1/24"),
        key("destination", Of::Text, "the network of a new route; default: 0.0.0.0/0"),
        key("gateway", Of::Text, "the gateway of a new route"),
    ],
};

static IDS: Shape = Shape {
    name: "router_ids",
    what: "which addresses or routes of a router",
    keys: &[
        key("address_id", Of::Scalar, "the address's number, or `all`"),
        key("route_id", Of::Scalar, "the route's number, or `all`"),
    ],
};

/// The endpoints.
pub(crate) fn rows() -> [Row; 6] {
    endpoints! {
        GET "/router/{switch}" "Addresses and routes" Body::None, true => get;
        GET "/router/{switch}/{vlan}" "Addresses and routes of a VLAN" Body::None, true => get;
        POST "/router/{switch}" "Add an address or a route" Body::Must(&CONFIG), true => set;
        POST "/router/{switch}/{vlan}" "Add an address or a route for a VLAN"
            Body::Must(&CONFIG), true => set;
        DELETE "/router/{switch}" "Delete addresses or routes" Body::Must(&IDS), true => delete;
        DELETE "/router/{switch}/{vlan}" "Delete addresses or routes of a VLAN"
            Body::Must(&IDS), true => delete;
    }
}

/// The routers of the controller.
fn routers(call: &Call) -> Result<Arc<ManagedRouters>, Problem> {
    call.services.routers.clone().ok_or_else(|| {
        let words = "this controller has no routers: `weir controller idle --rest ..` has them";
        Problem::new(StatusCode::NOT_IMPLEMENTED, words)
    })
}

/// The address of a key.
fn address(fields: &Fields<'_>, key: &str) -> Result<Option<Ipv4Addr>, Problem> {
    let Some(text) = fields.text(key)? else { return Ok(None) };
    let address = text.parse().map_err(|_| fields.problem(key, "no IPv4 address"))?;
    Ok(Some(address))
}

/// The network of a key; the length is 32 where there is none, as in Ryu.
fn prefix(fields: &Fields<'_>, key: &str) -> Result<Option<NetworkPrefix>, Problem> {
    let Some(text) = fields.text(key)? else { return Ok(None) };
    let text = if text.contains('/') { text.to_owned() } else { format!("{text}/32") };
    NetworkPrefix::try_from(text).map(Some).map_err(|words| fields.problem(key, words))
}

/// The addition of a body.
fn addition(fields: &Fields<'_>) -> Result<RouterChange, Problem> {
    let (to, via) = (prefix(fields, "destination")?, address(fields, "gateway")?);
    match (prefix(fields, "address")?, to, via) {
        (Some(address), None, None) => {
            let ip = address.address;
            let is_host = !ip.is_unspecified()
                && !ip.is_multicast()
                && !ip.is_broadcast()
                && !ip.is_loopback()
                && (1..=32).contains(&address.len);
            let is_end = address.len < 31 && [address.network(), address.broadcast()].contains(&ip);
            if !is_host || is_end {
                return Err(fields.problem("address", "not the address of a host"));
            }
            Ok(RouterChange::AddAddress(address))
        }
        (None, to, Some(via)) => {
            let default = NetworkPrefix { address: Ipv4Addr::UNSPECIFIED, len: 0 };
            Ok(RouterChange::AddRoute { to: to.unwrap_or(default), via })
        }
        (None, Some(_), None) => {
            Err(fields.problem("destination", "it needs the key gateway beside it"))
        }
        (None, None, None) => Err(Problem::bad("the body needs the key address, or gateway")),
        (Some(_), _, _) => {
            Err(fields.problem("address", "an address has no destination and no gateway"))
        }
    }
}

/// The deletion of a body.
fn deletion(fields: &Fields<'_>) -> Result<RouterChange, Problem> {
    // A number that no address has is one that is not there.
    let id = |key| -> Result<Option<u16>, Problem> {
        let number = rules::number_of(fields, key)?;
        Ok(number.map(|number| u16::try_from(number).unwrap_or(0)))
    };
    match (fields.get("address_id"), fields.get("route_id")) {
        (Some(_), None) => Ok(RouterChange::DeleteAddresses(id("address_id")?)),
        (None, Some(_)) => Ok(RouterChange::DeleteRoutes(id("route_id")?)),
        (None, None) => Err(Problem::bad("the body needs the key address_id, or route_id")),
        (Some(_), Some(_)) => {
            Err(fields.problem("address_id", "either addresses or routes are deleted"))
        }
    }
}

async fn get(call: Call) -> Answer {
    let (vlan, routers) = (Vlan::of(&call)?, routers(&call)?);
    let mut all = Vec::new();
    for target in rules::targets(&call.services, &call)? {
        let shown = routers.show(target.datapath.dpid);
        let mut list: Vec<Value> =
            shown.iter().filter(|router| vlan.has(router.vlan)).map(shown_router).collect();
        if list.is_empty() {
            list.push(json!({"vlan_id": call.part("vlan")}));
        }
        all.push(rules::of_switch(&target, "internal_network", list));
    }
    Ok(Some(all.into()))
}

fn shown_router(router: &ShownRouter) -> Value {
    let addresses = router.addresses.iter();
    let addresses: Vec<Value> = addresses
        .map(|it| json!({"address_id": it.id, "address": it.address.to_string()}))
        .collect();
    let heard = router.routes.iter().filter(|route| route.heard_at.is_some());
    let routes: Vec<Value> = heard
        .map(|it| {
            let (to, via) = (it.to.to_string(), it.via.to_string());
            json!({"route_id": it.id, "destination": to, "gateway": via})
        })
        .collect();
    let mut object = Map::new();
    if !addresses.is_empty() {
        object.insert("address".into(), addresses.into());
    }
    if !routes.is_empty() {
        object.insert("route".into(), routes.into());
    }
    // As in Ryu, a router that has nothing shows no VLAN either.
    if router.vlan != 0 && !object.is_empty() {
        object.insert("vlan_id".into(), router.vlan.into());
    }
    object.into()
}

/// The VLANs of a switch that a request is about: those that it has a router for.
fn vlans(routers: &ManagedRouters, target: &Target, vlan: Vlan) -> Vec<u16> {
    let shown = routers.show(target.datapath.dpid);
    shown.iter().map(|router| router.vlan).filter(|own| vlan.has(*own)).collect()
}

/// Changes the router of a VLAN, on the switch too.
async fn change(
    routers: &ManagedRouters,
    target: &Target,
    vlan: u16,
    change: RouterChange,
) -> Result<Result<RouterUpdate, RouterRefusal>, Problem> {
    let (dpid, version) = (target.datapath.dpid, target.version());
    let changed = routers.change(dpid, version, &target.datapath.ports, vlan, change);
    let mut update = match changed {
        Ok(update) => update,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if update.messages.is_empty() {
        return Ok(Ok(update));
    }
    if let Err(problem) = target.apply(std::mem::take(&mut update.messages)).await {
        // Half of it may be there; the switch may be gone, too, and then there is nothing.
        let undo = std::mem::take(&mut update.undo_messages);
        routers.undo(update);
        if let Err(worse) = target.apply(undo).await {
            tracing::debug!(switch = %dpid, problem = %worse.words(), "a change is half undone");
        }
        return Err(problem);
    }
    let questions = std::mem::take(&mut update.questions);
    if let Err(problem) = target.apply(questions).await {
        tracing::debug!(switch = %dpid, problem = %problem.words(), "ARP could not be asked");
    }
    Ok(Ok(update))
}

async fn set(call: Call) -> Answer {
    let (vlan, routers) = (Vlan::of(&call)?, routers(&call)?);
    let addition = addition(&call.fields(&CONFIG)?)?;
    let targets = rules::targets(&call.services, &call)?;
    let turn = call.services.router_turn.lock().await;
    let routers = &routers;
    let answer = rules::change_each(targets, |target| async move {
        let vlans = match vlan {
            Vlan::One(vlan) => vec![vlan],
            Vlan::All => vlans(routers, &target, vlan),
        };
        let mut results = Vec::new();
        for vlan in vlans {
            let changed = change(routers, &target, vlan, addition).await?;
            results.push(match changed {
                Ok(update) => {
                    let id = update.ids.first().copied().unwrap_or(0);
                    let details = match addition {
                        RouterChange::AddRoute { .. } => format!("Add route [route_id={id}]"),
                        RouterChange::AddAddress(_)
                        | RouterChange::DeleteAddresses(_)
                        | RouterChange::DeleteRoutes(_) => format!("Add address [address_id={id}]"),
                    };
                    rules::result(vlan, "success", details)
                }
                Err(refusal) => rules::result(vlan, "failure", refusal.to_string()),
            });
        }
        Ok(rules::of_switch(&target, "command_result", results))
    })
    .await;
    drop(turn);
    answer
}

async fn delete(call: Call) -> Answer {
    let (vlan, routers) = (Vlan::of(&call)?, routers(&call)?);
    let deletion = deletion(&call.fields(&IDS)?)?;
    let targets = rules::targets(&call.services, &call)?;
    let turn = call.services.router_turn.lock().await;
    let routers = &routers;
    let answer = rules::change_each(targets, |target| async move {
        let mut results = Vec::new();
        for vlan in vlans(routers, &target, vlan) {
            match change(routers, &target, vlan, deletion).await? {
                Ok(update) => results.extend(deleted(vlan, deletion, &update)),
                Err(refusal) => results.push(rules::result(vlan, "failure", refusal.to_string())),
            }
        }
        if results.is_empty() {
            results.push(rules::result(0, "failure", "Data is nothing.".to_owned()));
        }
        Ok(rules::of_switch(&target, "command_result", results))
    })
    .await;
    drop(turn);
    answer
}

fn deleted(vlan: u16, deletion: RouterChange, update: &RouterUpdate) -> Option<Value> {
    let named = |ids: &[u16]| {
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        ids.join(",")
    };
    let what = match deletion {
        RouterChange::DeleteRoutes(_) => "route [route_id",
        RouterChange::DeleteAddresses(_)
        | RouterChange::AddAddress(_)
        | RouterChange::AddRoute { .. } => "address [address_id",
    };
    let gone = (!update.ids.is_empty()).then(|| format!("Delete {what}={}]", named(&update.ids)));
    let kept = (!update.kept.is_empty())
        .then(|| format!("Skip delete (related route exist) [address_id={}]", named(&update.kept)));
    let word = if gone.is_some() { "success" } else { "failure" };
    let details: Vec<String> = gone.into_iter().chain(kept).collect();
    (!details.is_empty()).then(|| rules::result(vlan, word, details.join(", ")))
}
