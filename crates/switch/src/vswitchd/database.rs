//! The connection to the database: rows come, configurations are carried out one at a time, and
//! what came of them is written.
//!
//! The switch goes on forwarding while the database is away, and is reconciled from zero after
//! every new connection. While another daemon has the lock this one has no bridges.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use channel::driver::now;
use channel::{Endpoint, Stream, Tls};
use netdev::sys::link::Rtnl;
use openflow::PortNo;
use openflow::port::PortStats;
use ovsdb::{DatabaseEvent, Session, Transaction};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until};

use super::Daemon;
use super::status::{Views, Written, gather_statistics, ofport};
use super::wanted::{Surroundings, Wanted, WantedPort};
use crate::agent::Bridges;
use crate::config::Config;
use crate::reconcile::{Manner, Refused, reconcile};

/// The lock that one daemon of a database has.
const LOCK: &str = "ovs_vswitchd";

/// Waits between two attempts to connect, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(1);

/// The silence of a server by the network until it is probed; a socket of the system needs none.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// Ports that could not be had are tried again so often: a device may come later than its row.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The state of devices is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Changes of the state that come within this time are written together.
const GATHER: Duration = Duration::from_millis(20);

/// Ports enter the kernel tier when no command has come for this time, and after the longest one at
/// any rate: what the kernel does for it would hold up the next port of a script.
const ENTER_AFTER: Duration = Duration::from_millis(100);
const ENTER_AFTER_MOST: Duration = Duration::from_secs(1);

/// The ring of the next port is made after this time: the database and `ovs-vsctl` have the
/// processors meanwhile, and a next one takes longer to start.
const SPARE_AFTER: Duration = Duration::from_millis(4);

/// A configuration that was carried out: what is not.
type Done = (Rc<Wanted>, Vec<Refused>);

/// Something that is under way.
type Work<T> = Option<Pin<Box<dyn Future<Output = T>>>>;

/// The database's client.
pub(super) struct Database {
    daemon: Rc<Daemon>,
    endpoint: Endpoint,
    tls: Option<Tls>,
    /// Remarks that are in the log.
    remarked: BTreeSet<String>,
    is_locked_out: bool,
    /// The ports that there are: bridge, number and name.
    standing: BTreeSet<(String, PortNo, String)>,
    /// When ports enter the kernel tier, if any do.
    entering: Option<EnteringTime>,
}

/// The time at which ports enter the kernel tier.
#[derive(Clone, Copy)]
struct EnteringTime {
    /// If no command comes before.
    in_pause: Instant,
    /// At any rate.
    latest: Instant,
}

impl EnteringTime {
    /// A command is carried out, perhaps after others since which ports wait.
    fn after(earlier: Option<Self>, now: Instant) -> Self {
        let latest = earlier.map_or(now + ENTER_AFTER_MOST, |earlier| earlier.latest);
        Self { in_pause: latest.min(now + ENTER_AFTER), latest }
    }

    /// The time as it is while a command is carried out, or none is.
    fn get(self, is_configuring: bool) -> Instant {
        if is_configuring { self.latest } else { self.in_pause }
    }
}

/// The state of one connection.
struct Connected {
    session: Session,
    stream: Stream,
    written: Written,
    /// Rows have changed since the configuration that is carried out.
    has_changed: bool,
    configuring: Work<Done>,
    counting: Work<HashMap<(String, PortNo), PortStats>>,
    retry_at: Option<Instant>,
    look_at: Instant,
    count_at: Instant,
    refused: Vec<Refused>,
}

impl Database {
    pub(super) fn new(daemon: Rc<Daemon>, endpoint: Endpoint, tls: Option<Tls>) -> Self {
        let (remarked, standing) = (BTreeSet::new(), BTreeSet::new());
        Self { daemon, endpoint, tls, remarked, is_locked_out: false, standing, entering: None }
    }

    /// Connects and serves again and again, for ever.
    pub(super) async fn run(mut self) {
        let mut wait = RETRY_FIRST;
        let mut is_reported = false;
        loop {
            match Stream::connect(&self.endpoint, self.tls.as_ref()).await {
                Ok(stream) => {
                    tracing::info!(target: "reconnect", "{}: connected", self.endpoint);
                    is_reported = false;
                    let since = Instant::now();
                    let why = self.serve(stream).await;
                    // A server that ends each connection at once is none.
                    let is_short = since.elapsed() < RETRY_MOST;
                    wait = if is_short { (wait * 2).min(RETRY_MOST) } else { RETRY_FIRST };
                    let name = &self.endpoint;
                    tracing::info!(target: "reconnect", "{name}: connection closed ({why})");
                }
                Err(error) if !is_reported => {
                    let text = format!("connection attempt failed ({error})");
                    tracing::info!(target: "reconnect", "{}: {text}", self.endpoint);
                    is_reported = true;
                }
                Err(_) => wait = (wait * 2).min(RETRY_MOST),
            }
            sleep(wait).await;
        }
    }

