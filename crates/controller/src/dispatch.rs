//! Which app sees an event: all in the order of the list until one stops it, or the one that asked.

use crate::app::App;
use crate::switch::Switch;

/// The instances of one shard, in the order of the list.
pub(crate) struct Apps(Vec<Box<dyn App>>);

impl Apps {
    pub(crate) fn new(apps: Vec<Box<dyn App>>) -> Self {
        Self(apps)
    }

    /// Runs a handler of each app, until one stops the event.
    #[inline]
    pub(crate) fn each(
        &mut self,
        sw: &mut Switch,
        mut handler: impl FnMut(&mut dyn App, &mut Switch),
    ) {
        for (place, app) in self.0.iter_mut().enumerate() {
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
        if let Some(app) = self.0.get_mut(place) {
            sw.enter(place);
            handler(app.as_mut(), sw);
        }
    }

    /// Runs a handler that has no switch, of every app.
    pub(crate) fn all(&mut self, mut handler: impl FnMut(&mut dyn App)) {
        for app in &mut self.0 {
            handler(app.as_mut());
        }
    }
}
