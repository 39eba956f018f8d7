//! What each action does: one arm each, and no arm for "the others" (clause 5.12).
//!
//! An action that does not fit the packet (a pop without a tag, a field of a header that is not
//! there) changes nothing, is counted, and the list goes on. A TTL that is used up ends the
//! packet's way.

use std::ops::ControlFlow;

use openflow::message::PacketInReason;
use openflow::text::format_actions;
use openflow::{Action, Field};
use packet::rewrite;
use packet::rewrite::TtlInvalid;

use super::effect::Effect;
use super::walk::{Goes, Packet, Walk};
use crate::action_set::Origin;
use crate::counter::{Counter, DropReason};

impl Walk<'_> {
    /// Executes one action on a packet.
    pub(super) fn act(&mut self, packet: &mut Packet, action: &Action, origin: Origin) -> Goes {
        self.note(|| format_actions(std::slice::from_ref(action)));
        let frame = &mut packet.frame;
        let fits = match action {
            Action::Output { port, max_len } => {
                self.output(packet, *port, *max_len, origin);
                true
            }
            Action::Enqueue { port, queue } => {
                let mut queued = packet.clone();
                queued.queue = Some(*queue);
                self.output(&queued, *port, openflow::action::MAX_LEN_NO_BUFFER, origin);
                true
            }
            Action::Group(id) => {
                self.group(packet, *id, origin);
                true
            }
            Action::SetQueue(queue) => {
                packet.queue = Some(*queue);
                true
            }
            Action::SetField { field: Field::TunnelId, value } => {
                packet.meta.tunnel_id = u64::try_from(*value).unwrap_or(u64::MAX);
                true
            }
            Action::SetField { field, value } => rewrite::set_field(frame, *field, *value),
            Action::PushVlan(eth_type) => rewrite::push_vlan(frame, *eth_type),
            Action::PopVlan | Action::StripVlan => rewrite::pop_vlan(frame),
            Action::PushMpls(eth_type) => rewrite::push_mpls(frame, *eth_type),
            Action::PopMpls(eth_type) => rewrite::pop_mpls(frame, *eth_type),
            Action::PushPbb(eth_type) => rewrite::push_pbb(frame, *eth_type),
            Action::PopPbb => rewrite::pop_pbb(frame),
            Action::CopyTtlOut => rewrite::copy_ttl_out(frame),
            Action::CopyTtlIn => rewrite::copy_ttl_in(frame),
            Action::SetMplsTtl(ttl) => rewrite::set_mpls_ttl(frame, *ttl),
            Action::SetNwTtl(ttl) => rewrite::set_nw_ttl(frame, *ttl),
            Action::DecMplsTtl => match rewrite::dec_mpls_ttl(frame) {
                Ok(fits) => fits,
                Err(TtlInvalid) => return self.invalid_ttl(packet, origin),
            },
            Action::DecNwTtl => match rewrite::dec_nw_ttl(frame) {
                Ok(fits) => fits,
                Err(TtlInvalid) => return self.invalid_ttl(packet, origin),
            },
            Action::SetVlanVid(vid) => rewrite::set_vlan_vid(frame, *vid),
            Action::SetVlanPcp(pcp) => rewrite::set_vlan_pcp(frame, *pcp),
            Action::SetDlSrc(mac) => rewrite::set_field(frame, Field::EthSrc, mac.to_u64().into()),
            Action::SetDlDst(mac) => rewrite::set_field(frame, Field::EthDst, mac.to_u64().into()),
            Action::SetNwSrc(address) => {
                rewrite::set_field(frame, Field::Ipv4Src, address.to_bits().into())
            }
            Action::SetNwDst(address) => {
                rewrite::set_field(frame, Field::Ipv4Dst, address.to_bits().into())
            }
            Action::SetNwTos(tos) => rewrite::set_nw_tos(frame, *tos),
            Action::SetTpSrc(port) => rewrite::set_tp_src(frame, *port),
            Action::SetTpDst(port) => rewrite::set_tp_dst(frame, *port),
            // Refused when the entry, bucket or packet-out came.
            Action::Experimenter { .. } => false,
        };
        if !fits {
            self.note(|| "does not fit the packet: skipped".to_owned());
            self.effect(Effect::Count(Counter::ActionsWithoutEffect));
        }
        ControlFlow::Continue(())
    }

    /// The packet goes no further (clause 5.12); the controller may want to know.
    fn invalid_ttl(&mut self, packet: &Packet, origin: Origin) -> Goes {
        if self.dp.settings().invalid_ttl_to_controller {
            let max_len = self.dp.settings().miss_send_len;
            self.packet_in(packet, PacketInReason::InvalidTtl, origin, max_len);
        } else {
            self.drop(DropReason::InvalidTtl);
        }
        ControlFlow::Break(())
    }
}
