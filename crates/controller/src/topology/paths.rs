//! Shortest paths over links, and one tree without loops for what goes everywhere.
//!
//! Both are functions of the links alone, so that every part of a controller that sees the same
//! links sends a packet the same way. Only links that are known in both directions count. It must
//! never choose by the order in which links were found.

use super::{SwitchPort, TopologyLink};
use openflow::{DatapathId, PortNo};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// ShortestPaths over a set of links.
///
/// ```
/// use controller::topology::{ShortestPaths, SwitchPort, TopologyLink};
/// use openflow::{DatapathId, PortNo};
///
/// let port = |dpid, port| SwitchPort { dpid: DatapathId(dpid), port: PortNo(port) };
/// let there = TopologyLink { from: port(1, 2), to: port(2, 1) };
/// let mut paths = ShortestPaths::new(&[there, there.reversed()]);
/// assert_eq!(paths.next_hop(DatapathId(1), DatapathId(2)), Some(PortNo(2)));
/// assert!(paths.is_in_tree(port(2, 1)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ShortestPaths {
    neighbours: BTreeMap<DatapathId, BTreeSet<Step>>,
    tree: HashSet<SwitchPort>,
    /// For each destination that was asked for: by which port a switch is nearer to it.
    towards: HashMap<DatapathId, HashMap<DatapathId, PortNo>>,
}

/// A way from a switch to its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    to: DatapathId,
    out: PortNo,
    arrives_at: PortNo,
}

impl ShortestPaths {
    /// The paths over these links.
    #[must_use]
    pub fn new(links: &[TopologyLink]) -> Self {
        let known: HashSet<_> = links.iter().copied().collect();
        let both_ways = |link: &&TopologyLink| {
            known.contains(&link.reversed()) && link.from.dpid != link.to.dpid
        };
        let mut paths = Self::default();
        for link in links.iter().filter(both_ways) {
            let step = Step { to: link.to.dpid, out: link.from.port, arrives_at: link.to.port };
            paths.neighbours.entry(link.from.dpid).or_default().insert(step);
        }
        paths.grow_trees();
        paths
    }

    /// Breadth first from the lowest datapath id of every part that hangs together.
    fn grow_trees(&mut self) {
        let mut reached = HashSet::new();
        for root in self.neighbours.keys() {
            if !reached.insert(*root) {
                continue;
            }
            let mut queue = VecDeque::from([*root]);
            while let Some(here) = queue.pop_front() {
                for step in self.neighbours.get(&here).into_iter().flatten() {
                    if reached.insert(step.to) {
                        self.tree.insert(SwitchPort { dpid: here, port: step.out });
                        self.tree.insert(SwitchPort { dpid: step.to, port: step.arrives_at });
                        queue.push_back(step.to);
                    }
                }
            }
        }
    }

    /// Whether a port belongs to the tree: what goes everywhere is sent and taken there, and at no
    /// other port of a link.
    #[must_use]
    pub fn is_in_tree(&self, port: SwitchPort) -> bool {
        self.tree.contains(&port)
    }

    /// By which port of `from` a packet for the switch `to` leaves; none when there is no way, or
    /// it is there.
    pub fn next_hop(&mut self, from: DatapathId, to: DatapathId) -> Option<PortNo> {
        if !self.towards.contains_key(&to) {
            let ports = self.ports_towards(to);
            self.towards.insert(to, ports);
        }
        self.towards.get(&to)?.get(&from).copied()
    }

    /// Breadth first from the destination. The neighbours of a switch are walked back: the step
    /// from `to` to `here` is the reverse of one from `here`.
    fn ports_towards(&self, to: DatapathId) -> HashMap<DatapathId, PortNo> {
        let mut ports = HashMap::new();
        let mut queue = VecDeque::from([to]);
        while let Some(here) = queue.pop_front() {
            for step in self.neighbours.get(&here).into_iter().flatten() {
                if step.to != to && !ports.contains_key(&step.to) {
                    ports.insert(step.to, step.arrives_at);
                    queue.push_back(step.to);
                }
            }
        }
        ports
    }
}

