//! Building a burst: first which frames, by due time, then their bytes.
//!
//! The frames of a stream that stand together are made together. That a stream has ended, and
//! another begins, may be in the middle of a burst: what was planned before is made before. It must
//! never leave a frame of the burst unmade.

use super::{PendingFrame, Transmitter};

impl Transmitter {
    /// Builds a burst of what is due, and fills it up from streams without due times.
    pub(super) fn build(&mut self, now_ns: u64) {
        self.empty();
        let until_ns = now_ns.min(self.end_ns.saturating_sub(1));
        while self.pending.len() < self.limits.burst
            && let Some((due_ns, index)) = self.due.first()
            && due_ns <= until_ns
        {
            let running = &mut self.streams[index as usize];
            if running.schedule.is_greedy() {
                self.due.remove(index);
                self.greedy.push(index);
                continue;
            }
            let planned = running.stream.maker.plan(due_ns);
            let is_timed = running.schedule.is_timed();
            self.pending.push(PendingFrame { planned, stream: index, is_timed });
            running.schedule.advance(planned.size);
            if running.schedule.is_over() {
                self.due.remove(index);
                self.end_stream(index);
            } else {
                self.due.set(index, running.schedule.due_ns());
            }
        }
        if !self.greedy.is_empty() && now_ns < self.end_ns {
            self.fill_up(now_ns);
        }
        self.make();
    }

    /// Fills the burst up with frames of a stream without due times, which count as due now. The
    /// next burst is another one's.
    fn fill_up(&mut self, now_ns: u64) {
        self.turn += 1;
        while self.pending.len() < self.limits.burst && !self.greedy.is_empty() {
            if self.turn >= self.greedy.len() {
                self.turn = 0;
            }
            let stream = self.greedy[self.turn];
            let running = &mut self.streams[stream as usize];
            let count = running.schedule.take_greedy(self.limits.burst - self.pending.len());
            let maker = &mut running.stream.maker;
            self.pending.extend((0..count).map(|_| PendingFrame {
                planned: maker.plan(now_ns),
                stream,
                is_timed: false,
            }));
            if running.schedule.is_over() {
                running.schedule.shift(now_ns.saturating_sub(running.schedule.due_ns()));
                self.greedy.swap_remove(self.turn);
                self.end_stream(stream);
            }
        }
    }

    /// A stream's last frame is planned: the next one starts at the end of its interval.
    pub(super) fn end_stream(&mut self, index: u32) {
        let running = &mut self.streams[index as usize];
        running.is_active = false;
        let (next, at_ns) = (running.stream.next, running.schedule.due_ns());
        if let Some(next) = next {
            // It begins with its first values again, which frames of its own may come before.
            self.make();
            self.activate(next, at_ns);
        }
    }

    /// Makes the frames that are planned and not made yet.
    fn make(&mut self) {
        let mut first = self.made;
        while let Some(frame) = self.pending.get(first) {
            let rest = &self.pending[first + 1..];
            let same = rest.iter().take_while(|other| other.stream == frame.stream).count();
            let places = first..first + 1 + same;
            first = places.end;
            let maker = &mut self.streams[frame.stream as usize].stream.maker;
            // Where many streams have due times, most frames stand alone: a run of one costs as
            // much as one of ten.
            if same == 0 && maker.is_plain() {
                let place = places.start;
                maker.make_one(&mut self.bufs[place], &mut self.tags[place], frame.planned);
                continue;
            }
            let planned = self.pending[places.clone()].iter().map(|frame| frame.planned);
            let (bufs, tags) = (&mut self.bufs[places.clone()], &mut self.tags[places]);
            maker.make(bufs, tags, planned, &mut self.columns);
        }
        self.made = first;
    }
}
