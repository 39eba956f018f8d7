//! Order in which apps see an event: that of the list until one stops it, or only the app that has
//! sent the request.

use crate::app::App;
use crate::handler_progress::HandlerProgress;
use crate::switch::Switch;
use std::sync::Arc;

/// The instances of one shard, in the order of the list.
pub(crate) struct Apps {
    apps: Vec<Box<dyn App>>,
    /// Progress of the thread, for the watchdog.
    progress: Arc<HandlerProgress>,
}

impl Apps {
    pub(crate) fn new(apps: Vec<Box<dyn App>>, progress: Arc<HandlerProgress>) -> Self {
        progress.set_names(apps.iter().map(|app| app.name().to_owned()).collect());
        Self { apps, progress }
    }

    /// Runs a handler of each app, until one stops the event.
    #[inline]
    pub(crate) fn each(
        &mut self,
        sw: &mut Switch,
        mut handler: impl FnMut(&mut dyn App, &mut Switch),
    ) {
        let _entered = self.progress.enter(Some(sw.dpid()));
        for (place, app) in self.apps.iter_mut().enumerate() {
            self.progress.at(place);
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
            let _entered = self.progress.enter(Some(sw.dpid()));
            self.progress.at(place);
            sw.enter(place);
            handler(app.as_mut(), sw);
        }
    }

    /// Runs a handler that has no switch, of every app.
    pub(crate) fn all(&mut self, mut handler: impl FnMut(&mut dyn App)) {
        let _entered = self.progress.enter(None);
        for (place, app) in self.apps.iter_mut().enumerate() {
            self.progress.at(place);
            handler(app.as_mut());
        }
    }
}
