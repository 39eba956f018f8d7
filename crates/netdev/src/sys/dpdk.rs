//! DPDK's environment and its Ethernet devices, through the shim in `dpdk/shim.c`.
//!
//! The environment (EAL) starts once in a process, with the first device, and lives as long; what
//! configures devices is serialised here, since DPDK does not do it. By default nothing is left in
//! the file system: memory is anonymous, and there are no sockets. Buffers (mbufs) are handed out
//! as frames in external memory, so that what comes from a device can leave by one without a copy.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use openflow::text::{parse_decimal, zero_advice};
use packet::{ExternalBuf, ExternalOwner, PacketBuf};

/// The variable with EAL options in place of [`EAL_DEFAULT`].
pub(crate) const EAL_VARIABLE: &str = "WEIR_DPDK_EAL";

/// EAL options unless [`EAL_VARIABLE`] says others: no NIC is touched, no file is left behind.
const EAL_DEFAULT: &str = "--no-pci --in-memory --no-telemetry --log-level=4";

/// The variable with the number of buffers that all devices share.
const BUFFERS_VARIABLE: &str = "WEIR_DPDK_BUFFERS";

/// Buffers unless [`BUFFERS_VARIABLE`] says another number: 320 MB. A power of two less one fits
/// DPDK's rings best.
const BUFFERS_DEFAULT: u32 = (1 << 17) - 1;

/// The fewest buffers that make sense: rings and caches hold thousands.
const BUFFERS_MIN: u32 = (1 << 13) - 1;

/// Most frames in one call of the shim.
pub(crate) const BURST: usize = 64;

/// A burst's outcome: the layout is `struct weir_burst`'s.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Burst {
    bytes: u64,
    odd: u64,
}

/// Properties of a device: the layout is `struct weir_facts`'s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceInfo {
    pub(crate) mac: [u8; 6],
    pub(crate) mtu: u16,
    pub(crate) speed_mbps: u32,
    link_up: u8,
    full_duplex: u8,
    _pad: [u8; 2],
}

impl DeviceInfo {
    pub(crate) fn link_up(self) -> bool {
        self.link_up != 0
    }

    pub(crate) fn full_duplex(self) -> bool {
        self.full_duplex != 0
    }
}

/// Frames that a device has lost: the layout is `struct weir_losses`'s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossCounters {
    pub(crate) rx_missed: u64,
    pub(crate) rx_errors: u64,
    pub(crate) tx_errors: u64,
}

/// The most queues that a device has: the layout is `struct weir_queues`'s.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct DeviceQueues {
    rx: u16,
    tx: u16,
}

unsafe extern "C" {
    fn weir_dpdk_init(argc: c_int, argv: *mut *mut c_char) -> c_int;
    fn weir_dpdk_pool(name: *const c_char, count: u32) -> *mut c_void;
    fn weir_dpdk_attach(devargs: *const c_char) -> c_int;
    fn weir_dpdk_detach(port: u16) -> c_int;
    fn weir_dpdk_start(port: u16, queues: u16, pool: *mut c_void, most: *mut DeviceQueues)
    -> c_int;
    fn weir_dpdk_rx(
        port: u16,
        queue: u16,
        out: *mut ExternalBuf,
        max: u16,
        owner: *const ExternalOwner,
        burst: *mut Burst,
    ) -> u16;
    fn weir_dpdk_tx(
        port: u16,
        queue: u16,
        frames: *const ExternalBuf,
        count: u16,
        owner: *const ExternalOwner,
        burst: *mut Burst,
    ) -> u16;
    fn weir_dpdk_alloc(
        pool: *mut c_void,
        out: *mut ExternalBuf,
        owner: *const ExternalOwner,
    ) -> c_int;
    fn weir_dpdk_free(object: *mut c_void);
    fn weir_dpdk_room(object: *const c_void) -> u32;
    fn weir_dpdk_len(object: *const c_void) -> u32;
    fn weir_dpdk_copy(object: *const c_void, to: *mut u8);
    fn weir_dpdk_facts(port: u16, out: *mut DeviceInfo) -> c_int;
    fn weir_dpdk_losses(port: u16, out: *mut LossCounters) -> c_int;
}

/// The owner to which mbufs go back.
static MBUFS: ExternalOwner = ExternalOwner { room, release };

unsafe extern "C" fn room(object: NonNull<c_void>) -> u32 {
    // SAFETY: the caller promises an mbuf that has not been released.
    unsafe { weir_dpdk_room(object.as_ptr()) }
}

