//! Lines of apps in the log.

use crate::switch::Switch;

/// A switch cannot have what an app is made of, so the app leaves it alone.
pub(super) fn needs(sw: &Switch, app: &str, what: &str) {
    tracing::error!(
        "{app} needs {what}, but switch {} speaks {}: it gets no entries and forwards nothing",
        sw.dpid(),
        sw.version()
    );
}