    /// Serves one connection; the reason of its end.
    async fn serve(&mut self, stream: Stream) -> String {
        // The kernel ends a connection to a socket of this machine when the server goes.
        let is_local = matches!(self.endpoint, Endpoint::Unix(_));
        let probe_after = (!is_local).then_some(PROBE_AFTER);
        let mut on = Connected {
            session: Session::new(LOCK, probe_after, now()),
            stream,
            written: Written::default(),
            has_changed: false,
            configuring: None,
            counting: None,
            retry_at: None,
            look_at: Instant::now() + LOOK_EVERY,
            count_at: Instant::now(),
            refused: Vec::new(),
        };
        let mut bytes = vec![0; 1 << 16];
        loop {
            let output = on.session.take_output();
            if let Err(error) = on.stream.write_all(&output).await {
                return error.to_string();
            }
            if let Err(why) = self.turn(&mut on, &mut bytes).await {
                // What is being carried out is not left half done.
                if let Some(configuring) = on.configuring.take() {
                    configuring.await;
                }
                self.enter_tier();
                return why;
            }
        }
    }

    /// Waits for one thing and deals with it.
    async fn turn(&mut self, on: &mut Connected, bytes: &mut [u8]) -> Result<(), String> {
        let tick_at = on.session.next_tick().map(Instant::from_std);
        let enter_at = self.entering.map(|time| time.get(on.configuring.is_some()));
        let may_write = on.session.is_locked() && on.configuring.is_none();
        tokio::select! {
            read = on.stream.read(bytes) => self.received(on, read, bytes),
            done = ready(&mut on.configuring) => {
                on.configuring = None;
                self.configured(on, done);
                Ok(())
            }
            counts = ready(&mut on.counting) => {
                on.counting = None;
                let wanted = Rc::clone(&self.daemon.wanted.borrow());
                let mut transaction = Transaction::default();
                on.written.statistics(&mut transaction, &wanted, &counts);
                on.count_at = Instant::now() + wanted.stats_every;
                on.transact(transaction);
                Ok(())
            }
            // Counts are as of the time that the tests have made.
            () = self.daemon.warped.notified() => {
                on.count_at = Instant::now();
                Ok(())
            }
            () = self.daemon.bridges.changed() => {
                on.look_at = on.look_at.min(Instant::now() + GATHER);
                Ok(())
            }
            () = at(tick_at) => on.session.tick(now()).map_err(|error| error.to_string()),
            () = at(on.retry_at), if may_write => {
                on.retry_at = None;
                self.configure(on);
                Ok(())
            }
            () = at(enter_at) => {
                self.enter_tier();
                Ok(())
            }
            () = sleep_until(on.look_at), if may_write => {
                on.look_at = Instant::now() + LOOK_EVERY;
                self.write_state(on);
                Ok(())
            }
            () = sleep_until(on.count_at), if may_write && on.counting.is_none() => {
                let bridges = Rc::clone(&self.daemon.bridges);
                on.counting = Some(Box::pin(async move { gather_statistics(&bridges).await }));
                Ok(())
            }
        }
    }

