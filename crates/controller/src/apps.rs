//! The ready apps: one file and one line here each.
//!
//! The line is what the command line, its help and the runtime know of an app.

mod hub;
mod idle;
mod learning_switch;

pub use hub::Hub;
pub use idle::Idle;
pub use learning_switch::LearningSwitch;

use crate::app::App;
use crate::app_list::AppList;

/// A ready app by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum AppName {
    /// Every packet goes to the controller, which has it sent out of all other ports
    Hub,
    /// Does nothing: switches are driven from outside, over REST for example
    Idle,
    /// Learns where addresses are and installs flow entries, so that few packets come
    LearningSwitch,
}

impl AppName {
    /// A new app of this name.
    #[must_use]
    pub fn make(self) -> Box<dyn App> {
        match self {
            Self::Hub => Box::new(Hub),
            Self::Idle => Box::new(Idle),
            Self::LearningSwitch => Box::new(LearningSwitch::default()),
        }
    }

    /// The apps of these names, in their order.
    #[must_use]
    pub fn list(names: &[Self]) -> AppList {
        let names = names.to_vec();
        AppList::new(move || names.iter().map(|name| name.make()).collect())
    }
}
