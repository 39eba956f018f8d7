//! An etcd of a test's own: one process on loopback with a data folder that goes with it.
//!
//! Its ports are free ones, its data outlives [`EtcdProcess::stop`] so that a test can restart it,
//! and it is ended by its process id. Nothing of it stays when the value is dropped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A loaded machine may take this long to start it.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running etcd, or one that has been stopped.
#[derive(Debug)]
pub struct EtcdProcess {
    child: Option<Child>,
    data: PathBuf,
    client_port: u16,
    peer_port: u16,
    health_port: u16,
    tls: Option<EtcdCertificates>,
}

/// Files of an etcd with TLS, in PEM. It asks its clients for certificates of the same CA.
#[derive(Clone, Debug)]
pub struct EtcdCertificates {
    /// Its certificate, which is for 127.0.0.1.
    pub certificate: PathBuf,
    /// The key of that.
    pub private_key: PathBuf,
    /// The certificate of the CA.
    pub ca: PathBuf,
}

impl EtcdProcess {
    /// Starts one and waits until it answers. It elects quickly, so that it grants leases of one
    /// second.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None)
    }

    /// The same with TLS.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start_tls(certificates: EtcdCertificates) -> Self {
        Self::start_with(Some(certificates))
    }

    fn start_with(tls: Option<EtcdCertificates>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-etcd-{}-{number}", std::process::id());
        let data = std::env::temp_dir().join(name);
        let mut etcd =
            Self { child: None, data, client_port: 0, peer_port: 0, health_port: 0, tls };
        // Somebody may take a port between the question for a free one and its use.
        for _ in 0..5 {
            (etcd.client_port, etcd.peer_port) = (free_port(), free_port());
            etcd.health_port = free_port();
            if etcd.begin() {
                return etcd;
            }
        }
        panic!("etcd does not start; is Debian's package etcd-server installed?");
    }

    /// `HOST:PORT` of its clients.
    #[must_use]
    pub fn server(&self) -> String {
        format!("127.0.0.1:{}", self.client_port)
    }

    /// Ends it at once (SIGKILL). Its data stays.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let ended = child.kill().and_then(|()| child.wait());
            assert!(ended.is_ok(), "etcd cannot be ended: {ended:?}");
        }
    }

    /// Starts it again on the same port with the same data.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&mut self) {
        self.stop();
        assert!(self.begin(), "etcd does not start again");
    }

    /// Makes it forget everything, while it is stopped.
    ///
    /// # Panics
    /// When its folder cannot be removed.
    pub fn forget(&mut self) {
        assert!(self.child.is_none(), "etcd is running");
        std::fs::remove_dir_all(&self.data).expect("etcd's data can be removed");
    }

    /// Stops it from doing anything, or lets it go on: a server that is there and does not answer.
    ///
    /// # Panics
    /// When it is not running.
    pub fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let child = self.child.as_ref().expect("etcd is running");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "etcd cannot be signalled");
    }

    /// Starts it; whether it answers.
    fn begin(&mut self) -> bool {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let client = format!("{scheme}://127.0.0.1:{}", self.client_port);
        let health = format!("http://127.0.0.1:{}", self.health_port);
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(&self.data);
        command.args(["--name", "one", "--logger", "zap", "--log-level", "error"]);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("one={peer}")]);
        command.args(["--listen-metrics-urls", &health]);
        if let Some(EtcdCertificates { certificate, private_key, ca }) = &self.tls {
            command.arg("--cert-file").arg(certificate).arg("--key-file").arg(private_key);
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
        }
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        self.child = Some(child.expect("etcd can be started: Debian's package etcd-server"));
        let deadline = Instant::now() + READY_WITHIN;
        while Instant::now() < deadline {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() {
                self.child = None;
                return false;
            }
            if self.is_healthy().is_some_and(|healthy| healthy) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.stop();
        false
    }

    fn is_healthy(&self) -> Option<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.health_port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.contains("\"true\""))
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let ended = child.kill().and_then(|()| child.wait());
            drop(ended);
        }
        let removed = std::fs::remove_dir_all(&self.data);
        drop(removed);
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
