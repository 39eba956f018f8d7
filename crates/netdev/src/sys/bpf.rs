//! `bpf(2)`: maps, programs, and links to devices' TCX hooks, as far as the kernel tier needs them.
//!
//! Raw system calls, since the loader crates need a newer compiler or a C library for what is a few
//! calls here. What is not pinned lives as long as its descriptor, so it goes with the process,
//! however that ends.
#![allow(unsafe_code)]

use std::ffi::{CString, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::shm::Mapping;

const MAP_CREATE: c_long = 0;
const MAP_UPDATE_ELEM: c_long = 2;
const MAP_DELETE_ELEM: c_long = 3;
const PROG_LOAD: c_long = 5;
const OBJ_PIN: c_long = 6;
const OBJ_GET: c_long = 7;
#[cfg(test)]
const PROG_TEST_RUN: c_long = 10;
#[cfg(test)]
const OBJ_GET_INFO_BY_FD: c_long = 15;
const PROG_QUERY: c_long = 16;
const LINK_CREATE: c_long = 28;
const LINK_UPDATE: c_long = 29;

const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_PROG_ARRAY: u32 = 3;
const F_NO_PREALLOC: u32 = 1;
const F_MMAPABLE: u32 = 1 << 10;
const PROG_TYPE_SOCKET_FILTER: u32 = 1;
const PROG_TYPE_SCHED_CLS: u32 = 3;
/// A reader of the log of a refused program wants its end.
const LOG_LEN: usize = 1 << 20;

/// Place of a program at a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    /// Frames that come to a socket: it gets those for which the program returns their length or
    /// more.
    Socket = 0,
    /// Frames that arrive, before the stack sees them.
    Ingress = 46,
    /// Frames that the stack sends.
    Egress = 47,
}

/// A map.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key_len: usize,
    value_len: usize,
    entries: usize,
}

impl Map {
    /// A hash map.
    pub(crate) fn hash(key_len: usize, value_len: usize, entries: usize) -> io::Result<Self> {
        Self::create(MAP_TYPE_HASH, key_len, value_len, entries, 0)
    }

    /// A hash map that takes memory for the elements that it has.
    pub(crate) fn growing_hash(
        key_len: usize,
        value_len: usize,
        entries: usize,
    ) -> io::Result<Self> {
        Self::create(MAP_TYPE_HASH, key_len, value_len, entries, F_NO_PREALLOC)
    }

    /// An array whose values [`Map::map`] shows.
    pub(crate) fn array(value_len: usize, entries: usize) -> io::Result<Self> {
        Self::create(MAP_TYPE_ARRAY, 4, value_len, entries, F_MMAPABLE)
    }

    /// The array that is pinned there. Its values are what it was made with: to map more than there
    /// are is an error.
    pub(crate) fn pinned_array(path: &Path, value_len: usize, entries: usize) -> io::Result<Self> {
        Ok(Self { fd: pinned(path)?, key_len: 4, value_len, entries })
    }

    /// Has the map outlive this process, under a path of a BPF file system.
    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        pin(&self.fd, path)
    }

    /// Room for programs that another one goes on at, by number. They are there as long as this is.
    pub(crate) fn program_array(programs: usize) -> io::Result<Self> {
        Self::create(MAP_TYPE_PROG_ARRAY, 4, 4, programs, 0)
    }

    /// An array of these programs.
    pub(crate) fn programs(programs: &[&Program]) -> io::Result<Self> {
        let map = Self::program_array(programs.len())?;
        for (number, program) in (0_u32..).zip(programs) {
            map.put_program(&number.to_ne_bytes(), program)?;
        }
        Ok(map)
    }

    /// Puts a program in its place.
    pub(crate) fn put_program(&self, number: &[u8; 4], program: &Program) -> io::Result<()> {
        self.update(number, &program.fd.as_raw_fd().to_ne_bytes())
    }

    fn create(
        kind: u32,
        key_len: usize,
        value_len: usize,
        entries: usize,
        flags: u32,
    ) -> io::Result<Self> {
        let word =
            |len| u32::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
        let mut attr = Attr::default();
        for (at, value) in
            [kind, word(key_len)?, word(value_len)?, word(entries)?, flags].into_iter().enumerate()
        {
            attr.word(4 * at, value);
        }
        let fd = attr.descriptor(MAP_CREATE)?;
        Ok(Self { fd, key_len, value_len, entries })
    }

    /// The values of an array, one after the other; their length is a multiple of 8.
    pub(crate) fn map(&self) -> io::Result<Mapping> {
        Mapping::file(&self.fd, self.value_len * self.entries)
    }

    /// Writes a value.
    pub(crate) fn update(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        assert!(
            key.len() == self.key_len && value.len() == self.value_len,
            "another map's element"
        );
        let mut attr = self.element(key);
        attr.pointer(16, value.as_ptr());
        attr.call(MAP_UPDATE_ELEM).map(drop)
    }

    /// Removes a value; an error when there is none.
    pub(crate) fn delete(&self, key: &[u8]) -> io::Result<()> {
        assert_eq!(key.len(), self.key_len, "another map's key");
        self.element(key).call(MAP_DELETE_ELEM).map(drop)
    }

    fn element(&self, key: &[u8]) -> Attr {
        let mut attr = Attr::default();
        attr.word(0, self.fd.as_raw_fd().cast_unsigned());
        attr.pointer(8, key.as_ptr());
        attr
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A program that the verifier has let pass.
#[derive(Debug)]
pub(crate) struct Program {
    fd: OwnedFd,
    hook: Hook,
}

/// A program at its hook; dropped, it is there no longer unless it is pinned.
#[derive(Debug)]
pub(crate) struct Link {
    fd: OwnedFd,
}

impl Link {
    /// The link that is pinned there.
    pub(crate) fn pinned(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: pinned(path)? })
    }

    /// Has the program stay at its hook when this process ends, as [`Map::pin`].
    pub(crate) fn pin(&self, path: &Path) -> io::Result<()> {
        pin(&self.fd, path)
    }

    /// Puts another program in the place of the one that is there: each frame meets one of them.
    ///
    /// # Errors
    /// Among others when the device is gone.
    pub(crate) fn update(&self, program: &Program) -> io::Result<()> {
        let mut attr = Attr::default();
        attr.word(0, self.fd.as_raw_fd().cast_unsigned());
        attr.word(4, program.fd.as_raw_fd().cast_unsigned());
        attr.call(LINK_UPDATE).map(drop)
    }
}

