//! The controllers of all bridges, in one thread: each says hello, makes the bridge forward between
//! its two ports, and is silent but for the answers to the switch's probes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use channel::{
    Connection, ConnectionSettings, Event, Incoming, Link, Listener, Side, Tls, TlsFiles, pki,
};
use openflow::flow::{FlowMod, FlowModCommand};
use openflow::{Action, Field, Instruction, Match, Message, PortNo};
use tokio::task::LocalSet;

use crate::Result;

/// How long all may take to connect.
const DEADLINE: Duration = Duration::from_secs(60);

/// Where they listen, and how many are connected.
pub(crate) struct Controllers {
    options: String,
    up: Arc<AtomicUsize>,
}

impl Controllers {
    /// Listens in a thread that ends with the process.
    pub(crate) fn start(folder: &Path, is_tls: bool) -> Result<Self> {
        let tls = is_tls.then(|| certificates(folder)).transpose()?;
        let files = tls.as_ref().map(|(_, options)| options.clone()).unwrap_or_default();
        let tls = tls.map(|(tls, _)| tls);
        let up = Arc::new(AtomicUsize::new(0));
        let (chosen, port) = std::sync::mpsc::channel();
        let count = Arc::clone(&up);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("an event loop");
            LocalSet::new().block_on(&runtime, async move {
                let place = if tls.is_some() { "pssl:0:127.0.0.1" } else { "ptcp:0:127.0.0.1" };
                let place = place.parse().expect("an endpoint");
                let listener = Listener::bind(&place, tls.as_ref()).await.expect("a free port");
                // Who started this has gone where sending fails.
                let _ = chosen.send(listener.endpoint().clone().into_active());
                serve_all(&listener, &count).await;
            });
        });
        let endpoint = port.recv()?;
        Ok(Self { options: format!("controller = [\"{endpoint}\"]\n{files}"), up })
    }

    /// The switch's options for them.
    pub(crate) fn options(&self) -> &str {
        &self.options
    }

    /// How many are connected.
    pub(crate) fn up(&self) -> usize {
        self.up.load(Ordering::Relaxed)
    }

    /// Waits until so many are connected.
    pub(crate) fn wait_for(&self, count: usize) -> Result<()> {
        let end = Instant::now() + DEADLINE;
        while self.up() < count {
            if Instant::now() > end {
                return Err(format!("only {} of {count} bridges connected", self.up()).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

/// Keys and certificates of both sides: ours, and the switch's options for its own.
fn certificates(folder: &Path) -> Result<(Tls, String)> {
    let now = SystemTime::now();
    pki::init(folder, now)?;
    for name in ["controller", "switch"] {
        let request = pki::CertificateRequest { name: name.into(), hosts: Vec::new(), days: 30 };
        pki::issue(folder, &request, now)?;
    }
    let files = |name: &str| TlsFiles {
        private_key: folder.join(format!("{name}-privkey.pem")),
        certificate: folder.join(format!("{name}-cert.pem")),
        ca_cert: folder.join("cacert.pem"),
    };
    let TlsFiles { private_key, certificate, ca_cert } = files("switch");
    let options = format!(
        "private-key = \"{}\"\ncertificate = \"{}\"\nca-cert = \"{}\"\n",
        private_key.display(),
        certificate.display(),
        ca_cert.display(),
    );
    Ok((Tls::load(files("controller"), false)?, options))
}

async fn serve_all(listener: &Listener, up: &Arc<AtomicUsize>) {
    loop {
        match listener.accept().await {
            Ok(incoming) => {
                tokio::task::spawn_local(serve(incoming, Arc::clone(up)));
            }
            Err(error) => {
                eprintln!("accepting: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(incoming: Incoming, up: Arc<AtomicUsize>) {
    let stream = match incoming.open(|| ()).await {
        Ok(stream) => stream,
        Err(error) => return eprintln!("{error}"),
    };
    let settings =
        ConnectionSettings { probe_after: None, ..ConnectionSettings::new(Side::Controller) };
    let mut link = Link::new(stream, settings);
    loop {
        link.turn().await;
        while let Some(event) = link.connection().poll_event() {
            match event {
                Event::Up { .. } => {
                    join_ports(link.connection());
                    up.fetch_add(1, Ordering::Relaxed);
                }
                // That all are still there is looked at before the switch is ended.
                Event::Down(_) => {
                    up.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
                Event::Message { .. } | Event::Refused { .. } => {}
            }
        }
    }
}

/// What comes in by one port leaves by the other.
fn join_ports(connection: &mut Connection) {
    for (from, to) in [(1_u32, 2), (2, 1)] {
        let flow_mod = FlowMod {
            priority: 1,
            matching: Match::any().with(Field::InPort, from.into()),
            instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(to))])],
            ..FlowMod::new(FlowModCommand::Add)
        };
        if let Err(error) = connection.send(&Message::FlowMod(flow_mod)) {
            eprintln!("adding a flow entry: {error}");
        }
    }
}
