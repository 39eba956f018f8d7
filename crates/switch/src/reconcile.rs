//! The one way to change what runs: a wanted configuration, and what is carried out of it.
//!
//! The configuration file, `weir ctl` and a database each edit the configuration that runs;
//! `reconcile` finds the difference, tries all that may fail, and applies it. What goes is gone
//! before anything comes, so that names, devices and listeners may move from one bridge to another.
//! One change at a time. The exception to trying first is a device or a listener that another one
//! has until it goes: where it cannot be opened then, a port is opened as it was.

mod apply;
mod bridges;
mod opening;
mod plan;
mod ports;

use std::fmt;
use std::rc::Rc;

use openflow::PortNo;

use crate::agent::Bridges;
use crate::config::{Config, difference};

pub(crate) use self::opening::{CONFIG, open_within};
use self::plan::Plan;

/// The fate of the rest where a part of a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Nothing is changed.
    Whole,
    /// The rest is carried out.
    Partial,
}

/// The fate of flow entries, groups and meters where controllers or the fail mode change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesRule {
    /// They stay.
    Kept,
    /// As with Open vSwitch: they go where the last controller goes, where the first one comes, and
    /// where the fail mode changes without any.
    Flushed,
}

/// The moment at which a new port enters the kernel tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierEntering {
    /// Before it forwards.
    First,
    /// It forwards without, and the change is done then; the caller has it enter.
    Later,
}

/// The manner of a change.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether parts may be carried out alone.
    pub acceptance: Acceptance,
    /// The fate of the tables.
    pub tables: TablesRule,
    /// The moment at which new ports enter the kernel tier.
    pub entering: TierEntering,
}

impl Manner {
    /// Of the file and of `weir ctl`.
    pub const OWN: Self = Self {
        acceptance: Acceptance::Whole,
        tables: TablesRule::Kept,
        entering: TierEntering::First,
    };

    /// Of a database of Open vSwitch.
    pub const DATABASE: Self = Self {
        acceptance: Acceptance::Partial,
        tables: TablesRule::Flushed,
        entering: TierEntering::Later,
    };
}

/// The part of a configuration that something is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A bridge, or the whole where none is named.
    Bridge,
    /// A port.
    Port(PortNo),
    /// A key, by its name in the file.
    Key(&'static str),
}

/// A part of a wanted configuration that is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The bridge's name; `None` for what is the process's.
    pub bridge: Option<String>,
    /// The part.
    pub item: Item,
    /// Why, with the remedy where there is one.
    pub why: String,
}

impl Refused {
    /// A refused edit of the whole.
    #[must_use]
    pub fn whole(why: String) -> Self {
        Self { bridge: None, item: Item::Bridge, why }
    }

    /// Something of a bridge.
    pub fn of(bridge: &str, item: Item, why: impl Into<String>) -> Self {
        Self { bridge: Some(bridge.to_owned()), item, why: why.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bridge) = &self.bridge {
            write!(f, "bridge {bridge}: ")?;
        }
        match &self.item {
            Item::Bridge => {}
            Item::Port(number) => write!(f, "port {number}: ")?,
            Item::Key(key) => write!(f, "{key}: ")?,
        }
        f.write_str(&self.why)
    }
}

/// A change that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The bridge's name.
    pub bridge: String,
    /// The act, as `port added`.
    pub change: &'static str,
    /// Its object, where it is not the bridge.
    pub what: Option<String>,
}

/// The course of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The changes, in their order.
    pub changes: Vec<Change>,
    /// The parts that are not carried out. Where all or nothing was asked for, only those that
    /// could not be tried before.
    pub refused: Vec<Refused>,
}

/// The switch that runs, for a part of the process that changes it, as one that follows a database.
/// It stays on the agent's thread.
pub struct RunningSwitch(Rc<Bridges>);

impl RunningSwitch {
    pub(crate) fn new(all: &Rc<Bridges>) -> Self {
        Self(Rc::clone(all))
    }

    /// All bridges, for parts of this crate.
    pub(crate) fn bridges(&self) -> &Rc<Bridges> {
        &self.0
    }

    /// The configuration that is carried out: without what was refused.
    #[must_use]
    pub fn config(&self) -> Config {
        self.0.config()
    }

    /// Carries out what `edit` makes of the configuration that runs. Done when everything holds:
    /// ports forward, listeners listen, and what goes is gone.
    ///
    /// # Errors
    /// The parts that are refused, where nothing was changed because of them.
    pub async fn reconcile(
        &self,
        manner: Manner,
        edit: impl FnOnce(&Config) -> Result<Config, Refused>,
    ) -> Result<Reconciled, Vec<Refused>> {
        reconcile(&self.0, manner, edit).await
    }
}

/// Carries out what `edit` makes of the configuration that runs. Done when everything holds: ports
/// forward, listeners listen, and what goes is gone.
///
/// # Errors
/// The parts that are refused, where nothing was changed because of them.
pub(crate) async fn reconcile(
    all: &Bridges,
    manner: Manner,
    edit: impl FnOnce(&Config) -> Result<Config, Refused>,
) -> Result<Reconciled, Vec<Refused>> {
    let _alone = all.change().await;
    let running = all.config();
    let wanted = edit(&running).map_err(|refused| vec![refused])?;
    let (changes, problems) = difference(&running, &wanted);
    let name = |index: Option<usize>| Some(wanted.bridges.get(index?)?.name.clone());
    let problems = problems.into_iter().map(|problem| Refused {
        bridge: name(problem.bridge),
        item: Item::Key(problem.key),
        why: problem.message,
    });
    let plan = Plan::prepare(all, manner, &running, changes, problems.collect()).await?;
    Ok(plan.apply().await)
}

/// The refusal of what needs tables.
pub(crate) fn no_tables() -> String {
    "the switch has no flow tables: it was started with --forward".to_owned()
}

/// The refusal of everything while a bridge ends.
pub(crate) fn gone() -> String {
    "the bridge or the switch is ending".to_owned()
}
