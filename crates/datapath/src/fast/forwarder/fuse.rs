//! Joining micro-ops: changes at known places become one pass over a header, and the only verdict
//! of a program its terminal.
//!
//! This makes programs faster and must change nothing of what they do. An action that is not known
//! here stays as it is.

use openflow::{Action, Field};
use packet::header::mpls;
use packet::{Network, Shape};

use super::header_rewrite::HeaderChanges;
use super::program::{MicroOp, Terminal, ttl_at};
use crate::fast::interpreter::shape_after;

/// Joins changes at known places: the micro-ops, and the values that they write.
pub(super) fn fuse(micro_ops: Vec<MicroOp>, shape: Shape) -> (Vec<MicroOp>, Vec<u64>) {
    let mut fused = Fuse {
        micro_ops: Vec::with_capacity(micro_ops.len()),
        values: Vec::new(),
        shape,
        changes: HeaderChanges::of(shape),
    };
    let mut outer = Vec::new();
    for micro_op in micro_ops {
        if let MicroOp::Apply(action) = micro_op {
            fused.change(action);
            continue;
        }
        fused.flush();
        if matches!(micro_op, MicroOp::BeginCopy) {
            outer.push(fused.shape);
        }
        let shape = if matches!(micro_op, MicroOp::EndCopy) { outer.pop() } else { None };
        fused.micro_ops.push(micro_op);
        if let Some(shape) = shape {
            fused.turn(shape);
        }
    }
    fused.flush();
    (fused.micro_ops, fused.values)
}

struct Fuse {
    micro_ops: Vec<MicroOp>,
    /// In the order of the micro-ops that write them.
    values: Vec<u64>,
    shape: Shape,
    changes: Option<HeaderChanges>,
}

impl Fuse {
    fn flush(&mut self) {
        if let Some(changes) = self.changes.take().filter(|changes| !changes.is_empty()) {
            let (rewrite, values) = changes.into_parts();
            self.micro_ops.push(MicroOp::Rewrite(Box::new(rewrite)));
            self.values.extend(values);
        }
        self.changes = HeaderChanges::of(self.shape);
    }

    fn turn(&mut self, shape: Shape) {
        self.shape = shape;
        self.changes = HeaderChanges::of(shape);
    }

    /// Puts a field of the MPLS entry that takes a tag's place into it; whether it is one.
    fn label(&mut self, action: &Action) -> bool {
        let Some(MicroOp::TagToMpls(..)) = self.micro_ops.last() else { return false };
        let Action::SetField { field, value } = action else { return false };
        let Some(last) = self.values.last_mut() else { return false };
        let entry = *last as u32;
        let (label, tc) = (mpls::label(entry), mpls::tc(entry));
        let value = u32::try_from(value & field.full_mask()).unwrap_or(0);
        *last = if *field == Field::MplsLabel {
            mpls::entry(value, tc, mpls::bos(entry), 0).into()
        } else if *field == Field::MplsTc {
            mpls::entry(label, value as u8, mpls::bos(entry), 0).into()
        } else {
            return false;
        };
        true
    }

    /// The push of an MPLS entry onto a frame of this shape.
    fn push_mpls(&mut self, eth_type: u16) -> MicroOp {
        let of_tag = matches!(self.micro_ops.last(), Some(MicroOp::PopTag));
        if !of_tag || self.shape.network() == Network::Mpls || self.shape.tags() > 0 {
            return MicroOp::PushMpls(eth_type, self.shape);
        }
        // Four bytes go and four come: nothing has to move.
        self.micro_ops.pop();
        let ttl = ttl_at(self.shape.pushed()).and_then(|at| u8::try_from(at).ok());
        self.values.push(mpls::entry(0, 0, true, 0).into());
        MicroOp::TagToMpls(eth_type, ttl)
    }

    fn change(&mut self, action: Action) {
        if self.changes.as_ref().is_some_and(HeaderChanges::is_empty) && self.label(&action) {
            return;
        }
        if let Some(changes) = &mut self.changes {
            if changes.add(&action) {
                return;
            }
            self.flush();
            if self.changes.as_mut().is_some_and(|changes| changes.add(&action)) {
                return;
            }
        }
        let pops_tag = matches!(action, Action::PopVlan | Action::StripVlan);
        let (micro_op, shape) = if pops_tag && self.shape.tags() > 0 {
            (MicroOp::PopTag, self.shape.popped())
        } else if let Action::PushMpls(eth_type) = action
            && !self.shape.is_rare()
        {
            (self.push_mpls(eth_type), self.shape.behind_mpls())
        } else {
            let shape = shape_after(self.shape, &action);
            (MicroOp::Apply(action), shape)
        };
        self.micro_ops.push(micro_op);
        self.turn(shape);
    }
}

/// Takes the end off a program whose only verdict it is.
pub(super) fn take_terminal(micro_ops: &mut Vec<MicroOp>) -> Option<Terminal> {
    // A copy that nothing follows may as well be the packet itself.
    while let Some(MicroOp::EndCopy) = micro_ops.last() {
        let mut depth = 0_usize;
        let enter = micro_ops.iter().rposition(|micro_op| {
            depth += usize::from(matches!(micro_op, MicroOp::EndCopy));
            depth -= usize::from(matches!(micro_op, MicroOp::BeginCopy));
            depth == 0
        });
        let Some(enter) = enter else { break };
        micro_ops.pop();
        micro_ops.remove(enter);
    }
    let (last, before) = micro_ops.split_last()?;
    if !before.iter().all(MicroOp::is_straight) {
        return None;
    }
    let terminal = if let MicroOp::Output(port, queue) = last {
        Terminal::Output(*port, *queue)
    } else if let MicroOp::Drop(reason) = last {
        Terminal::Drop(*reason)
    } else {
        return None;
    };
    micro_ops.pop();
    Some(terminal)
}
