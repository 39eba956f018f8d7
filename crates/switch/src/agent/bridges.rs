//! All bridges of the process, by name. Bridges come and go while it runs; one is always there.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use tokio::sync::{Mutex, MutexGuard};

use super::Agent;
use crate::assemble::Assembly;
use crate::config::{Config, SwitchArgs};
use crate::worker::PortSerial;

/// Names that an error lists.
const NAMES_MAX: usize = 16;

/// The agents of all bridges, in the order in which they came; at least one.
pub(crate) struct Bridges {
    /// The one that has been there longest is apart, so that there always is one.
    first: RefCell<Rc<Agent>>,
    others: RefCell<Vec<Rc<Agent>>>,
    /// The maker of further ones.
    assembly: RefCell<Assembly>,
    /// Held while ports or bridges change: one change at a time.
    changing: Mutex<()>,
    /// Held while the file is read again and applied.
    reloading: Mutex<()>,
    last_serial: Cell<u64>,
    /// The arguments that the switch was started with, and the configuration that they gave last.
    loaded: RefCell<Option<(SwitchArgs, Config)>>,
}

impl Bridges {
    /// Of these agents; `None` when there are none.
    pub(crate) fn new(mut all: Vec<Rc<Agent>>, assembly: Assembly) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        Some(Self {
            first: RefCell::new(all.remove(0)),
            others: RefCell::new(all),
            assembly: RefCell::new(assembly),
            changing: Mutex::new(()),
            reloading: Mutex::new(()),
            last_serial: Cell::new(0),
            loaded: RefCell::default(),
        })
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

    /// The first one: the one whose counters have what concerns the process.
    pub(crate) fn first(&self) -> Rc<Agent> {
        Rc::clone(&self.first.borrow())
    }

    /// All that there are now.
    pub(crate) fn all(&self) -> Vec<Rc<Agent>> {
        std::iter::once(self.first()).chain(self.others.borrow().iter().cloned()).collect()
    }

    /// Adds a bridge.
    pub(crate) fn add(&self, agent: Rc<Agent>) {
        self.others.borrow_mut().push(agent);
    }

    /// Takes a bridge away; false where it is the only one, which stays.
    pub(crate) fn remove(&self, agent: &Rc<Agent>) -> bool {
        let mut others = self.others.borrow_mut();
        if !Rc::ptr_eq(&self.first(), agent) {
            others.retain(|other| !Rc::ptr_eq(other, agent));
        } else if others.is_empty() {
            return false;
        } else {
            self.first.replace(others.remove(0));
        }
        true
    }

    /// The one of this name, or the only one.
    ///
    /// # Errors
    /// There is none of that name, or several and none is named: with the names that there are.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Rc<Agent>, String> {
        let all = self.all();
        let why = match (name, &all[..]) {
            (None, [only]) => return Ok(Rc::clone(only)),
            (None, all) => format!("the switch has {} bridges; name one by --bridge", all.len()),
            (Some(name), all) => match all.iter().find(|agent| agent.config.name == name) {
                Some(agent) => return Ok(Rc::clone(agent)),
                None => format!("there is no bridge {name:?}"),
            },
        };
        let mut names: Vec<&str> =
            all.iter().take(NAMES_MAX).map(|agent| agent.config.name.as_str()).collect();
        if all.len() > NAMES_MAX {
            names.push("and so on, see weir ctl list-bridges");
        }
        Err(format!("{why}: {}", names.join(", ")))
    }
}