fn pin(fd: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attr = Attr::default();
    attr.pointer(0, path.as_ptr().cast());
    attr.word(8, fd.as_raw_fd().cast_unsigned());
    attr.call(OBJ_PIN).map(drop)
}

fn pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attr = Attr::default();
    attr.pointer(0, path.as_ptr().cast());
    attr.descriptor(OBJ_GET)
}

impl Program {
    /// Loads a program for this hook. An error of the verifier has the end of its log.
    pub(crate) fn load(code: &[u64], hook: Hook) -> io::Result<Self> {
        let mut attr = Attr::default();
        let license = c"Apache-2.0";
        let kind = match hook {
            Hook::Socket => PROG_TYPE_SOCKET_FILTER,
            Hook::Ingress | Hook::Egress => PROG_TYPE_SCHED_CLS,
        };
        attr.word(0, kind);
        attr.word(4, u32::try_from(code.len()).unwrap_or(u32::MAX));
        attr.pointer(8, code.as_ptr().cast());
        attr.pointer(16, license.as_ptr().cast());
        attr.bytes(48, b"weir_tier");
        attr.word(68, hook as u32);
        let refused = match attr.descriptor(PROG_LOAD) {
            Ok(fd) => return Ok(Self { fd, hook }),
            Err(refused) => refused,
        };
        // Once more with a log, which says why; without one loading costs less.
        let mut log = vec![0_u8; LOG_LEN];
        attr.word(24, 1);
        attr.word(28, u32::try_from(log.len()).unwrap_or(0));
        attr.pointer(32, log.as_mut_ptr());
        if let Ok(fd) = attr.descriptor(PROG_LOAD) {
            return Ok(Self { fd, hook });
        }
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
        let text = String::from_utf8_lossy(log.get(..end).unwrap_or_default());
        let mut last: Vec<&str> = text.lines().rev().take(6).collect();
        last.reverse();
        if last.is_empty() {
            return Err(refused);
        }
        let text = format!("{refused}; the verifier says: {}", last.join(" | "));
        Err(io::Error::new(refused.kind(), text))
    }

