//! `tap`: a TAP device that the port makes, brings up and, when dropped, removes. What the kernel's
//! stack sends to the device is received here, and the other way round.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use packet::{Batch, PacketBuf};

use crate::counters::{Counted, PortCounters, PortQueueCounters, queue_counters};
use crate::device::{KernelDevice, is_gone};
use crate::error::PortError;
use crate::kernel_tx::{FrameSender, KernelTx, TakenFrames};
use crate::offload::VNET_LEN;
use crate::port::{Port, PortDevice, RxQueue};
use crate::port_info::{LinkNotification, PortInfo};
use crate::soft_offload::SoftOffload;
use crate::spec::{
    DEVICE, KindRow, OptionRow, PortRight, PortSpec, QUEUES, by_name, no_file, option,
};
use crate::sys::ifreq::IoctlSocket;
use crate::sys::link::{LinkError, Rtnl};
use crate::sys::tun::Tun;

const FIX: &str = "give the program CAP_NET_ADMIN";
/// An Ethernet header and one VLAN tag.
const FRAME_OVERHEAD: usize = 18;
const HEADER_LEN: usize = 14;

/// The row in the table of kinds.
pub const ROW: KindRow = KindRow {
    word: "tap",
    name_hint: DEVICE,
    help: "a TAP device that is made, brought up and removed again",
    options: &[
        option("mtu", "1500", "the device's MTU in bytes; 68 to 65521"),
        UP,
        option("vnet_hdr", "false|true", "take and send super-frames whole"),
        option(QUEUES, "1", "queues, among which the kernel shares flows out; 1 to 64"),
    ],
    exclusive: by_name,
    file_use: no_file,
    rights: &[PortRight::TunDevice, PortRight::DeviceSettings],
    open,
};

/// The option of all kinds of TAP by which the device comes up.
pub(super) const UP: OptionRow =
    option("up", "true|false", "bring the device up; else it stays as it is");

/// The settings of a device beside its name and those options that all kinds of TAP have.
#[derive(Debug, Default)]
pub(super) struct TapSettings {
    /// Super-frames come and go whole.
    pub(super) vnet: bool,
    /// Its address, where it is to have a certain one.
    pub(super) mac: Option<[u8; 6]>,
    /// Whether it stays when the port is closed; as it was where that is not known.
    pub(super) persists: Option<bool>,
}

fn open(spec: &PortSpec) -> Result<Port, PortError> {
    let vnet = spec.flag("vnet_hdr", false)?;
    open_tap(spec, &TapSettings { vnet, ..TapSettings::default() })
}

/// Opens a TAP device as a port.
pub(super) fn open_tap(spec: &PortSpec, settings: &TapSettings) -> Result<Port, PortError> {
    let vnet = settings.vnet;
    let is_up_wanted = spec.flag("up", true)?;
    let mtu = spec.number("mtu", 68..=65_521)?;
    let kind = spec.kind().word;
    let what = format!("{kind}:{}", spec.name());
    let failed = |source: io::Error| match source.raw_os_error() {
        Some(libc::EBUSY) => PortError::InUse(what.clone()),
        Some(libc::EINVAL) => PortError::Io {
            what: what.clone(),
            source: io::Error::other("a device of that name exists and is no TAP device like it"),
        },
        _ => PortError::from_io(what.clone(), FIX, source),
    };
    let queues = spec.queues()?;
    let open_first = if queues > 1 { Tun::open_queue } else { Tun::open };
    let (tun, name) = open_first(spec.name(), vnet).map_err(failed)?;
    let control = IoctlSocket::open().map_err(failed)?;
    if let Some(mtu) = mtu {
        control.set_mtu(&name, mtu).map_err(failed)?;
    }
    let rtnl = Rtnl::open().map_err(|error| failed(error.into()))?;
    if let Some(mac) = settings.mac {
        rtnl.set_mac(&name, mac).map_err(|error| failed(error.into()))?;
    }
    if let Some(persists) = settings.persists {
        tun.set_persistent(persists).map_err(failed)?;
    }
    if is_up_wanted {
        control.set_up(&name).map_err(failed)?;
    }
    let tun = Arc::new(tun);
    let device = Arc::new(KernelDevice::find(kind, &name)?.of_tun(&tun));
    let link = rtnl.link(&name);
    let drops_before = link.map(|link| link.stats.tx_dropped).unwrap_or_default();
    let mut tuns = vec![tun];
    for _ in 1..queues {
        tuns.push(Arc::new(Tun::open_queue(&name, vnet).map_err(failed)?.0));
    }
    let counters = queue_counters(tuns.len());
    let handle = TapDevice {
        device: Arc::clone(&device),
        _tuns: tuns.clone(),
        rtnl,
        drops_before,
        drops: 0,
        counters: counters.clone(),
    };
    let queue = |(tun, counters): (Arc<Tun>, Arc<PortQueueCounters>)| {
        let rx = TapRx {
            device: Arc::clone(&device),
            tun: Arc::clone(&tun),
            soft_offload: SoftOffload::new(),
            counters: Arc::clone(&counters),
        };
        Ok((rx, KernelTx::new(Arc::clone(&device), tun, counters)))
    };
    Port::with_queues(handle, tuns.into_iter().zip(counters).map(queue))
}