unsafe extern "C" fn release(object: NonNull<c_void>) {
    // SAFETY: the caller promises an mbuf that is released by nobody else.
    unsafe { weir_dpdk_free(object.as_ptr()) }
}

/// The buffers that all devices share.
#[derive(Clone, Copy)]
struct Buffers(NonNull<c_void>);

// SAFETY: DPDK's buffer pools may be used by all threads at once, and this one lives for ever.
unsafe impl Send for Buffers {}
// SAFETY: as above.
unsafe impl Sync for Buffers {}

/// Reasons why DPDK refuses.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DpdkError {
    /// There are no huge pages.
    #[error(
        "no huge page is free: echo 512 > /proc/sys/vm/nr_hugepages as root, or for a try without \
         them {EAL_VARIABLE}=\"--no-huge -m 512 --no-pci --no-shconf --no-telemetry\""
    )]
    HugePages,
    /// The environment did not start; DPDK has written more to standard error.
    #[error("DPDK does not start with {EAL_VARIABLE}={options:?}: {source}")]
    Start {
        /// The EAL options.
        options: String,
        /// DPDK's error, from its number.
        source: io::Error,
    },
    /// There is no memory for the buffers.
    #[error(
        "DPDK has no memory for {BUFFERS_MIN} buffers: more huge pages (echo 512 > \
         /proc/sys/vm/nr_hugepages)"
    )]
    Memory,
    /// A variable of the environment is wrong.
    #[error("{variable}={value:?}: {wanted}")]
    Variable {
        /// The variable of the environment.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The values that fit.
        wanted: String,
    },
    /// The device has fewer queues.
    #[error(
        "queues={wanted} is too many: the device has {rx} for receiving and {tx} for sending, so \
         use at most {most}",
        most = .rx.min(.tx)
    )]
    Queues {
        /// The number of queues asked for.
        wanted: u16,
        /// The most receive queues.
        rx: u16,
        /// The most transmit queues.
        tx: u16,
    },
    /// A device.
    #[error("DPDK cannot {what}: {source}")]
    Device {
        /// The attempt.
        what: &'static str,
        /// DPDK's error, from its number.
        source: io::Error,
    },
}

fn device(what: &'static str, negative: c_int) -> DpdkError {
    DpdkError::Device { what, source: io::Error::from_raw_os_error(-negative) }
}

/// DPDK's environment of this process.
static ENVIRONMENT: OnceLock<Buffers> = OnceLock::new();

/// Held while a device is made, changed or removed.
static CONTROL: Mutex<()> = Mutex::new(());

fn control() -> MutexGuard<'static, ()> {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the environment, if nobody has, and gives the buffers.
fn environment(_held: &MutexGuard<'static, ()>) -> Result<Buffers, DpdkError> {
    if let Some(buffers) = ENVIRONMENT.get() {
        return Ok(*buffers);
    }
    let options = std::env::var(EAL_VARIABLE).unwrap_or_else(|_| EAL_DEFAULT.to_owned());
    let wish = buffers_wish()?;
    if !options.contains("--no-huge") && !has_huge_pages() {
        return Err(DpdkError::HugePages);
    }
    let (outcome, started) = mpsc::sync_channel(1);
    // DPDK takes the thread that starts it for its main one and pins it: not one of ours.
    let start = move || {
        // Nobody waits any more only when the process ends.
        let _ = outcome.send(start(&options));
        loop {
            std::thread::park();
        }
    };
    let thread = std::thread::Builder::new().name("dpdk-main".to_owned());
    thread.spawn(start).map_err(|source| DpdkError::Device { what: "start a thread", source })?;
    started.recv().map_err(|_| DpdkError::Memory)??;
    let buffers = make_buffers(wish)?;
    Ok(*ENVIRONMENT.get_or_init(|| buffers))
}

fn start(options: &str) -> Result<(), DpdkError> {
    let cpus = crate::sys::affinity::allowed_cpus().unwrap_or_default();
    let cpu = cpus.first().copied().unwrap_or(0).to_string();
    let mut words = vec!["weir", "-l", cpu.as_str()];
    words.extend(options.split_ascii_whitespace());
    let words = words.into_iter().map(CString::new).collect::<Result<Vec<CString>, _>>();
    let failed = |source| DpdkError::Start { options: options.to_owned(), source };
    let words = words.map_err(|_| failed(io::ErrorKind::InvalidInput.into()))?;
    // DPDK keeps the words and may reorder them: they are never freed.
    let words: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
    let count = words.len() as c_int;
    let words = words.into_iter().chain([std::ptr::null_mut()]).collect::<Vec<_>>().leak();
    // SAFETY: `words` are `count` writable strings with a null behind, and live for ever.
    let outcome = unsafe { weir_dpdk_init(count, words.as_mut_ptr()) };
    if outcome < 0 { Err(failed(io::Error::from_raw_os_error(-outcome))) } else { Ok(()) }
}

