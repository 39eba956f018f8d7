//! The apps of one controller in their order, as a factory: each shard has instances of its own.
//!
//! It must never be asked for instances after the start: state that instances share is what their
//! factory gives them.

use crate::app::App;
use std::fmt;
use std::sync::Arc;

/// Makes the instances of one shard.
type AppFactory = dyn Fn() -> Vec<Box<dyn App>> + Send + Sync;

/// The apps that a controller runs, in the order in which they see events.
///
/// ```
/// use controller::apps::{Hub, LearningSwitch};
/// use controller::{App, AppList};
/// use std::sync::{Arc, Mutex};
///
/// /// Counts packets over all shards.
/// struct Counting(Arc<Mutex<u64>>);
/// impl App for Counting {
///     fn packet_in(&mut self, _: &mut controller::Switch, _: &controller::PacketIn) {
///         *self.0.lock().unwrap() += 1;
///     }
/// }
///
/// let packets = Arc::new(Mutex::new(0));
/// let counted = packets.clone();
/// let apps = AppList::one(move || Counting(counted.clone())).then(AppList::one(|| Hub));
/// ```
#[derive(Clone)]
pub struct AppList {
    factory: Arc<AppFactory>,
}

impl AppList {
    /// As many apps as the xids of their messages can tell apart.
    pub const APPS_MAX: usize = 32;

    /// Apps that are made together; `factory` is called once for each shard.
    #[must_use]
    pub fn new(factory: impl Fn() -> Vec<Box<dyn App>> + Send + Sync + 'static) -> Self {
        Self { factory: Arc::new(factory) }
    }

    /// One app; `make` is called once for each shard.
    #[must_use]
    pub fn one<A: App + 'static>(make: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self::new(move || vec![Box::new(make())])
    }

    /// These apps and, behind them, those of `others`.
    #[must_use]
    pub fn then(self, others: Self) -> Self {
        Self::new(move || {
            let mut apps = self.make();
            apps.extend(others.make());
            apps
        })
    }

    /// The instances of one shard.
    pub(crate) fn make(&self) -> Vec<Box<dyn App>> {
        (self.factory)()
    }
}

impl fmt::Debug for AppList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppList")
    }
}
