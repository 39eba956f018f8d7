//! The other end of a veth in another namespace, as far as a program at the ingress of one device
//! may hand frames straight to it.
//!
//! Such a frame passes nothing of the near end: no queueing discipline, no program at its egress,
//! no offload that is done there, and of the far end no native XDP program. So there is a way
//! straight to it only where the near end has nothing of these but what is usual. A chain of
//! netfilter at the near end's egress is not seen here.

use super::bpf::{Hook, has_programs};
use super::ethtool::Ethtool;
use super::link::{
    IFINFOMSG_LEN, IFLA_LINK, IFLA_LINK_NETNSID, LinkError, Rtnl, ifinfomsg, link_of, refused,
};
use super::netlink::{Attributes, NetlinkMessage, NetlinkRequest, read_text, read_u32};

const IFLA_QDISC: u16 = 6;
const IFLA_EXT_MASK: u16 = 29;
const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_TARGET_NETNSID: u16 = 46;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;

/// Work that a veth leaves to its far end by default, and would do itself without.
const OFFLOADS: [&str; 3] =
    ["tx-checksum-ip-generic", "tx-tcp-segmentation", "tx-tcp6-segmentation"];

/// Super-frames that a veth passes on whole by default; the last one is not in each kernel.
const WHOLE: [(u16, u32); 3] =
    [(IFLA_GSO_MAX_SEGS, 65_535), (IFLA_GSO_MAX_SIZE, 65_536), (IFLA_GSO_IPV4_MAX_SIZE, 65_536)];

/// Sockets by which far ends are looked at, kept from look to look.
#[derive(Debug, Default)]
pub struct FarEndSockets(Option<(Rtnl, Ethtool)>);

impl FarEndSockets {
    /// See [`Rtnl::veth_peer`].
    pub(crate) fn veth_peer(&mut self, index: u32) -> Result<Option<[u8; 6]>, LinkError> {
        let sockets = match self.0.take() {
            Some(sockets) => sockets,
            None => (Rtnl::open()?, Ethtool::open()?),
        };
        let found = sockets.0.veth_peer(index, &sockets.1)?;
        self.0 = Some(sockets);
        Ok(found)
    }
}

impl Rtnl {
    /// The Ethernet address of the far end of the veth of this number, if frames may go straight
    /// to it.
    ///
    /// # Errors
    /// The kernel's error, also where this process has no rights over the far end's namespace.
    fn veth_peer(&self, index: u32, ethtool: &Ethtool) -> Result<Option<[u8; 6]>, LinkError> {
        let own = self.one(index, None)?;
        let attributes = own.attributes(IFINFOMSG_LEN);
        let number = |key| attributes.find(key).and_then(|value| read_u32(value, 0));
        let (Some(peer), Some(namespace)) = (number(IFLA_LINK), number(IFLA_LINK_NETNSID)) else {
            return Ok(None);
        };
        let Some(link) = link_of(&own).filter(|link| link.kind == "veth") else { return Ok(None) };
        let is_queued = attributes.find(IFLA_QDISC).map(read_text).is_none_or(|it| it != "noqueue");
        let is_cut = WHOLE.iter().any(|(key, least)| number(*key).is_some_and(|it| it < *least));
        if !(link.up && link.carrier) || is_queued || is_cut || self.has_egress(index)? {
            return Ok(None);
        }
        let features = ethtool.features(&link.name)?;
        let is_on = |name| features.iter().any(|it| it.name == name && it.active);
        if !OFFLOADS.into_iter().all(is_on) {
            return Ok(None);
        }
        let far = self.one(peer, Some(namespace))?;
        let xdp = far.attributes(IFINFOMSG_LEN).find(IFLA_XDP).unwrap_or_default();
        let has_xdp = Attributes::inside(xdp).find(IFLA_XDP_ATTACHED).is_some_and(|it| it != [0]);
        let far = link_of(&far).filter(|far| far.up && far.mtu >= link.mtu && !has_xdp);
        Ok(far.map(|far| far.mac))
    }

    /// Whether programs or filters may stand at the device's egress.
    fn has_egress(&self, index: u32) -> Result<bool, LinkError> {
        let is_clsact = self.ingress_qdisc_at(index)?.is_some_and(|it| it.kind == "clsact");
        let programs = || has_programs(index, Hook::Egress).map_err(refused("programs at egress"));
        Ok(is_clsact || programs()?)
    }

