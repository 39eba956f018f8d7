//! REST and the page beside apps in Python, as `weir controller --rest` serves them.
//!
//! It is served by a thread of its own, which asks the controller through a handle: an app that
//! blocks keeps no request waiting. It must never be reachable by other machines without a token,
//! which the crate `rest` sees to.

use std::path::Path;
use std::sync::Arc;

use controller::apps::{ManagedRouter, ManagedRouters};
use controller::topology::Topology;
use controller::{AppList, Handle};
use rest::{ControllerEvents, RestLimits, RestNetwork, RestOptions, RestServer, Token};

/// The REST service, and the routers that `/router` sets.
pub(crate) struct Web {
    options: RestOptions,
    routers: Arc<ManagedRouters>,
}

impl Web {
    /// `HOST:PORT`, and the file of the token where one is demanded.
    ///
    /// # Errors
    /// When the token cannot be read.
    pub(crate) fn new(listen: String, token_file: Option<&str>) -> Result<Self, String> {
        let token = token_file.map(|file| Token::read(Path::new(file))).transpose()?;
        let options = RestOptions { listen, token, limits: RestLimits::default() };
        Ok(Self { options, routers: Arc::default() })
    }

    /// The app that serves what `/router` sets, to stand before the others.
    pub(crate) fn app(&self) -> AppList {
        let routers = Arc::clone(&self.routers);
        AppList::one(move || ManagedRouter::new(Arc::clone(&routers)))
    }

    /// Serves until the server is dropped.
    ///
    /// # Errors
    /// When the address cannot be served on.
    pub(crate) fn start(
        &self,
        handle: Handle,
        topology: Option<&Arc<Topology>>,
    ) -> Result<RestServer, String> {
        let events = Box::new(ControllerEvents::from(&handle));
        let map = Some(topology.cloned().unwrap_or_default() as Arc<dyn rest::NetworkMap>);
        let routers = Some(Arc::clone(&self.routers));
        let network =
            RestNetwork { datapaths: Arc::new(handle), map, events: Some(events), routers };
        rest::start(&self.options, network).map_err(|error| error.to_string())
    }
}
