//! The transmitter in virtual time, before a queue that the test commands.

use netdev::{PortError, TxQueue};
use packet::PacketBuf;

use super::{PortStream, TransmitLimits, TransmitStep, Transmitter};
use crate::probe::{ProbeHeader, StreamId};
use crate::profile::{
    Arrival, FieldModifier, FieldValue, FrameSize, Mode, Modifier, ModifierOp, Rate, StreamSpec,
};
use crate::schedule::StreamSchedule;
use crate::template::FrameMaker;

const LINE: f64 = 10e9;
const LIMITS: TransmitLimits =
    TransmitLimits { burst: 8, late_after_ns: 1_000, unsent_after_ns: 100_000 };

/// A queue with room for a number of frames, which remembers them.
#[derive(Default)]
struct Queue {
    room: usize,
    taken: Vec<Vec<u8>>,
    is_gone: bool,
}

impl TxQueue for Queue {
    fn tx(&mut self, frames: &[PacketBuf]) -> Result<usize, PortError> {
        if self.is_gone {
            return Err(PortError::Gone("x".into()));
        }
        let count = frames.len().min(self.room);
        self.room -= count;
        self.taken.extend(frames[..count].iter().map(|frame| frame.bytes().to_vec()));
        Ok(count)
    }
}

impl Queue {
    fn open() -> Self {
        Self { room: usize::MAX, ..Self::default() }
    }

    /// Stream and number of every frame.
    fn probes(&self) -> Vec<(u16, u32)> {
        let read = |frame: &Vec<u8>| ProbeHeader::read(frame).map(|p| (p.stream.0, p.sequence));
        self.taken.iter().filter_map(read).collect()
    }
}

fn stream(id: u16, spec: &StreamSpec) -> PortStream {
    PortStream {
        id: StreamId(id),
        maker: FrameMaker::new(spec, StreamId(id), 100 * u32::from(id), [2; 6]).unwrap(),
        plan: StreamSchedule::rated(spec.rate, LINE, spec.mode, spec.arrival),
        start_after_ns: (spec.start_after_s * 1e9) as u64,
        starts_itself: spec.self_start,
        next: None,
    }
}

fn spec(rate: Rate, mode: Mode) -> StreamSpec {
    StreamSpec { rate, mode, ..StreamSpec::default() }
}

fn pps(rate: f64) -> Rate {
    Rate::PacketsPerSecond(rate)
}

fn transmitter(streams: Vec<PortStream>) -> Transmitter {
    let mut transmitter = Transmitter::new(LIMITS);
    transmitter.load(streams);
    transmitter
}

/// Runs until it is over or blocked, always at the time for which it waits; that time.
fn run(transmitter: &mut Transmitter, queue: &mut Queue, mut now_ns: u64) -> u64 {
    loop {
        match transmitter.step(now_ns, queue).unwrap() {
            TransmitStep::Sent => {}
            TransmitStep::DueAt(u64::MAX) | TransmitStep::Blocked | TransmitStep::Over => {
                return now_ns;
            }
            TransmitStep::DueAt(due_ns) => now_ns = due_ns,
        }
    }
}

