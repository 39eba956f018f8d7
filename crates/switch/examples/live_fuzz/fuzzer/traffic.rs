//! The switch under fuzz, in this process with ports in memory, and the traffic through it: frames
//! of the unrelated flow, each of which must arrive, and random frames that hit what is fuzzed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use netdev::Port;
use packet::{Batch, PacketBuf};
use switch::SwitchError;
use tokio::sync::oneshot;

use super::entropy::Entropy;
use super::make::TABLES;

/// A frame of the unrelated flow that takes longer is lost.
const LOST_AFTER: Duration = Duration::from_secs(20);
/// The beginning of its frames.
const HEAD: [u8; 22] = *b"\x02\x00\x00\x00\x00\x04\x02\x00\x00\x00\x00\x03\x88\xb6unrelate";

/// The running switch.
pub(crate) struct Switch {
    thread: JoinHandle<Result<(), SwitchError>>,
    stop: oneshot::Sender<()>,
}

impl Switch {
    pub(crate) fn start(dir: &Path) -> Result<Self, String> {
        let ports: Vec<String> =
            (1..=4).map(|port| format!("\"memory:live{port}?slots=16384\"")).collect();
        let place = dir.display();
        let text = format!(
            "dpid = \"a1\"\nport = [{}]\nlisten = [\"punix:{place}/of\"]\n\
             control = \"{place}/ctl\"\ntables = {TABLES}\nmax-entries = 20000\n\
             inactivity-probe = 0",
            ports.join(", ")
        );
        let config = switch::parse_config(&text).and_then(|args| args.resolve());
        let config = config.map_err(|error| error.to_string())?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            switch::run_until(config, || {
                Ok(async {
                    // A message or the end of the sender: both mean stop.
                    let _ = stopped.await;
                })
            })
        });
        let deadline = Instant::now() + LOST_AFTER;
        while std::os::unix::net::UnixStream::connect(dir.join("of")).is_err() {
            if thread.is_finished() || Instant::now() > deadline {
                return Err("the switch does not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { thread, stop })
    }

    pub(crate) fn stop(self) -> Result<(), String> {
        drop(self.stop);
        match self.thread.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the switch has ended: {error}")),
            Err(_) => Err("the switch has panicked".to_owned()),
        }
    }
}

/// The traffic.
pub(crate) struct Traffic {
    begun: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    /// Whether a frame of the unrelated flow was lost or changed.
    pub(crate) failed: Arc<AtomicBool>,
    /// Frames of the unrelated flow that have arrived.
    pub(crate) sent: Arc<AtomicU64>,
    thread: JoinHandle<Result<Duration, String>>,
}

impl Traffic {
    /// Opens the other ends of the ports; frames go once it has begun.
    pub(crate) fn start(seed: u64) -> Result<Self, String> {
        let open = |port| {
            let spec = format!("memory:live{port}?end=b&slots=16384");
            netdev::open_text(&spec).map_err(|error| error.to_string())
        };
        let hosts = [open(1)?, open(2)?, open(3)?, open(4)?];
        let [begun, stopped, failed] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let sent = Arc::new(AtomicU64::new(0));
        let run = Run {
            hosts,
            batch: Batch::default(),
            entropy: Entropy::new(!seed),
            begun: Arc::clone(&begun),
            stopped: Arc::clone(&stopped),
            sent: Arc::clone(&sent),
        };
        let has_failed = Arc::clone(&failed);
        let thread = std::thread::spawn(move || {
            let outcome = run.run();
            has_failed.store(outcome.is_err(), Ordering::Relaxed);
            outcome
        });
        Ok(Self { begun, stopped, failed, sent, thread })
    }

    pub(crate) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Ends the traffic: how long the slowest frame of the unrelated flow took.
    pub(crate) fn stop(self) -> Result<Duration, String> {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the traffic has panicked".to_owned())?
    }
}

struct Run {
    hosts: [Port; 4],
    batch: Batch,
    entropy: Entropy,
    begun: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
}

impl Run {
    fn run(mut self) -> Result<Duration, String> {
        let mut slowest = Duration::ZERO;
        while !self.stopped.load(Ordering::Relaxed) {
            if self.begun.load(Ordering::Relaxed) {
                self.disturb()?;
                let number = self.sent.load(Ordering::Relaxed);
                slowest = slowest.max(self.carry(number)?);
                self.sent.store(number + 1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(slowest)
    }

    /// Random frames by the first two ports; what came out of all but the last is thrown away.
    fn disturb(&mut self) -> Result<(), String> {
        let [first, second, third, _] = &mut self.hosts;
        for host in [first, second] {
            let length = 14 + self.entropy.below(120);
            let mut frame = self.entropy.bytes(length);
            let kind: &[u8] = match self.entropy.below(4) {
                0 => &[0x08, 0x00, 0x45],
                1 => &[0x86, 0xdd, 0x60],
                2 => &[0x81, 0x00],
                _ => &[],
            };
            for (to, byte) in frame.iter_mut().skip(12).zip(kind) {
                *to = *byte;
            }
            host.tx(&[PacketBuf::from_slice(&frame)]).map_err(|error| error.to_string())?;
            drain(host, &mut self.batch)?;
        }
        drain(third, &mut self.batch)
    }

    /// Sends a frame of the unrelated flow and waits for it.
    fn carry(&mut self, number: u64) -> Result<Duration, String> {
        let mut frame = HEAD.to_vec();
        frame.extend(number.to_be_bytes());
        frame.resize(60, 7);
        let [_, _, from, to] = &mut self.hosts;
        let begun = Instant::now();
        let sent = from.tx(&[PacketBuf::from_slice(&frame)]).map_err(|error| error.to_string())?;
        if sent != 1 {
            return Err(format!("the switch does not take frame {number} of the unrelated flow"));
        }
        while begun.elapsed() < LOST_AFTER {
            self.batch.clear();
            to.rx(&mut self.batch, 256).map_err(|error| error.to_string())?;
            for came in self.batch.frames() {
                if came.bytes() == frame {
                    return Ok(begun.elapsed());
                }
                if came.bytes().starts_with(&HEAD) {
                    let came = came.bytes();
                    return Err(format!("frame {number} arrives as {came:02x?}"));
                }
            }
            std::thread::yield_now();
        }
        Err(format!("frame {number} of the unrelated flow is lost"))
    }
}

fn drain(host: &mut Port, batch: &mut Batch) -> Result<(), String> {
    loop {
        batch.clear();
        if host.rx(batch, 256).map_err(|error| error.to_string())? == 0 {
            return Ok(());
        }
    }
}
