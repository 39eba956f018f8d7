//! The wanted master of each switch: a function of the view, the same on every node.
//!
//! An owner keeps what it has. A switch without an owner goes to the connected node with the fewest
//! switches, and a node that has two more than another gives some up. A node that knows that the
//! switch is set up is preferred to one that has only just come and would set it up anew: that one
//! gets its share from the owners, who hand over. Ties go by the node's name,
//! so that nodes which see the same plan the same; where they see different things, etcd decides.
//! If one node is to have all switches, it is the one that most are connected with.

use crate::Sharing;
use crate::address::KeyName;
use crate::view::View;
use openflow::DatapathId;
use std::collections::{BTreeMap, BTreeSet};

/// The wanted masters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// For each switch that somebody is connected with.
    pub(crate) targets: BTreeMap<DatapathId, KeyName>,
}

impl Plan {
    pub(crate) fn of(view: &View, sharing: Sharing) -> Self {
        match sharing {
            Sharing::Even => Self::even(view),
            Sharing::OneNode => Self::of_one_node(view),
        }
    }

    /// Everything that the leading node is connected with is its own; of what is left the same.
    fn of_one_node(view: &View) -> Self {
        let mut targets = BTreeMap::new();
        let mut left: Vec<DatapathId> = view.reach.keys().copied().collect();
        loop {
            let reaches = |dpid: &DatapathId, node: &KeyName| {
                view.reach.get(dpid).is_some_and(|nodes| nodes.contains(node))
            };
            let owns = |dpid: &DatapathId, node: &KeyName| {
                view.owner(*dpid).is_some_and(|owner| owner.node == *node)
            };
            let knows =
                |dpid: DatapathId, node: &KeyName| view.knows.contains(&(dpid, node.clone()));
            // Of two with as many switches the one that has them keeps them.
            let staying = view.nodes.iter().filter(|(_, record)| !record.is_leaving);
            let leading = staying.map(|(node, _)| node).max_by_key(|node| {
                let own = left.iter().filter(|dpid| reaches(dpid, node));
                let owned = own.clone().filter(|dpid| owns(dpid, node)).count();
                let known = own.clone().filter(|dpid| knows(**dpid, node)).count();
                (own.count(), owned, known, std::cmp::Reverse(*node))
            });
            let Some(leading) = leading else { break };
            let before = left.len();
            left.retain(|dpid| {
                let is_its = reaches(dpid, leading);
                if is_its {
                    targets.insert(*dpid, leading.clone());
                }
                !is_its
            });
            if left.len() == before {
                break;
            }
        }
        Self { targets }
    }

    fn even(view: &View) -> Self {
        let mut loads: BTreeMap<&KeyName, usize> = BTreeMap::new();
        for (node, record) in &view.nodes {
            if !record.is_leaving {
                loads.insert(node, 0);
            }
        }
        let mut targets: BTreeMap<DatapathId, &KeyName> = BTreeMap::new();
        for (dpid, nodes) in &view.reach {
            let owner = view.owner(*dpid).map(|owner| &owner.node);
            if let Some(owner) = owner.filter(|owner| nodes.contains(*owner))
                && let Some(load) = loads.get_mut(owner)
            {
                *load += 1;
                targets.insert(*dpid, owner);
            }
        }
        for (dpid, nodes) in &view.reach {
            if targets.contains_key(dpid) {
                continue;
            }
            let candidates = loads.iter().filter(|(node, _)| may_have(view, *dpid, nodes, node));
            let least = candidates.min_by_key(|(node, load)| (**load, **node));
            if let Some(node) = least.map(|(node, _)| *node) {
                *loads.entry(node).or_default() += 1;
                targets.insert(*dpid, node);
            }
        }
        balance(view, &mut loads, &mut targets);
        let targets = targets.into_iter().map(|(dpid, node)| (dpid, node.clone())).collect();
        Self { targets }
    }
}

/// Whether a node may get a switch that these are connected with: from its owner, or because it
/// knows the switch, or because none of them does.
fn may_have(view: &View, dpid: DatapathId, nodes: &BTreeSet<KeyName>, node: &KeyName) -> bool {
    let knows = |node: &KeyName| {
        let is_staying = view.nodes.get(node).is_some_and(|record| !record.is_leaving);
        is_staying && view.knows.contains(&(dpid, node.clone()))
    };
    nodes.contains(node) && (knows(node) || view.owner(dpid).is_some() || !nodes.iter().any(knows))
}