/// The receive queue.
#[derive(Debug)]
struct TapRx {
    device: Arc<KernelDevice>,
    tun: Arc<Tun>,
    soft_offload: SoftOffload,
    counters: Arc<PortQueueCounters>,
}

impl RxQueue for TapRx {
    fn rx(&mut self, batch: &mut Batch, max: usize) -> Result<usize, PortError> {
        self.device.check()?;
        let before = batch.len();
        let mut counted = Counted::default();
        while batch.len() - before < max {
            if self.soft_offload.next_segment(batch, &mut counted) {
                continue;
            }
            match self.tun.read(self.soft_offload.buffer()) {
                Ok(end) => self.soft_offload.process(end, None, batch, &mut counted),
                Err(error) if is_gone(&error) && batch.len() == before => {
                    self.device.ask()?;
                    break;
                }
                // None is waiting, or the device is down; what was read is returned first.
                Err(_) => break,
            }
        }
        self.counters.rx.add(&counted);
        Ok(batch.len() - before)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.tun.fd())
    }

    fn keep_offloads(&mut self) -> bool {
        self.soft_offload.keep();
        self.tun.has_vnet()
    }
}

impl FrameSender for Arc<Tun> {
    fn send(
        &self,
        device: &KernelDevice,
        frames: &[PacketBuf],
        headers: &[[u8; VNET_LEN]],
        taken: &mut TakenFrames,
    ) -> Result<(), PortError> {
        let longest = device.mtu() as usize + FRAME_OVERHEAD;
        let headers = headers.iter().chain(std::iter::repeat(&[0; VNET_LEN]));
        for (frame, header) in frames.iter().zip(headers) {
            let is_whole = frame.has_offload();
            if frame.len() > longest && !is_whole || frame.len() < HEADER_LEN {
                taken.unfit();
                continue;
            }
            match self.write(header, frame.bytes()) {
                Ok(()) => taken.sent(frame),
                Err(error) if is_gone(&error) => return device.ask(),
                Err(error) if is_whole && error.raw_os_error() == Some(libc::EINVAL) => {
                    taken.refuse_offload();
                    break;
                }
                // The device is down, or the kernel has no memory for it: not taken.
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn carries_offloads(&self) -> bool {
        self.has_vnet()
    }
}

/// The device handle.
#[derive(Debug)]
struct TapDevice {
    device: Arc<KernelDevice>,
    /// The device exists as long as its descriptors, and has as many queues.
    _tuns: Vec<Arc<Tun>>,
    /// In the namespace where the port was opened.
    rtnl: Rtnl,
    /// Frames that the device had dropped before the port was opened, if it was there before.
    drops_before: u64,
    /// Frames that it has dropped since, as last read.
    drops: u64,
    counters: Vec<Arc<PortQueueCounters>>,
}

impl TapDevice {
    /// Asks by a socket in the namespace where the device is, and by the name that it has there.
    fn with_rtnl<T: Send>(
        &self,
        ask: impl FnOnce(&Rtnl, &str) -> Result<T, LinkError> + Send,
    ) -> Result<T, LinkError> {
        let failed = |source| LinkError { what: "finding a TAP device".to_owned(), source };
        match self.device.place().map_err(failed)? {
            (name, None) => ask(&self.rtnl, &name),
            (name, Some(namespace)) => {
                namespace.enter(|| ask(&Rtnl::open()?, &name)).map_err(failed)?
            }
        }
    }
}

impl PortDevice for TapDevice {
    fn info(&mut self) -> PortInfo {
        PortInfo { has_line_rate: false, ..self.device.info(&[]) }
    }

    /// The kernel notifies of the devices of one namespace; one that has gone to another is asked.
    fn link_notification(&self) -> LinkNotification {
        match self.device.has_moved() {
            false => LinkNotification::Netlink(self.device.index()),
            true => LinkNotification::Polled,
        }
    }

    fn owns_link(&self) -> bool {
        true
    }

    fn set_link(&mut self, up: bool) -> Result<(), PortError> {
        let set = self.with_rtnl(|rtnl, name| rtnl.set_up(name, up));
        set.map_err(|error| {
            let what = format!("setting the link of {}", self.device.name());
            PortError::from_io(what, FIX, error.into())
        })
    }

    fn counters(&mut self) -> PortCounters {
        // What the kernel dropped because nobody read the device fast enough.
        let dropped = self.with_rtnl(|rtnl, name| Ok(rtnl.link(name)?.stats.tx_dropped));
        let drops = dropped.unwrap_or_default().saturating_sub(self.drops_before);
        self.drops = self.drops.max(drops);
        let mut counters: PortCounters = self.counters.iter().map(|queue| queue.read()).sum();
        counters.rx_drops += self.drops;
        counters
    }
}