/// The number of buffers that is asked for.
fn buffers_wish() -> Result<u32, DpdkError> {
    let Ok(value) = std::env::var(BUFFERS_VARIABLE) else { return Ok(BUFFERS_DEFAULT) };
    match parse_decimal(&value) {
        Some(count) if count >= BUFFERS_MIN => Ok(count),
        _ => {
            let wanted = format!("a number from {BUFFERS_MIN} on{}", zero_advice(&value));
            Err(DpdkError::Variable { variable: BUFFERS_VARIABLE, value, wanted })
        }
    }
}

/// As many buffers as are wished for, or the half, or a quarter: what there is memory for.
fn make_buffers(wish: u32) -> Result<Buffers, DpdkError> {
    let mut count = wish;
    while count >= BUFFERS_MIN {
        // SAFETY: the name is a string; DPDK copies it.
        let pool = unsafe { weir_dpdk_pool(c"weir".as_ptr(), count) };
        if let Some(pool) = NonNull::new(pool) {
            if count < wish {
                tracing::warn!(count, wish, "less memory for DPDK's buffers than wished for");
            }
            return Ok(Buffers(pool));
        }
        count /= 2;
    }
    Err(DpdkError::Memory)
}

/// Whether any size of huge pages has a free one.
fn has_huge_pages() -> bool {
    let Ok(sizes) = std::fs::read_dir("/sys/kernel/mm/hugepages") else { return false };
    sizes.flatten().any(|size| {
        let free = std::fs::read_to_string(size.path().join("free_hugepages"));
        free.is_ok_and(|free| free.trim().parse::<u64>().is_ok_and(|free| free > 0))
    })
}

/// A device that runs. It is stopped and removed when this value goes.
pub(crate) struct EthDevice {
    port: u16,
    buffers: Buffers,
}

impl EthDevice {
    /// Makes and starts the device that `devargs` name, a NIC's address or a virtual device, with
    /// `wanted` queue pairs, 0 to `wanted - 1`. Each is for one thread at a time.
    pub(crate) fn open(devargs: &str, wanted: u16) -> Result<Self, DpdkError> {
        let held = control();
        let buffers = environment(&held)?;
        let invalid = |_| device("read the devargs", -(rustix::io::Errno::INVAL.raw_os_error()));
        let text = CString::new(devargs).map_err(invalid)?;
        // SAFETY: a string; DPDK copies it.
        let port = unsafe { weir_dpdk_attach(text.as_ptr()) };
        let port = u16::try_from(port).map_err(|_| device("make the device", port))?;
        let opened = Self { port, buffers };
        let mut most = DeviceQueues::default();
        // SAFETY: the port exists, the pool lives for ever, and `most` is writable.
        let failed = unsafe { weir_dpdk_start(port, wanted, buffers.0.as_ptr(), &raw mut most) };
        drop(held);
        let DeviceQueues { rx, tx } = most;
        match failed {
            0.. => Ok(opened),
            _ if wanted > rx.min(tx) => Err(DpdkError::Queues { wanted, rx, tx }),
            _ => Err(device("start the device", failed)),
        }
    }

    /// Appends up to `max` frames that this queue has received to `frames`; returns how many, and
    /// their bytes.
    #[inline]
    pub(crate) fn rx(&self, queue: u16, frames: &mut Vec<PacketBuf>, max: usize) -> (usize, u64) {
        let mut received = 0;
        let mut bytes = 0;
        while received < max {
            let wish = (max - received).min(BURST);
            let first = frames.len();
            let mut burst = Burst::default();
            // SAFETY: the shim writes mbufs that nobody else holds, and at most `wish`. Their
            // memory was zero when it was mapped, and any thread may free an mbuf. Those that
            // others hold too are replaced before anyone sees them.
            unsafe {
                PacketBuf::extend_external(frames, wish, |room| {
                    let sizes = &raw mut burst;
                    weir_dpdk_rx(self.port, queue, room, wish as u16, &MBUFS, sizes).into()
                });
            }
            let count = frames.len() - first;
            if burst.odd != 0 {
                replace_odd(&mut frames[first..], burst.odd);
            }
            received += count;
            bytes += burst.bytes;
            if count < wish {
                break;
            }
        }
        (received, bytes)
    }