    /// The device of this number, without its counts.
    fn one(&self, index: u32, namespace: Option<u32>) -> Result<NetlinkMessage, LinkError> {
        let mut request = NetlinkRequest::new(libc::RTM_GETLINK, 0, &ifinfomsg(index, 0, 0));
        request.attr_u32(IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS);
        if let Some(namespace) = namespace {
            request.attr_u32(IFLA_TARGET_NETNSID, namespace);
        }
        self.socket.get(request).map_err(refused(&format!("device number {index}")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::bpf::Program;
    use super::super::link::{VethEnd, VethPair, quiet_ipv6};
    use super::super::netlink::{NLM_F_CREATE, NLM_F_EXCL};
    use super::super::netns::Namespace;
    use super::super::qdisc::{Tbf, tcmsg};
    use super::*;

    const TC_H_CLSACT: u32 = 0xffff_fff1;
    const HANDLE: u32 = 0xffff_0000;
    const TCA_KIND: u16 = 1;

    /// `clsact` comes to a device, or goes.
    fn change_clsact(rtnl: &Rtnl, index: u32, kind: u16, flags: u16) {
        let mut request = NetlinkRequest::new(kind, flags, &tcmsg(index, HANDLE, TC_H_CLSACT));
        request.attr_text(TCA_KIND, "clsact");
        rtnl.socket.act(request).unwrap();
    }

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

    /// Two namespaces with the veth ends `near` and `far`, which are down.
    fn with_veth() -> [(Namespace, Rtnl); 2] {
        let make = || Namespace::new().expect("needs root: run by `cargo xtask test`");
        let both = [make(), make()].map(|it| {
            let rtnl = Rtnl::open_in(&it).unwrap();
            (it, rtnl)
        });
        let there = VethEnd { mac: Some(MAC), ..VethEnd::new("far") };
        let pair = VethPair { here: VethEnd::new("near"), there, there_in: Some(&both[1].0) };
        both[0].1.add_veth(&pair).unwrap();
        for ((namespace, _), name) in both.iter().zip(["near", "far"]) {
            namespace.enter(|| quiet_ipv6(name).unwrap()).unwrap();
        }
        both
    }

    #[test]
    #[ignore = "needs root"]
    fn what_must_see_frames_keeps_them_from_the_far_end() {
        let [(near, rtnl), (_far, far_rtnl)] = with_veth();
        let index = rtnl.link("near").unwrap().index;
        let sockets = Mutex::new(FarEndSockets::default());
        let found = || near.enter(|| sockets.lock().unwrap().veth_peer(index)).unwrap().unwrap();
        assert_eq!(found(), None, "both ends are down");
        rtnl.set_up("near", true).unwrap();
        assert_eq!(found(), None, "the far end is down");
        far_rtnl.set_up("far", true).unwrap();
        assert_eq!(found(), Some(MAC));
        let features = |names: &[&str], is_on: bool| {
            let wishes: Vec<(&str, bool)> = names.iter().map(|name| (*name, is_on)).collect();
            near.enter(|| Ethtool::open().unwrap().set_features("near", &wishes).unwrap()).unwrap();
        };
        let up = |is_up| rtnl.set_up("near", is_up).unwrap();
        let tbf = Tbf::ethernet(1_000_000, 50);
        let add = NLM_F_CREATE | NLM_F_EXCL;
        let clsact = |kind, flags| change_clsact(&rtnl, index, kind, flags);
        let mtu = |mtu| far_rtnl.set_mtu("far", mtu).unwrap();
        let mac = |mac| far_rtnl.set_mac("far", mac).unwrap();
        let gso = |size| {
            let mut request = NetlinkRequest::new(libc::RTM_NEWLINK, 0, &ifinfomsg(index, 0, 0));
            request.attr_u32(IFLA_GSO_MAX_SIZE, size);
            rtnl.socket.act(request).unwrap();
        };
        type Step<'a> = (&'a str, &'a dyn Fn(), &'a dyn Fn());
        let steps: [Step<'_>; 7] = [
            ("down", &|| up(false), &|| up(true)),
            ("a queue", &|| rtnl.set_tbf("near", &tbf).unwrap(), &|| {
                rtnl.reset_qdisc("near").unwrap();
            }),
            ("filters", &|| clsact(libc::RTM_NEWQDISC, add), &|| clsact(libc::RTM_DELQDISC, 0)),
            // Segmentation ends with it.
            ("checksums", &|| features(&OFFLOADS[..1], false), &|| features(&OFFLOADS, true)),
            ("shorter super-frames", &|| gso(30_000), &|| gso(65_536)),
            ("a shorter MTU", &|| mtu(1_400), &|| mtu(1_500)),
            ("another address", &|| mac([2; 6]), &|| mac(MAC)),
        ];
        for (what, begin, end) in steps {
            begin();
            assert_ne!(found(), Some(MAC), "{what}");
            end();
            assert_eq!(found(), Some(MAC), "no longer: {what}");
        }
        // Returns zero.
        let program = Program::load(&[0xb7, 0x95], Hook::Egress).unwrap();
        let link = near.enter(|| program.attach(index).unwrap()).unwrap();
        assert_eq!(found(), None, "a program");
        drop(link);
        assert_eq!(found(), Some(MAC));
        assert_eq!(rtnl.ingress_qdisc_at(index).unwrap().map(|it| it.kind), None);
        assert!(rtnl.ingress_qdisc_at(u32::MAX / 2).is_err(), "no answer is not: there is none");
        far_rtnl.move_to("far", &near).unwrap();
        rtnl.set_up("far", true).unwrap();
        assert_eq!(found(), None, "it is here");
    }
}