#[test]
fn streams_are_merged_by_due_time() {
    let every_2us = stream(1, &spec(pps(5e5), Mode::Burst(3)));
    let every_3us = stream(2, &spec(pps(1e6 / 3.0), Mode::Burst(3)));
    let mut transmitter = transmitter(vec![every_2us, every_3us]);
    let mut queue = Queue::open();
    transmitter.start(1_000, u64::MAX, 1.0);
    let end_ns = run(&mut transmitter, &mut queue, 0);
    assert_eq!(queue.probes(), [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
    assert_eq!(end_ns, 7_000);
    let counts = transmitter.counts();
    assert_eq!((counts.packets, counts.bytes, counts.unsent, counts.late), (6, 6 * 64, 0, 0));
    assert_eq!(counts.departures_ns, Some((1_000, 7_000)));
    let gaps = transmitter.gaps();
    assert_eq!((gaps.count, gaps.max_ns), (5, 2_000));
}

/// The defect of a generator that divides by the length of its single packet: a range of another
/// size at 80 % must take 80 % of the line.
#[test]
fn every_size_and_mode_has_its_share_of_the_line() {
    let sizes = ["64", "128", "1518", "imix", "64-1518/7", "64-9000~3"];
    let modes = [Mode::Continuous, Mode::Bursts { count: 99_999, packets: 10, gap_us: 0.0 }];
    for (size, mode) in sizes.iter().flat_map(|size| modes.map(|mode| (*size, mode))) {
        let spec = StreamSpec {
            size: size.parse::<FrameSize>().unwrap(),
            ..spec(Rate::PercentOfLine(80.0), mode)
        };
        let mut transmitter = transmitter(vec![stream(1, &spec)]);
        let mut queue = Queue::open();
        transmitter.start(0, 20_000_000, 1.0);
        run(&mut transmitter, &mut queue, 0);
        let counts = transmitter.counts();
        let bits = 8.0 * (counts.bytes + 20 * counts.packets) as f64;
        let share = bits / (LINE * 0.02);
        assert!((share - 0.8).abs() < 0.0008, "{size} {mode:?}: {share}");
    }
}

#[test]
fn what_the_queue_refuses_is_offered_again_and_then_given_up() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e5), Mode::Burst(40)))]);
    let mut queue = Queue { room: 2, ..Queue::default() };
    transmitter.start(0, u64::MAX, 1.0);
    // Frames are due each 10 us. Two leave, then the queue is full until 195 us: the frames that
    // were due before 95 us are too old by then.
    let mut now_ns = 0;
    while now_ns < 195_000 {
        transmitter.step(now_ns, &mut queue).unwrap();
        now_ns += 1_000;
    }
    queue.room = usize::MAX;
    run(&mut transmitter, &mut queue, now_ns);
    let counts = transmitter.counts();
    assert_eq!(counts.packets + counts.unsent, 40);
    assert_eq!(counts.unsent, 8, "those due at 20 to 90 us");
    assert!(counts.late >= 10 && counts.late_ns_max >= 90_000, "{counts:?}");
    // Numbers count what leaves: there is no gap.
    let numbers: Vec<u32> = queue.probes().iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, (0..32).collect::<Vec<u32>>());
    let (of_stream, is_active) = transmitter.stream_counts()[0];
    assert_eq!((of_stream.sent, of_stream.probes, of_stream.unsent), (32, 32, 8));
    assert!(!is_active);
}

/// The defect of a reset that read 100 ms low: what was due while the sender's own link was down
/// waited, and left when it was up again, as if the device had carried it.
#[test]
fn frames_refused_by_a_down_link_do_not_leave_when_it_is_up() {
    for (is_down, unsent) in [(true, 49), (false, 0)] {
        let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Burst(100)))]);
        let mut queue = Queue { room: 20, ..Queue::default() };
        transmitter.set_link_down(is_down);
        transmitter.start(0, u64::MAX, 1.0);
        // Frames are due each microsecond; from the 20th on none is taken until 70 us.
        for now_us in 0..70 {
            transmitter.step(now_us * 1_000, &mut queue).unwrap();
        }
        queue.room = usize::MAX;
        run(&mut transmitter, &mut queue, 70_000);
        let counts = transmitter.counts();
        // That of 69 us is no later than a frame may be.
        assert_eq!((counts.packets, counts.unsent), (100 - unsent, unsent), "{is_down}");
        assert_eq!(transmitter.stream_counts()[0].0.unsent_down, unsent, "{is_down}");
    }
}

/// The defect of a reset to which any refusal of more than 100 us was counted.
#[test]
fn what_is_refused_while_the_link_is_up_is_no_outage() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Burst(200)))]);
    let mut queue = Queue { room: 20, ..Queue::default() };
    transmitter.start(0, u64::MAX, 1.0);
    // The queue is full until 150 us, which is too long for those that were due before 50 us.
    for now_us in 0..150 {
        transmitter.step(now_us * 1_000, &mut queue).unwrap();
    }
    queue.room = usize::MAX;
    run(&mut transmitter, &mut queue, 150_000);
    let (counts, _) = transmitter.stream_counts()[0];
    assert_eq!(counts.sent + counts.unsent, 200);
    assert!(counts.unsent > 20 && counts.unsent_down == 0, "{counts:?}");
}