    fn received(
        &mut self,
        on: &mut Connected,
        read: io::Result<usize>,
        bytes: &[u8],
    ) -> Result<(), String> {
        let count = read.map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("End of file".to_owned());
        }
        let bytes = bytes.get(..count).unwrap_or_default();
        let events = on.session.receive(bytes, now()).map_err(|error| error.to_string())?;
        for event in events {
            match event {
                DatabaseEvent::Changed | DatabaseEvent::Locked => on.has_changed = true,
                DatabaseEvent::LockedOut => self.locked_out(on),
                DatabaseEvent::Transacted(_, outcome) => {
                    if let Err(error) = outcome {
                        tracing::warn!(%error, "the database refuses what was written");
                        on.written.forget();
                        on.retry_at = Some(Instant::now() + TRY_AGAIN);
                    }
                }
            }
        }
        if on.session.is_locked() {
            self.is_locked_out = false;
            if on.has_changed && on.configuring.is_none() {
                self.configure(on);
            }
        }
        Ok(())
    }

    /// Another daemon has the lock: it has the bridges.
    fn locked_out(&mut self, on: &mut Connected) {
        if !std::mem::replace(&mut self.is_locked_out, true) {
            tracing::error!(
                target: "bridge",
                "another ovs-vswitchd process is running, disabling this process (pid {}) until it \
                 goes away",
                std::process::id()
            );
        }
        on.written.forget();
        if on.configuring.is_none() {
            on.configuring = Some(Box::pin(carry_out(Rc::clone(&self.daemon), Wanted::default())));
        }
    }

    /// Begins to carry out what the rows ask for now.
    fn configure(&mut self, on: &mut Connected) {
        let Some(replica) = on.session.replica() else { return };
        on.has_changed = false;
        let running = self.daemon.bridges.config();
        let Daemon { base, folders, dummies, .. } = &*self.daemon;
        let (run_folder, dummies) = (folders.run.as_path(), *dummies);
        let around =
            Surroundings { running: &running, base, run_folder, dummies, speed_bps: &speed_bps };
        let wanted = Wanted::of(replica, &around);
        for remark in wanted.remarks.difference(&self.remarked) {
            tracing::info!("{remark}");
        }
        self.remarked.clone_from(&wanted.remarks);
        on.configuring = Some(Box::pin(carry_out(Rc::clone(&self.daemon), wanted)));
    }

    /// A configuration is carried out: it is written, and the next one begins.
    fn configured(&mut self, on: &mut Connected, (wanted, refused): Done) {
        let before = self.daemon.wanted.replace(Rc::clone(&wanted));
        for agent in self.daemon.bridges.all() {
            let mut remarks = wanted.remarks_of(&agent.name);
            let is_of_it = |one: &&Refused| one.bridge.as_deref() == Some(&*agent.name);
            remarks.extend(refused.iter().filter(is_of_it).map(ToString::to_string));
            agent.set_remarks(remarks);
        }
        for one in wanted.unset.difference(&before.unset) {
            tracing::warn!("{one}");
        }
        let have_ports_come = self.log_changes(&before, &wanted);
        if on.session.is_locked() && wanted.root.is_none() {
            self.daemon.report_ready();
        }
        if !on.session.is_locked() || wanted.root.is_none() {
            if on.session.is_locked() && on.has_changed {
                self.configure(on);
            }
            return;
        }
        for one in refused.iter().filter(|one| !on.refused.contains(one)) {
            tracing::warn!("{one}");
        }
        let mut transaction = Transaction::default();
        on.written.configured(&mut transaction, &self.daemon.bridges, &wanted, &refused);
        let is_whole = refused.is_empty() && wanted.refused.is_empty();
        on.retry_at = (!is_whole).then(|| Instant::now() + TRY_AGAIN);
        on.refused = refused;
        on.transact(transaction);
        self.daemon.report_ready();
        // A port has statistics when its command returns, or a moment later.
        if have_ports_come {
            on.count_at = Instant::now();
        }
        self.follow_up();
        if on.has_changed {
            self.configure(on);
        }
    }

    /// Prepares what nobody has to wait for: `ovs-vsctl` returns before ports enter the kernel
    /// tier, and the next port finds a ring.
    fn follow_up(&mut self) {
        self.entering = Some(EnteringTime::after(self.entering, Instant::now()));
        tokio::task::spawn_local(async {
            sleep(SPARE_AFTER).await;
            // Without it the next port waits for the kernel. Where the runtime ends none comes.
            let made = tokio::task::spawn_blocking(netdev::keep_spare_ring).await;
            if let Ok(Err(error)) = made {
                tracing::debug!(%error, "no ring is kept for the next port");
            }
        });
    }

    /// Has ports enter the kernel tier that forward already.
    fn enter_tier(&mut self) {
        self.entering = None;
        let mut agents = self.daemon.bridges.all();
        agents.retain(|agent| agent.bridge.has_ports_outside_tier());
        for agent in agents {
            tokio::task::spawn_local(async move {
                // Where a worker has gone the switch ends.
                let _ = agent.bridge.bring_in().await;
            });
        }
    }

    /// Logs changes of interfaces and bridges, in the words that scripts look for; gives whether
    /// ports have come.
    fn log_changes(&mut self, before: &Wanted, now: &Wanted) -> bool {
        let views = Views::of(&self.daemon.bridges);
        let standing = now.ports.iter().filter(|port| views.get(port).is_some());
        let key = |port: &WantedPort| (port.bridge.clone(), port.number, port.name.clone());
        let new: BTreeSet<_> = standing.map(key).collect();
        let old = std::mem::replace(&mut self.standing, new);
        for (bridge, number, name) in old.difference(&self.standing) {
            let number = ofport(*number);
            let text = format!("deleted interface {name} on port {number}");
            tracing::info!(target: "bridge", "bridge {bridge}: {text}");
        }
        let mut have_ports_come = false;
        for (bridge, number, name) in self.standing.difference(&old) {
            have_ports_come = true;
            let number = ofport(*number);
            let text = format!("added interface {name} on port {number}");
            tracing::info!(target: "bridge", "bridge {bridge}: {text}");
        }
        for bridge in now.bridges.keys().filter(|name| !before.bridges.contains_key(*name)) {
            if let Ok(agent) = self.daemon.bridges.find(Some(bridge)) {
                let id = agent.bridge.dpid();
                tracing::info!(target: "bridge", "bridge {bridge}: using datapath ID {id}");
            }
        }
        have_ports_come
    }

    fn write_state(&mut self, on: &mut Connected) {
        let wanted = Rc::clone(&self.daemon.wanted.borrow());
        let mut transaction = Transaction::default();
        on.written.state(&mut transaction, &self.daemon.bridges, &wanted);
        on.transact(transaction);
    }
}

