//! The effect of each action: one arm each, and no arm for "the others" (clause 5.12).
//!
//! An action that does not fit the packet (a pop without a tag, a field of a header that is not
//! there) changes nothing, is counted, and the list goes on. A TTL that is used up ends the
//! packet's way.

use openflow::action::MAX_LEN_NO_BUFFER;
use openflow::field::VID_PRESENT;
use openflow::message::PacketInReason;
use openflow::text::{format_actions, format_flow_mod};
use openflow::{Action, BitRange, Field, Learn, PortNo, TableId};
use packet::rewrite;
use packet::rewrite::TtlInvalid;

use super::effect::Effect;
use super::run::{PacketState, Run, STACK_MAX};
use crate::action_set::{FIN_OR_RST, FinTimeouts, Origin};
use crate::counter::{Counter, DropReason};
use crate::member_choice::{hash, link, member, weight};
use crate::verdict::HandUp;

/// Whether an action fitted the packet, unless it found the TTL used up.
type Fits = Result<bool, TtlInvalid>;

impl Run<'_> {
    /// One action; what goes on of the packet.
    pub(super) fn action(
        &mut self,
        mut packet: PacketState,
        action: &Action,
        origin: Origin,
    ) -> Option<PacketState> {
        self.step(|| format_actions(std::slice::from_ref(action)));
        self.count_actions(weight(action));
        if self.is_withdrawn {
            return None;
        }
        match self.carry_out(&mut packet, action, origin) {
            Ok(true) if self.is_withdrawn || action.ends_lists() => {
                self.has_exited = *action == Action::Exit;
                None
            }
            Ok(true) => Some(packet),
            Ok(false) => {
                self.step(|| "does not fit the packet: skipped".to_owned());
                self.effect(Effect::Count(Counter::ActionsWithoutEffect));
                Some(packet)
            }
            Err(TtlInvalid) => {
                let controller_ids = action.invalid_ttl_to();
                if self.dp.settings.invalid_ttl_to_controller && !controller_ids.is_empty() {
                    let max_len = self.dp.settings.miss_send_len;
                    self.count_actions(controller_ids.len());
                    if self.is_withdrawn {
                        return None;
                    }
                    for controller_id in controller_ids.iter().copied() {
                        let plain = HandUp::plain(PacketInReason::InvalidTtl, origin, max_len);
                        self.hand_up(&packet, &HandUp { controller_id, ..plain });
                    }
                } else {
                    self.drop(DropReason::InvalidTtl);
                }
                None
            }
        }
    }

    fn teach(&mut self, packet: &PacketState, learn: &Learn) {
        let key = packet.key();
        let entry = learn.flow_mod(|field| key.get(field));
        self.step(|| format!("learns {}", format_flow_mod(&entry)));
        self.effect(Effect::Taught(Box::new(entry)));
    }

    /// An action by which the packet changes an entry. It fits every packet.
    fn change(&mut self, packet: &PacketState, action: &Action, by: Origin) -> bool {
        if let Action::Learn(learn) = action {
            self.teach(packet, learn);
        } else if let Action::FinTimeout { idle_timeout: idle_s, hard_timeout: hard_s } = *action {
            self.fin_timeout(packet, FinTimeouts { idle_s, hard_s }, by);
        }
        true
    }

    /// Shortens the timeouts of the entry, if the packet ends its TCP connection.
    fn fin_timeout(&mut self, packet: &PacketState, timeouts: FinTimeouts, by: Origin) {
        if packet.key().get(Field::TcpFlags) & FIN_OR_RST == 0 {
            return;
        }
        self.step(|| "the packet ends its connection: the timeouts are shortened".to_owned());
        if let Some(seq) = by.entry.0 {
            self.effect(Effect::Shortened { table: by.table_id, seq, timeouts });
        }
    }

    fn carry_out(&mut self, packet: &mut PacketState, action: &Action, by: Origin) -> Fits {
        let frame = &mut packet.frame;
        let mut set = |field, value: u64| Ok(rewrite::set_field(frame, field, value.into()));
        match *action {
            // Of 1.0: fields that 1.3 writes by set-field.
            Action::SetDlSrc(mac) => set(Field::EthSrc, mac.to_u64()),
            Action::SetDlDst(mac) => set(Field::EthDst, mac.to_u64()),
            Action::SetNwSrc(address) => set(Field::Ipv4Src, address.to_bits().into()),
            Action::SetNwDst(address) => set(Field::Ipv4Dst, address.to_bits().into()),
            Action::SetNwTos(tos) => Ok(rewrite::set_nw_tos(frame, tos)),
            Action::SetTpSrc(port) => Ok(rewrite::set_tp_src(frame, port)),
            Action::SetTpDst(port) => Ok(rewrite::set_tp_dst(frame, port)),
            // Of 1.1: the same of headers that the packet has.
            Action::SetTagVid(vid) => set(Field::VlanVid, VID_PRESENT as u64 | u64::from(vid)),
            Action::SetTagPcp(pcp) => set(Field::VlanPcp, pcp.into()),
            Action::SetNwEcn(ecn) => set(Field::IpEcn, ecn.into()),
            Action::SetMplsLabel(label) => set(Field::MplsLabel, label.into()),
            Action::SetMplsTc(class) => set(Field::MplsTc, class.into()),
            Action::SetVlanVid(vid) => Ok(rewrite::set_vlan_vid(frame, vid)),
            Action::SetVlanPcp(pcp) => Ok(rewrite::set_vlan_pcp(frame, pcp)),
            // A tunnel id stands beside the packet, not in it.
            Action::SetField { field, value } => Ok(packet.write(field, value)),
            Action::Load { bits, dst, value } => Ok(packet.write_bits(dst, bits, value.into())),
            Action::Move { .. }
            | Action::Enqueue { .. }
            | Action::Push { .. }
            | Action::Pop { .. }
            | Action::Bundle(_)
            | Action::BundleLoad(_)
            | Action::Multipath { .. }
            | Action::CheckPktLarger { .. }
            | Action::OutputReg { .. } => Ok(self.find(packet, action, by)),
            Action::PushVlan(eth_type) => Ok(rewrite::push_vlan(frame, eth_type)),
            Action::PopVlan | Action::StripVlan => Ok(rewrite::pop_vlan(frame)),
            Action::PushMpls(eth_type) => Ok(rewrite::push_mpls(frame, eth_type)),
            Action::PopMpls(eth_type) => Ok(rewrite::pop_mpls(frame, eth_type)),
            Action::PushPbb(eth_type) => Ok(rewrite::push_pbb(frame, eth_type)),
            Action::PopPbb => Ok(rewrite::pop_pbb(frame)),
            Action::SetNwTtl(ttl) => Ok(rewrite::set_nw_ttl(frame, ttl)),
            Action::SetMplsTtl(ttl) => Ok(rewrite::set_mpls_ttl(frame, ttl)),
            Action::DecNwTtl | Action::DecNwTtlTo(_) => rewrite::dec_nw_ttl(frame),
            Action::DecMplsTtl => rewrite::dec_mpls_ttl(frame),
            Action::CopyTtlOut => Ok(rewrite::copy_ttl_out(frame)),
            Action::CopyTtlIn => Ok(rewrite::copy_ttl_in(frame)),
            Action::SetQueue(queue) => Ok(packet.choose_queue(Some(queue))),
            Action::PopQueue => Ok(packet.choose_queue(None)),
            Action::Output { port, max_len } => {
                self.send_to(packet, port, max_len, by);
                Ok(true)
            }
            Action::Group(id) => {
                self.group(packet, id, by);
                Ok(true)
            }
            Action::Resubmit(port) => Ok(self.resubmit(packet, port.port(), TableId::ALL)),
            Action::ResubmitTable { port, table } => Ok(self.resubmit(packet, port.port(), table)),
            Action::Learn(_) | Action::FinTimeout { .. } => Ok(self.change(packet, action, by)),
            Action::Controller { .. } | Action::ControllerProperties(_) => {
                Ok(self.controller(packet, action, by))
            }
            // Nothing goes on behind an exit, and a clone is of two packets: see `action`,
            // `run_clone`. No lookup ends with a conjunction.
            Action::Exit | Action::Conjunction { .. } | Action::Note(_) | Action::Clone(_) => {
                Ok(true)
            }
            // Refused when the entry, bucket or packet-out came.
            Action::Experimenter { .. } => Ok(false),
        }
    }

    /// An action of which what it writes, or where the packet goes, is found out here; whether it
    /// fits the packet.
    fn find(&mut self, packet: &mut PacketState, action: &Action, by: Origin) -> bool {
        if let Action::Move { n_bits, src_offset, dst_offset, src, dst } = *action {
            let (key, to) = (packet.key(), BitRange { offset: dst_offset, n_bits });
            return key.has(src) && packet.write_bits(dst, to, key.get(src) >> src_offset);
        } else if let Action::Enqueue { port, queue } = *action {
            let queued = PacketState { queue: Some(queue), ..packet.clone() };
            self.send_to(&queued, port, MAX_LEN_NO_BUFFER, by);
        } else if let Action::Push { offset, src, n_bits } = *action {
            let value = packet.key().get(src) >> offset;
            packet.stack.push(if n_bits < 128 { value & ((1 << n_bits) - 1) } else { value });
            if packet.stack.len() > STACK_MAX {
                self.withdraw(DropReason::StackTooDeep);
            }
        } else if let Action::Pop { offset, dst, n_bits } = *action {
            let Some(value) = packet.stack.pop() else { return false };
            return packet.write_bits(dst, BitRange { offset, n_bits }, value);
        } else if let Action::Multipath { fields, basis, algorithm, max_link, bits, dst, .. } =
            *action
        {
            let flow = hash(fields, basis, &packet.key());
            return packet.write_bits(dst, bits, link(algorithm, flow, max_link).into());
        } else if let Action::CheckPktLarger { pkt_len, offset, dst } = *action {
            let is_larger = packet.frame.len() > usize::from(pkt_len);
            return packet.write_bits(dst, BitRange { offset, n_bits: 1 }, is_larger.into());
        } else if let Action::OutputReg { bits, src, max_len } = *action {
            let number = packet.key().get(src) >> bits.offset & ((1_u128 << bits.n_bits) - 1);
            let port = PortNo::of_short(number).unwrap_or(PortNo::ANY);
            self.send_to(packet, port, max_len, by);
        } else if let Some(bundle) = action.members() {
            let port = member(bundle, &packet.key(), &self.dp.ports);
            if let Some((bits, dst)) = bundle.dst {
                let number = port.unwrap_or(PortNo::ANY).0 & 0xffff;
                return packet.write_bits(dst, bits, number.into());
            }
            match port {
                Some(port) => self.send_to(packet, port, MAX_LEN_NO_BUFFER, by),
                None => self.drop(DropReason::NoLiveBucket),
            }
        }
        true
    }
}