#[cfg(test)]
mod tests {
    use super::ShortestPaths;
    use crate::topology::{SwitchPort, TopologyLink};
    use openflow::{DatapathId, PortNo};

    fn port(dpid: u64, port: u32) -> SwitchPort {
        SwitchPort { dpid: DatapathId(dpid), port: PortNo(port) }
    }

    fn both(a: SwitchPort, b: SwitchPort) -> [TopologyLink; 2] {
        let link = TopologyLink { from: a, to: b };
        [link, link.reversed()]
    }

    /// Switches 1 to `n` in a ring: port 2 leads to the next one, port 1 to the one before.
    fn ring(n: u64) -> Vec<TopologyLink> {
        (1..=n).flat_map(|dpid| both(port(dpid, 2), port(dpid % n + 1, 1))).collect()
    }

    #[test]
    fn paths_in_a_ring_go_the_shorter_way() {
        let mut paths = ShortestPaths::new(&ring(6));
        let mut hop = |from, to| paths.next_hop(DatapathId(from), DatapathId(to)).unwrap().0;
        assert_eq!((hop(1, 2), hop(1, 3), hop(1, 5), hop(1, 6)), (2, 2, 1, 1));
        assert_eq!((hop(3, 5), hop(5, 3)), (2, 1));
        assert_eq!(paths.next_hop(DatapathId(1), DatapathId(1)), None);
        assert_eq!(paths.next_hop(DatapathId(1), DatapathId(99)), None);
    }

    #[test]
    fn every_path_of_a_mesh_ends_at_its_destination() {
        // Every pair of nine switches whose numbers differ by a divisor of eight.
        let mut links = Vec::new();
        for a in 1..=9_u32 {
            for b in (a + 1..=9).filter(|b| 8 % (b - a) == 0) {
                links.extend(both(port(a.into(), b), port(b.into(), a)));
            }
        }
        let mut paths = ShortestPaths::new(&links);
        for (from, to) in (1..=9).flat_map(|from| (1..=9).map(move |to| (from, to))) {
            let (mut here, mut steps) = (from, 0);
            while here != to {
                // The port's number is that of the neighbour.
                here = paths.next_hop(DatapathId(here), DatapathId(to)).unwrap().0.into();
                steps += 1;
                assert!(steps <= 3, "{from} to {to}");
            }
        }
        let tree = links.iter().filter(|link| paths.is_in_tree(link.from)).count();
        assert_eq!(tree, 2 * 8, "a tree of nine switches has eight links");
    }

    #[test]
    fn the_tree_does_not_depend_on_the_order_of_links() {
        let mut links = ring(7);
        let first = ShortestPaths::new(&links);
        links.reverse();
        let second = ShortestPaths::new(&links);
        for link in &links {
            assert_eq!(first.is_in_tree(link.from), second.is_in_tree(link.from));
        }
        let cut: Vec<_> = links.iter().filter(|link| !first.is_in_tree(link.from)).collect();
        assert_eq!(cut.len(), 2, "one link of the ring, both ends");
    }

    #[test]
    fn one_way_links_and_links_to_oneself_lead_nowhere() {
        let one_way = TopologyLink { from: port(1, 1), to: port(2, 1) };
        let [own, _] = both(port(1, 3), port(1, 3));
        let mut paths = ShortestPaths::new(&[one_way, own]);
        assert_eq!(paths.next_hop(DatapathId(1), DatapathId(2)), None);
        assert!(!paths.is_in_tree(port(1, 1)) && !paths.is_in_tree(port(1, 3)));
    }

    #[test]
    fn of_parallel_links_the_tree_has_one() {
        let links = [both(port(1, 1), port(2, 1)), both(port(1, 2), port(2, 2))].concat();
        let mut paths = ShortestPaths::new(&links);
        assert!(paths.is_in_tree(port(1, 1)) && paths.is_in_tree(port(2, 1)));
        assert!(!paths.is_in_tree(port(1, 2)) && !paths.is_in_tree(port(2, 2)));
        assert_eq!(paths.next_hop(DatapathId(1), DatapathId(2)), Some(PortNo(1)));
    }
}