    /// Sends a prefix of `frames` by this queue, which is taken out; returns how many, and their
    /// bytes. A frame that is no mbuf is copied into one, and its buffer handed to `done`. Frames
    /// that can never be sent so (no mbuf is that long) are taken out too, and counted as the third
    /// number.
    #[inline]
    pub(crate) fn tx(
        &self,
        queue: u16,
        frames: &mut Vec<PacketBuf>,
        mut done: impl FnMut(PacketBuf),
    ) -> (usize, u64, u64) {
        let (mut sent, mut bytes, mut unfit) = (0, 0, 0);
        while let Some(front) = frames.first_mut() {
            if !front.is_external(&MBUFS) {
                match self.copy(front.bytes()) {
                    Copied::Done(copy) => done(std::mem::replace(front, copy)),
                    Copied::Unfit => {
                        done(frames.remove(0));
                        unfit += 1;
                        continue;
                    }
                    Copied::NoBuffer => break,
                }
            }
            let wish = frames.len().min(BURST) as u16;
            let mut burst = Burst::default();
            let room = frames.as_ptr().cast::<ExternalBuf>();
            // SAFETY: `wish` buffers in the layout of `ExternalBuf`. What the device takes is taken
            // out of `frames` without being released again.
            let count = unsafe {
                weir_dpdk_tx(self.port, queue, room, wish, &MBUFS, &raw mut burst).into()
            };
            PacketBuf::forget_front(frames, count);
            if count == 0 {
                break;
            }
            sent += count;
            bytes += burst.bytes;
        }
        (sent, bytes, unfit)
    }

    /// A copy of the frame in a buffer of DPDK's.
    fn copy(&self, bytes: &[u8]) -> Copied {
        let mut made = std::mem::MaybeUninit::<ExternalBuf>::uninit();
        let pool = self.buffers.0.as_ptr();
        // SAFETY: the pool lives for ever and there is room for one.
        if unsafe { weir_dpdk_alloc(pool, made.as_mut_ptr(), &MBUFS) } == 0 {
            return Copied::NoBuffer;
        }
        // SAFETY: the shim has written an mbuf that nobody else has.
        let mut copy = unsafe { PacketBuf::from_external(made.assume_init()) };
        copy.assign(bytes);
        // A frame that does not fit has gone to memory of its own.
        if copy.is_external(&MBUFS) { Copied::Done(copy) } else { Copied::Unfit }
    }

    /// Properties of the device; `None` once it has disappeared.
    pub(crate) fn info(&self) -> Option<DeviceInfo> {
        let mut info = DeviceInfo::default();
        // SAFETY: `info` is writable and has the shim's layout.
        let failed = unsafe { weir_dpdk_facts(self.port, &raw mut info) };
        (failed == 0).then_some(info)
    }

    /// Frames that the device has lost.
    pub(crate) fn losses(&self) -> LossCounters {
        let mut losses = LossCounters::default();
        // SAFETY: `losses` is writable and has the shim's layout. On a failure it is all zero.
        let _ = unsafe { weir_dpdk_losses(self.port, &raw mut losses) };
        losses
    }
}

impl Drop for EthDevice {
    fn drop(&mut self) {
        let _held = control();
        // SAFETY: the port exists; after this it is not used any more.
        let failed = unsafe { weir_dpdk_detach(self.port) };
        if failed != 0 {
            tracing::debug!(port = self.port, failed, "DPDK cannot remove the device");
        }
    }
}

/// Outcome of copying a frame into an mbuf.
enum Copied {
    Done(PacketBuf),
    /// It is too long.
    Unfit,
    /// None is free now.
    NoBuffer,
}

/// Puts copies in the place of frames in several pieces, or such that others hold too: of these the
/// buffer has only the first piece.
#[cold]
fn replace_odd(frames: &mut [PacketBuf], odd: u64) {
    for (number, frame) in frames.iter_mut().enumerate() {
        if odd >> number & 1 == 0 {
            continue;
        }
        let mbuf = std::mem::take(frame);
        let Ok(external) = mbuf.into_external(&MBUFS) else { continue };
        let object = external.object.as_ptr();
        // SAFETY: the mbuf is ours until it is freed here, and there is room for its frame.
        unsafe {
            let room = frame.prepare(weir_dpdk_len(object) as usize);
            weir_dpdk_copy(object, room.as_mut_ptr());
            weir_dpdk_free(object);
        }
    }
}
