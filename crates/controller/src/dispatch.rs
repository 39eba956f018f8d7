//! Which app sees an event: all in the order of the list until one stops it, or the one that asked.

use crate::app::App;
use crate::beat::Beat;
use crate::switch::Switch;
use std::sync::Arc;

/// The instances of one shard, in the order of the list.
pub(crate) struct Apps {
    apps: Vec<Box<dyn App>>,
    /// Where the thread is, for the watchdog.
    beat: Arc<Beat>,
}

impl Apps {
    pub(crate) fn new(apps: Vec<Box<dyn App>>, beat: Arc<Beat>) -> Self {
        beat.set_names(apps.iter().map(|app| app.name().to_owned()).collect());
        Self { apps, beat }
    }

    /// Runs a handler of each app, until one stops the event.
    #[inline]
    pub(crate) fn each(
        &mut self,
        sw: &mut Switch,
        mut handler: impl FnMut(&mut dyn App, &mut Switch),
    ) {
        let _entered = self.beat.enter(Some(sw.dpid()));
        for (place, app) in self.apps.iter_mut().enumerate() {
            self.beat.at(place);
            sw.enter(place);
            handler(app.as_mut(), sw);
            if sw.is_stopped() {
                break;
            }
        }
    }

    /// Runs a handler of the app at one place.
    pub(crate) fn one(
        &mut self,
        place: usize,
        sw: &mut Switch,
        handler: impl FnOnce(&mut dyn App, &mut Switch),
    ) {
        if let Some(app) = self.apps.get_mut(place) {
            let _entered = self.beat.enter(Some(sw.dpid()));
            self.beat.at(place);
            sw.enter(place);
            handler(app.as_mut(), sw);
        }
    }

    /// Runs a handler that has no switch, of every app.
    pub(crate) fn all(&mut self, mut handler: impl FnMut(&mut dyn App)) {
        let _entered = self.beat.enter(None);
        for (place, app) in self.apps.iter_mut().enumerate() {
            self.beat.at(place);
            handler(app.as_mut());
        }
    }
}