/// Moves switches, the highest ids first, from nodes that have two more than another. Each move
/// makes the loads more even, so it comes to an end; without it a plan that is carried out could
/// ask for further moves.
fn balance<'v>(
    view: &'v View,
    loads: &mut BTreeMap<&'v KeyName, usize>,
    targets: &mut BTreeMap<DatapathId, &'v KeyName>,
) {
    while balance_once(view, loads, targets) {}
}

/// One pass; whether it moved a switch.
fn balance_once<'v>(
    view: &'v View,
    loads: &mut BTreeMap<&'v KeyName, usize>,
    targets: &mut BTreeMap<DatapathId, &'v KeyName>,
) -> bool {
    let mut has_moved = false;
    for (dpid, target) in targets.iter_mut().rev() {
        let Some(nodes) = view.reach.get(dpid) else { continue };
        let load = loads.get(*target).copied().unwrap_or(0);
        let candidates = loads.iter().filter(|(node, _)| may_have(view, *dpid, nodes, node));
        let least = candidates.min_by_key(|(node, load)| (**load, **node));
        let Some((node, least)) = least.map(|(node, load)| (*node, *load)) else { continue };
        if least + 2 <= load {
            loads.insert(*target, load - 1);
            loads.insert(node, least + 1);
            *target = node;
            has_moved = true;
        }
    }
    has_moved
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::Sharing;
    use crate::address::KeyName;
    use crate::view::{NodeRecord, Owner, View};
    use openflow::DatapathId;
    use std::collections::{BTreeMap, BTreeSet};

    fn name(text: &str) -> KeyName {
        text.parse().unwrap()
    }

    fn view(nodes: &[&str], switches: u64) -> View {
        let mut view = View::new("/p/");
        for node in nodes {
            let record = NodeRecord { lease: 1, created: 1, is_leaving: false };
            view.nodes.insert(name(node), record);
        }
        let all: BTreeSet<KeyName> = nodes.iter().map(|node| name(node)).collect();
        view.reach.extend((0..switches).map(|dpid| (DatapathId(dpid), all.clone())));
        view
    }

    fn own(view: &mut View, dpid: u64, node: &str) {
        let owner = Owner { node: name(node), lease: 1, revision: 1, from: None };
        view.owners.insert(DatapathId(dpid), owner);
    }

    fn loads(plan: &Plan) -> Vec<usize> {
        let mut loads: BTreeMap<&KeyName, usize> = BTreeMap::new();
        for node in plan.targets.values() {
            *loads.entry(node).or_default() += 1;
        }
        loads.into_values().collect()
    }

    #[test]
    fn switches_are_spread_evenly() {
        assert_eq!(loads(&Plan::of(&view(&["a", "b", "c"], 9), Sharing::Even)), [3, 3, 3]);
        assert_eq!(loads(&Plan::of(&view(&["a", "b", "c"], 10), Sharing::Even)), [4, 3, 3]);
        assert!(Plan::of(&view(&[], 3), Sharing::Even).targets.is_empty());
    }

    #[test]
    fn switches_of_a_gone_node_move_and_nothing_else_does() {
        let mut view = view(&["b", "c"], 9);
        for dpid in 0..9 {
            own(&mut view, dpid, ["a", "b", "c"][dpid as usize % 3]);
        }
        let plan = Plan::of(&view, Sharing::Even);
        assert_eq!(loads(&plan), [5, 4]);
        for dpid in (0..9).filter(|dpid| dpid % 3 != 0) {
            assert_eq!(plan.targets[&DatapathId(dpid)], view.owners[&DatapathId(dpid)].node);
        }
    }

    #[test]
    fn a_node_that_comes_gets_its_share_by_the_fewest_moves() {
        let mut view = view(&["a", "b", "c"], 9);
        for dpid in 0..9 {
            own(&mut view, dpid, ["a", "b"][dpid as usize % 2]);
        }
        let plan = Plan::of(&view, Sharing::Even);
        assert_eq!(loads(&plan), [3, 3, 3]);
        let moved = plan.targets.iter().filter(|(dpid, node)| view.owners[dpid].node != **node);
        assert_eq!(moved.count(), 3);
    }

    #[test]
    fn a_node_that_leaves_or_is_not_connected_gets_nothing() {
        let mut view = view(&["a", "b"], 4);
        (0..4).for_each(|dpid| own(&mut view, dpid, "a"));
        view.nodes.get_mut(&name("a")).unwrap().is_leaving = true;
        view.reach.insert(DatapathId(3), BTreeSet::from([name("a")]));
        let plan = Plan::of(&view, Sharing::Even);
        assert!((0..3).all(|dpid| plan.targets[&DatapathId(dpid)] == name("b")));
        assert!(!plan.targets.contains_key(&DatapathId(3)));
    }

    #[test]
    fn a_node_that_knows_the_switch_is_preferred_to_a_newcomer() {
        let mut view = view(&["a", "b", "c"], 6);
        let knows = |dpid: u64, node: &str| (DatapathId(dpid), name(node));
        view.knows.extend((0..6).flat_map(|dpid| [knows(dpid, "b"), knows(dpid, "c")]));
        (0..3).for_each(|dpid| own(&mut view, dpid, "b"));
        let plan = Plan::of(&view, Sharing::Even);
        assert!((3..6).all(|dpid| plan.targets[&DatapathId(dpid)] == name("c")), "{plan:?}");
        let moved = |plan: &Plan| plan.targets.values().filter(|node| **node == name("a")).count();
        assert_eq!(moved(&plan), 1, "its owner hands one over to the newcomer");
        (3..6).for_each(|dpid| own(&mut view, dpid, "c"));
        assert_eq!(moved(&Plan::of(&view, Sharing::Even)), 2);
        view.owners.clear();
        let plan = Plan::of(&view, Sharing::OneNode);
        assert!(plan.targets.values().all(|node| *node == name("b")), "{plan:?}");
        view.knows.clear();
        assert_eq!(loads(&Plan::of(&view, Sharing::Even)), [2, 2, 2]);
    }

    #[test]
    fn an_owner_that_no_lease_stands_for_owns_nothing() {
        let mut view = view(&["a"], 1);
        let owner = Owner { node: name("a"), lease: 9, revision: 1, from: None };
        view.owners.insert(DatapathId(0), owner);
        assert!(view.owner(DatapathId(0)).is_none());
        assert_eq!(Plan::of(&view, Sharing::Even).targets[&DatapathId(0)], name("a"));
    }

    #[test]
    fn one_node_has_all_until_it_goes_and_a_newcomer_takes_nothing() {
        let mut view = view(&["a", "b", "c"], 9);
        let plan = Plan::of(&view, Sharing::OneNode);
        assert_eq!(loads(&plan), [9]);
        for dpid in 0..9 {
            own(&mut view, dpid, "b");
        }
        let all_of = |view: &View, node: &str| {
            let plan = Plan::of(view, Sharing::OneNode);
            plan.targets.len() == 9 && plan.targets.values().all(|target| *target == name(node))
        };
        assert!(all_of(&view, "b"), "it keeps them, whatever its name is");
        view.nodes.get_mut(&name("b")).unwrap().is_leaving = true;
        assert!(all_of(&view, "a"));
        view.nodes.remove(&name("b"));
        view.reach.values_mut().for_each(|nodes| nodes.retain(|node| *node != name("b")));
        // One switch has lost its connection with a: c sees the whole network.
        view.reach.get_mut(&DatapathId(4)).unwrap().remove(&name("a"));
        assert!(all_of(&view, "c"));
        // Nobody sees all of it: the rest is not left alone.
        view.reach.get_mut(&DatapathId(5)).unwrap().remove(&name("c"));
        let plan = Plan::of(&view, Sharing::OneNode);
        assert_eq!((plan.targets.len(), loads(&plan)), (9, vec![8, 1]));
    }

    #[test]
    fn whatever_the_view_the_plan_is_stable_once_it_is_carried_out() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..600 {
            let sharing = if round % 2 == 0 { Sharing::Even } else { Sharing::OneNode };
            let nodes = &["a", "b", "c", "d"][..random.usize(1..5)];
            let mut view = view(nodes, random.u64(0..40));
            for (dpid, reach) in &mut view.reach {
                reach.retain(|_| random.u8(0..5) > 0);
                if random.bool() {
                    let node = name(["a", "b", "c", "d"][random.usize(0..4)]);
                    let owner = Owner { node, lease: 1, revision: 1, from: None };
                    view.owners.insert(*dpid, owner);
                }
            }
            let plan = Plan::of(&view, sharing);
            for (dpid, node) in &plan.targets {
                assert!(view.reach[dpid].contains(node) && view.nodes.contains_key(node));
                let owner = Owner { node: node.clone(), lease: 1, revision: 2, from: None };
                view.owners.insert(*dpid, owner);
            }
            let reached = view.reach.values().filter(|nodes| !nodes.is_empty()).count();
            assert_eq!(plan.targets.len(), reached);
            assert_eq!(Plan::of(&view, sharing), plan, "no switch moves back and forth");
        }
    }
}