/// A link may come up while the sender stands still: what was due is offered before it is given up.
#[test]
fn what_was_due_while_the_sender_stood_still_is_offered_first() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Burst(100)))]);
    let mut queue = Queue { room: 20, ..Queue::default() };
    transmitter.set_link_down(true);
    transmitter.start(0, u64::MAX, 1.0);
    for now_us in 0..50 {
        transmitter.step(now_us * 1_000, &mut queue).unwrap();
    }
    let unsent = transmitter.counts().unsent;
    queue.room = usize::MAX;
    run(&mut transmitter, &mut queue, 75_000);
    let counts = transmitter.counts();
    assert_eq!((counts.packets, counts.unsent), (100 - unsent, unsent));
}

#[test]
fn streams_without_a_rate_fill_up_what_the_others_leave() {
    let paced = stream(1, &spec(pps(1e6), Mode::Continuous));
    let (a, b) = (spec(Rate::Max, Mode::Continuous), spec(Rate::Max, Mode::Burst(5)));
    let mut transmitter = transmitter(vec![paced, stream(2, &a), stream(3, &b)]);
    let mut queue = Queue::open();
    transmitter.start(0, 10_000, 1.0);
    for now_ns in 0..10_000 {
        assert_eq!(transmitter.step(now_ns, &mut queue).unwrap(), TransmitStep::Sent);
    }
    assert_eq!(transmitter.step(10_000, &mut queue).unwrap(), TransmitStep::Over);
    let count = |stream| queue.probes().iter().filter(|(id, _)| *id == stream).count();
    assert_eq!((count(1), count(3)), (10, 5));
    assert_eq!(count(2), 8 * 10_000 - 15);
    assert_eq!(transmitter.counts().unsent, 0);
}

#[test]
fn streams_start_late_follow_each_other_and_begin_anew() {
    let first = StreamSpec { start_after_s: 0.001, ..spec(pps(1e6), Mode::Burst(2)) };
    let second =
        StreamSpec { self_start: false, start_after_s: 5e-6, ..spec(pps(1e6), Mode::Burst(1)) };
    let mut streams = vec![stream(1, &first), stream(2, &second)];
    streams[0].next = Some(1);
    let mut transmitter = transmitter(streams);
    for round in 0..2 {
        let mut queue = Queue::open();
        let at_ns = 5_000_000 * u64::from(round);
        transmitter.start(at_ns, u64::MAX, 1.0);
        // 1 ms, two frames' intervals, 5 us.
        assert_eq!(run(&mut transmitter, &mut queue, at_ns), at_ns + 1_007_000);
        let numbers = [(1, 2 * round), (1, 2 * round + 1), (2, round)];
        assert_eq!(queue.probes(), numbers, "numbers go on");
    }
}

#[test]
fn a_pause_moves_the_rest_and_an_update_changes_the_rate() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Continuous))]);
    let mut queue = Queue::open();
    transmitter.start(0, 10_000, 1.0);
    transmitter.step(0, &mut queue).unwrap();
    transmitter.pause(500);
    assert_eq!(transmitter.step(5_000, &mut queue).unwrap(), TransmitStep::DueAt(u64::MAX));
    transmitter.resume(100_500);
    assert_eq!(transmitter.step(100_500, &mut queue).unwrap(), TransmitStep::DueAt(101_000));
    transmitter.update(100_500, 2.0);
    assert_eq!(transmitter.step(100_500, &mut queue).unwrap(), TransmitStep::DueAt(100_750));
    // Up to 110 us: each 500 ns from 100.75 us on.
    run(&mut transmitter, &mut queue, 100_500);
    assert_eq!(queue.taken.len(), 1 + 19);
    assert_eq!((transmitter.counts().late, transmitter.counts().unsent), (0, 0));
}

#[test]
fn a_queue_that_is_gone_is_an_error_and_its_frames_are_unsent() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Burst(4)))]);
    let mut queue = Queue { is_gone: true, ..Queue::default() };
    transmitter.start(0, u64::MAX, 1.0);
    assert!(transmitter.step(1_000, &mut queue).is_err());
    transmitter.stop();
    assert!(transmitter.is_over());
    assert_eq!((transmitter.counts().packets, transmitter.counts().unsent), (0, 2));
}

#[test]
fn clearing_returns_the_next_number_that_leaves() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Continuous))]);
    let mut queue = Queue { room: 3, ..Queue::default() };
    transmitter.start(0, u64::MAX, 1.0);
    transmitter.step(6_000, &mut queue).unwrap();
    assert_eq!(transmitter.clear(), [(StreamId(1), 3)]);
    assert_eq!(transmitter.counts().packets, 0);
    queue.room = 4;
    transmitter.step(6_500, &mut queue).unwrap();
    assert_eq!(queue.probes()[3], (1, 3));
}

