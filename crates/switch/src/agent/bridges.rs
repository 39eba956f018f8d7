//! All bridges of the process, by name.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::{Mutex, MutexGuard};

use super::Agent;
use crate::config::{Config, SwitchArgs};
use crate::worker::PortSerial;

/// Names that an error lists.
const NAMES_MAX: usize = 16;

/// The agents of all bridges, in the order of the configuration; at least one.
pub(crate) struct Bridges {
    first: Rc<Agent>,
    all: Vec<Rc<Agent>>,
    by_name: BTreeMap<String, usize>,
    /// Held by who changes ports or bridges: one at a time.
    changing: Mutex<()>,
    last_serial: Cell<u64>,
    /// The arguments that the switch was started with, and the configuration that they gave last.
    loaded: RefCell<Option<(SwitchArgs, Config)>>,
}

impl Bridges {
    /// Of these agents; `None` when there are none.
    pub(crate) fn new(all: Vec<Rc<Agent>>) -> Option<Self> {
        let by_name = all.iter().zip(0..).map(|(agent, index)| (agent.config.name.clone(), index));
        let by_name = by_name.collect();
        let (changing, last_serial) = (Mutex::new(()), Cell::new(0));
        let (first, loaded) = (Rc::clone(all.first()?), RefCell::default());
        Some(Self { first, all, by_name, changing, last_serial, loaded })
    }

    /// Waits until nobody else changes ports or bridges.
    pub(crate) async fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// A serial that no port has had.
    pub(crate) fn fresh_serial(&self) -> PortSerial {
        self.last_serial.set(self.last_serial.get() + 1);
        PortSerial(self.last_serial.get())
    }

    /// What the switch was started with and is set up by, for reloading.
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

    /// The first one: the one that stands for the process.
    pub(crate) fn first(&self) -> &Rc<Agent> {
        &self.first
    }

    /// All.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<Agent>> {
        self.all.iter()
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The one of this name, or the only one.
    ///
    /// # Errors
    /// There is none of that name, or several and none is named: with the names that there are.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<&Rc<Agent>, String> {
        let why = match name {
            None if self.all.len() == 1 => return Ok(&self.first),
            None => {
                format!("the switch has {} bridges; name one by --bridge", self.all.len())
            }
            Some(name) => match self.by_name.get(name).and_then(|index| self.all.get(*index)) {
                Some(agent) => return Ok(agent),
                None => format!("there is no bridge {name:?}"),
            },
        };
        let mut names: Vec<&str> =
            self.all.iter().take(NAMES_MAX).map(|agent| agent.config.name.as_str()).collect();
        if self.all.len() > NAMES_MAX {
            names.push("and so on, see weir ctl list-bridges");
        }
        Err(format!("{why}: {}", names.join(", ")))
    }
}