    /// The same program.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, hook: self.hook })
    }

    /// Puts the program at its hook of the device of this number, behind those that are there.
    ///
    /// # Errors
    /// The kernel's error; where it has no such hooks, its release and since which they are.
    pub(crate) fn attach(&self, device: u32) -> io::Result<Link> {
        self.link(device, self.hook as u32)
    }

    /// Gives a socket the program as its filter, in the place of the one that it has.
    pub(crate) fn attach_to_socket(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let program = self.fd.as_raw_fd();
        // SAFETY: the option takes the number of a descriptor, valid for the call.
        let done = unsafe {
            let value = (&raw const program).cast();
            let len = size_of_val(&program) as libc::socklen_t;
            let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_BPF);
            libc::setsockopt(socket.as_raw_fd(), level, option, value, len)
        };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn link(&self, device: u32, attach_type: u32) -> io::Result<Link> {
        let mut attr = Attr::default();
        attr.word(0, self.fd.as_raw_fd().cast_unsigned());
        attr.word(4, device);
        attr.word(8, attach_type);
        let fd = attr.descriptor(LINK_CREATE).map_err(|error| match error.raw_os_error() {
            // Of a kind of link that it does not know, a kernel says no more.
            Some(libc::EINVAL) => without_tcx(&rustix::system::uname().release().to_string_lossy()),
            _ => error,
        })?;
        Ok(Link { fd })
    }

    /// Runs the program once on a frame; what it returns.
    #[cfg(test)]
    pub(crate) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        let mut attr = Attr::default();
        attr.word(0, self.fd.as_raw_fd().cast_unsigned());
        attr.word(8, u32::try_from(frame.len()).unwrap_or(u32::MAX));
        attr.pointer(16, frame.as_ptr());
        attr.word(32, 1);
        attr.call(PROG_TEST_RUN)?;
        Ok(attr.read(4))
    }

    /// The number of instructions that the verifier looked at, along all ways through the program.
    #[cfg(test)]
    pub(crate) fn verified_instructions(&self) -> io::Result<u32> {
        /// `verified_insns` of `struct bpf_prog_info`, and the length up to its end.
        const VERIFIED_AT: usize = 216;
        const LEN: usize = VERIFIED_AT + 4;
        let mut info = [0_u8; LEN];
        let mut attr = Attr::default();
        attr.word(0, self.fd.as_raw_fd().cast_unsigned());
        attr.word(4, LEN as u32);
        attr.pointer(8, info.as_mut_ptr());
        attr.call(OBJ_GET_INFO_BY_FD)?;
        let mut word = [0; 4];
        word.copy_from_slice(&info[VERIFIED_AT..]);
        Ok(u32::from_ne_bytes(word))
    }
}

/// Whether there are programs at this TCX hook of the device of this number.
pub(crate) fn has_programs(device: u32, hook: Hook) -> io::Result<bool> {
    let mut attr = Attr::default();
    attr.word(0, device);
    attr.word(4, hook as u32);
    match attr.call(PROG_QUERY) {
        Ok(_) => Ok(attr.read(24) > 0),
        // There is none, or the last one has gone.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until every processor has ended what it does with a frame at this moment.
pub(crate) fn wait_for_frames() {
    const GLOBAL: c_long = 1;
    /// Longer than a processor has a frame, where the kernel does not say.
    const LONG: Duration = Duration::from_millis(100);
    // SAFETY: the call takes numbers only.
    if unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) } < 0 {
        std::thread::sleep(LONG);
    }
}

/// A kernel of this release has no TCX.
fn without_tcx(release: &str) -> io::Error {
    let text = format!(
        "Linux {release} has no TCX hook; the tier needs Linux 6.6 or later, with CONFIG_NET_XGRESS"
    );
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// The argument of a call: `union bpf_attr`, whose fields lie where the callers say.
#[repr(C, align(8))]
struct Attr([u8; 128]);

impl Default for Attr {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl Attr {
    fn bytes(&mut self, at: usize, value: &[u8]) {
        self.0[at..at + value.len()].copy_from_slice(value);
    }

    fn word(&mut self, at: usize, value: u32) {
        self.bytes(at, &value.to_ne_bytes());
    }

    fn read(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.0[at..at + 4]);
        u32::from_ne_bytes(word)
    }

    fn pointer(&mut self, at: usize, value: *const u8) {
        self.bytes(at, &(value.expose_provenance() as u64).to_ne_bytes());
    }

    fn call(&mut self, command: c_long) -> io::Result<c_long> {
        // SAFETY: the attribute is valid and writable for its whole length. The pointers in it are
        // those of slices that the callers borrow beyond the call, as long as the kernel takes them
        // to be: keys and values by the map's own lengths, which are checked, code, log and frame
        // by the length beside them, paths by the zero at their end.
        let done = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), 128_u32) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
    }

    fn descriptor(&mut self, command: c_long) -> io::Result<OwnedFd> {
        let fd = i32::try_from(self.call(command)?).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: the commands used here return a fresh descriptor, which is nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Hook, Program, without_tcx};

    /// As an older kernel answers to a hook that came later.
    #[test]
    #[ignore = "needs root"]
    fn an_unknown_hook_is_an_error_with_the_kernel_release() {
        const NO_SUCH_TYPE: u32 = 250;
        const LOOPBACK: u32 = 1;
        // Returns zero.
        let program = Program::load(&[0xb7, 0x95], Hook::Ingress).expect("needs root");
        let error = program.link(LOOPBACK, NO_SUCH_TYPE).unwrap_err();
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(error.to_string(), without_tcx(release.trim()).to_string());
        assert!(error.to_string().contains("has no TCX hook; the tier needs Linux 6.6"), "{error}");
        let gone = program.link(u32::MAX >> 1, Hook::Ingress as u32).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ENODEV), "{gone}");
    }
}