impl Connected {
    fn transact(&mut self, transaction: Transaction) {
        if !transaction.is_empty() {
            self.session.transact(transaction);
        }
    }
}

/// The speed of a device of the kernel in bits per second, where it has one.
fn speed_bps(name: &str) -> Option<u64> {
    let path = Path::new("/sys/class/net").join(name).join("speed");
    let text = files::read_text(&path, 64).ok()?;
    let mbps: u64 = text.trim().parse().ok().filter(|mbps| *mbps > 0)?;
    mbps.checked_mul(1_000_000)
}

/// Done with the work, and never where there is none.
async fn ready<T>(work: &mut Work<T>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Done at a time, and never where there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Carries a configuration out.
async fn carry_out(daemon: Rc<Daemon>, mut wanted: Wanted) -> Done {
    let bridges = std::mem::take(&mut wanted.configs);
    let edit = |running: &Config| Ok(Config { bridges, ..running.clone() });
    let refused = match reconcile(&daemon.bridges, Manner::DATABASE, edit).await {
        Ok(outcome) => outcome.refused,
        Err(refused) => refused,
    };
    for agent in daemon.bridges.all() {
        let socket = daemon.folders.run.join(format!("{}.snoop", agent.name));
        agent.listen_for_snoopers(&Endpoint::PassiveUnix(socket)).await;
    }
    note_numbers(&daemon.bridges, &mut wanted.ports);
    wanted.unset = set_devices(&wanted.ports);
    wanted.remarks.extend(wanted.unset.iter().cloned());
    (Rc::new(wanted), refused)
}

/// Notes the numbers that ports have: one that could not get the wanted number has kept its own.
fn note_numbers(bridges: &Bridges, ports: &mut [WantedPort]) {
    let mut numbers = HashMap::new();
    for agent in bridges.all() {
        for port in &agent.config().ports {
            numbers.insert((agent.name.clone(), port.spec.name().to_owned()), port.number);
        }
    }
    for port in ports {
        if let Some(number) = numbers.get(&(port.bridge.clone(), port.name.clone())) {
            port.number = *number;
        }
    }
}

/// Gives devices the addresses and MTUs that are asked for; those that do not take them.
fn set_devices(ports: &[WantedPort]) -> BTreeSet<String> {
    let mut unset = BTreeSet::new();
    let mut asked = ports.iter().filter(|port| port.mac.is_some() || port.mtu.is_some()).peekable();
    if asked.peek().is_none() {
        return unset;
    }
    let Ok(rtnl) = Rtnl::open() else { return unset };
    for port in asked {
        let Ok(link) = rtnl.link(&port.name) else { continue };
        let mac = port.mac.filter(|mac| mac.0 != link.mac);
        let mtu = port.mtu.filter(|mtu| *mtu != link.mtu);
        let set_mac = mac.map_or(Ok(()), |mac| rtnl.set_mac(&port.name, mac.0));
        let set_mtu = mtu.map_or(Ok(()), |mtu| rtnl.set_mtu(&port.name, mtu));
        if let Err(error) = set_mac.and(set_mtu) {
            unset.insert(format!("Bridge {}: {error}", port.bridge));
        }
    }
    unset
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::{ENTER_AFTER, ENTER_AFTER_MOST, EnteringTime};

    #[test]
    fn ports_enter_the_kernel_tier_in_a_pause_or_after_a_second() {
        let first = Instant::now();
        let time = EnteringTime::after(None, first);
        assert_eq!(time.get(false), first + ENTER_AFTER);
        // A command that is carried out puts it off, but not for longer than that.
        let latest = first + ENTER_AFTER_MOST;
        assert_eq!(time.get(true), latest);
        let last = latest - ENTER_AFTER / 2;
        let mut time = Some(time);
        for command in 1..=9 {
            time = Some(EnteringTime::after(time, first + ENTER_AFTER * command));
        }
        let time = EnteringTime::after(time, last);
        assert_eq!((time.get(false), time.get(true)), (latest, latest));
        // Those that come after that wait anew.
        assert_eq!(EnteringTime::after(None, latest).get(false), latest + ENTER_AFTER);
    }
}
