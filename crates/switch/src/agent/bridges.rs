//! All bridges of the process, by name. Bridges come and go while it runs.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::HashSet;
use std::rc::Rc;

use tokio::sync::{Mutex, MutexGuard, Notify};

use super::Agent;
use crate::assemble::Assembly;
use crate::config::{Config, SwitchArgs};
use crate::worker::PortSerial;

/// Names that an error lists.
const NAMES_MAX: usize = 16;

/// The agents of all bridges, in the order in which they came.
pub(crate) struct Bridges {
    all: RefCell<Vec<Rc<Agent>>>,
    /// The configuration of the process, without its bridges.
    process: Config,
    /// The maker of further bridges.
    assembly: RefCell<Assembly>,
    /// Held while ports or bridges change: one change at a time.
    changing: Mutex<()>,
    /// Held while the file is read again and applied.
    reloading: Mutex<()>,
    last_serial: Cell<u64>,
    /// Notified when the state of connections or ports of any bridge has changed.
    changed: Rc<Notify>,
    /// The arguments that the switch was started with, and the configuration that they gave last.
    loaded: RefCell<Option<(SwitchArgs, Config)>>,
}

impl Bridges {
    /// Of these agents, in a process of this configuration.
    pub(crate) fn new(all: Vec<Rc<Agent>>, config: &Config, assembly: Assembly) -> Self {
        let changed = Rc::new(Notify::new());
        all.iter().for_each(|agent| agent.set_observer(Rc::clone(&changed)));
        Self {
            changed,
            all: RefCell::new(all),
            process: Config { bridges: Vec::new(), ..config.clone() },
            assembly: RefCell::new(assembly),
            changing: Mutex::new(()),
            reloading: Mutex::new(()),
            last_serial: Cell::new(0),
            loaded: RefCell::default(),
        }
    }

    /// The configuration that is carried out: of the process, and of each bridge that there is.
    pub(crate) fn config(&self) -> Config {
        let all = self.all.borrow();
        let bridges = all.iter().map(|agent| (*agent.config()).clone()).collect();
        Config { bridges, ..self.process.clone() }
    }

    /// Waits until nobody else changes ports or bridges.
    pub(crate) async fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Waits until nobody else reloads.
    pub(crate) async fn reload(&self) -> MutexGuard<'_, ()> {
        self.reloading.lock().await
    }

    /// The maker of further bridges.
    pub(crate) fn assembly(&self) -> RefMut<'_, Assembly> {
        self.assembly.borrow_mut()
    }

    /// A serial that no port has had.
    pub(crate) fn fresh_serial(&self) -> PortSerial {
        self.last_serial.set(self.last_serial.get() + 1);
        PortSerial(self.last_serial.get())
    }

    /// The arguments and the configuration of the switch, for reloading.
    pub(crate) fn loaded(&self) -> Option<(SwitchArgs, Config)> {
        self.loaded.borrow().clone()
    }

    /// The switch may be reloaded by these arguments.
    pub(crate) fn begin_loaded(&self, args: SwitchArgs, config: Config) {
        self.loaded.replace(Some((args, config)));
    }

    /// The switch is set up by this configuration now.
    pub(crate) fn set_loaded(&self, config: Config) {
        if let Some((_, loaded)) = &mut *self.loaded.borrow_mut() {
            *loaded = config;
        }
    }

    /// The one that has been there longest, whose counters have what concerns no other bridge.
    pub(crate) fn first(&self) -> Option<Rc<Agent>> {
        self.all.borrow().first().cloned()
    }

    /// All that there are now.
    pub(crate) fn all(&self) -> Vec<Rc<Agent>> {
        self.all.borrow().clone()
    }

    /// Adds a bridge.
    pub(crate) fn add(&self, agent: Rc<Agent>) {
        agent.set_observer(Rc::clone(&self.changed));
        self.all.borrow_mut().push(agent);
    }

    /// Waits until the state of connections or ports has changed; for one task.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes bridges away.
    pub(crate) fn remove(&self, agents: &[Rc<Agent>]) {
        let names: HashSet<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        self.all.borrow_mut().retain(|agent| !names.contains(agent.name.as_str()));
    }

    /// The one of this name, or the only one.
    ///
    /// # Errors
    /// There is none of that name, or several and none is named: with the names that there are.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Rc<Agent>, String> {
        let all = self.all.borrow();
        let why = match (name, &all[..]) {
            (None, []) => {
                return Err("the switch has no bridge; add one by weir ctl add-bridge".to_owned());
            }
            (None, [only]) => return Ok(Rc::clone(only)),
            (None, all) => format!("the switch has {} bridges; name one by --bridge", all.len()),
            (Some(name), all) => match all.iter().find(|agent| agent.name == name) {
                Some(agent) => return Ok(Rc::clone(agent)),
                None => format!("there is no bridge {name:?}"),
            },
        };
        let mut names: Vec<&str> =
            all.iter().take(NAMES_MAX).map(|agent| agent.name.as_str()).collect();
        if all.len() > NAMES_MAX {
            names.push("and so on, see weir ctl list-bridges");
        }
        Err(format!("{why}: {}", names.join(", ")))
    }
}
