//! Packets that a controller has had while they were paused, and gives back (`NXT_RESUME`).

use openflow::Error;
use openflow::message::PacketIn;

use super::emit::Emit;
use super::{Core, Sink};
use crate::continuation::Continuation;
use crate::fast::interpreter::{Interpreter, Packet};
use crate::time::Nanos;
use crate::validate::{Existing, check_resumed};
use crate::verdict::meta_of;

impl Core {
    pub(super) fn resume(
        &mut self,
        paused: &PacketIn,
        now: Nanos,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        check_resumed(paused)?;
        let meta = meta_of(&paused.matching).ok_or(Error::BadRequestBadPort)?;
        let rest = Continuation::decode(&paused.continuation).ok_or(Error::ResumeStale)?;
        let replica = &self.replica;
        rest.check(&Existing {
            n_tables: replica.config.n_tables,
            group: &|id| replica.groups.get(id).is_some(),
            meter: &|id| replica.meter(id).is_some(),
        })?;
        let mut frame = sink.spare();
        frame.assign(&paused.data);
        let (queue, stack) = (rest.queue, rest.stack.clone());
        let packet = Packet { meta, queue, stack, ..Packet::new(frame, meta.in_port) };
        let mut walk = Interpreter::new(Emit::step_by_step(replica, sink, now));
        walk.resume(packet, &rest);
        walk.finish().close();
        Ok(())
    }
}