#[test]
fn random_gaps_have_their_rate_within_their_deviation() {
    let spec = StreamSpec { arrival: Arrival::Poisson(9), ..spec(pps(1e7), Mode::Continuous) };
    let mut transmitter = transmitter(vec![stream(1, &spec)]);
    let mut queue = Queue::open();
    transmitter.start(0, 20_000_000, 1.0);
    run(&mut transmitter, &mut queue, 0);
    // Four standard deviations of 200,000 events.
    let count = transmitter.counts().packets as f64;
    assert!((count - 200_000.0).abs() < 4.0 * 200_000_f64.sqrt(), "{count}");
}

/// The defect of a backlog that a port which takes whole bursts made longer and longer: the run
/// went on after its end, and nothing was unsent.
#[test]
fn an_overload_ends_in_time_and_what_was_too_old_is_unsent() {
    let mut count = FieldModifier::new("udp.src", ModifierOp::Increment);
    count.min = Some(FieldValue::Number(0));
    let spec = StreamSpec {
        size: FrameSize::Cycle(vec![64, 128]),
        modifiers: vec![Modifier::Field(count)],
        ..spec(pps(1e6), Mode::Continuous)
    };
    let mut transmitter = transmitter(vec![stream(1, &spec)]);
    let mut queue = Queue::open();
    let (end_ns, mut now_ns) = (10_000_000, 0);
    transmitter.start(0, end_ns, 1.0);
    // Eight frames take 20 us: 400,000 frames a second.
    while transmitter.step(now_ns, &mut queue).unwrap() != TransmitStep::Over {
        now_ns += 20_000;
    }
    let counts = transmitter.counts();
    assert_eq!(counts.packets + counts.unsent, 10_000);
    assert!(counts.packets.abs_diff(4_000) < 80, "{counts:?}");
    let last_ns = counts.departures_ns.unwrap().1;
    assert!(last_ns <= end_ns + LIMITS.unsent_after_ns, "{last_ns}");
    assert!(counts.late_ns_max <= LIMITS.unsent_after_ns, "{counts:?}");
    assert_eq!(transmitter.stream_counts()[0].0.unsent, counts.unsent);
    for (number, frame) in queue.taken.iter().enumerate() {
        let probe = ProbeHeader::read(frame).unwrap();
        assert_eq!(probe.sequence as usize, number, "numbers count what leaves");
        let planned = probe.due_ns / 1_000;
        assert_eq!(u64::from(frame[34]) << 8 | u64::from(frame[35]), planned);
        assert_eq!(frame.len(), [60, 124][planned as usize % 2]);
    }
}

#[test]
fn a_new_rate_does_not_find_the_backlog_of_the_old_one() {
    let mut transmitter = transmitter(vec![stream(1, &spec(pps(1e6), Mode::Continuous))]);
    let mut queue = Queue::default();
    transmitter.start(0, u64::MAX, 1.0);
    // The queue is full for 90 us: a burst is built, the rest waits.
    transmitter.step(10_000, &mut queue).unwrap();
    transmitter.update(90_000, 0.1);
    queue.room = usize::MAX;
    while transmitter.step(90_000, &mut queue).unwrap() == TransmitStep::Sent {}
    // The eight of the burst, and that of the last microsecond; those of 8 to 88 us are late.
    assert_eq!((transmitter.counts().packets, transmitter.counts().unsent), (9, 81));
}

/// Frames without due times of their own are as old as their burst: they are sent all the same.
#[test]
fn a_burst_without_a_rate_is_never_too_old() {
    let mode = Mode::Bursts { count: 2, packets: 100, gap_us: 50.0 };
    let mut transmitter = transmitter(vec![stream(1, &spec(Rate::Max, mode))]);
    let (mut queue, mut now_ns) = (Queue::open(), 0);
    transmitter.start(0, u64::MAX, 1.0);
    while transmitter.step(now_ns, &mut queue).unwrap() != TransmitStep::Over {
        now_ns += 60_000;
    }
    let counts = transmitter.counts();
    assert_eq!((counts.packets, counts.unsent, counts.late), (200, 0, 0));
}
