//! The options of `weir controller` that are REST's.

use crate::controller_events::ControllerEvents;
use crate::guard::Token;
use crate::server::{Error, RestLimits, RestOptions, RestServer, start};
use crate::services::{NetworkMap, RestNetwork};
use clap::Args;
use controller::apps::{ManagedRouter, ManagedRouters};
use controller::topology::Topology;
use controller::{AppList, Handle};
use std::path::PathBuf;
use std::sync::Arc;

/// Whether and where REST is served.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "REST")]
pub struct RestArgs {
    /// Serve REST here, the endpoints of Ryu's apps (described at /openapi.json), and at / a page
    /// to look at
    #[arg(long, value_name = "HOST:PORT")]
    pub rest: Option<String>,

    /// Demand the token in this file of every request (`Authorization: Bearer TOKEN`); without it
    /// REST is served on loopback addresses only
    #[arg(long, value_name = "FILE", requires = "rest")]
    pub rest_token_file: Option<PathBuf>,
}

impl RestArgs {
    /// The app that serves what `/router` sets, to stand before the others; none without REST.
    #[must_use]
    pub fn app(&self, routers: &Arc<ManagedRouters>) -> Option<AppList> {
        self.rest.as_ref()?;
        let routers = Arc::clone(routers);
        Some(AppList::one(move || ManagedRouter::new(Arc::clone(&routers))))
    }

    /// Serves a controller and what is discovered of its network, if asked to, until the server is
    /// dropped.
    ///
    /// # Errors
    /// When the token cannot be read, or the address cannot be served on.
    pub fn start(
        &self,
        handle: Handle,
        topology: Arc<Topology>,
        routers: Option<Arc<ManagedRouters>>,
    ) -> Result<Option<RestServer>, Error> {
        let Some(listen) = self.rest.clone() else { return Ok(None) };
        let token = self.rest_token_file.as_deref().map(Token::read).transpose();
        let token = token.map_err(Error::Token)?;
        let options = RestOptions { listen, token, limits: RestLimits::default() };
        let events = Box::new(ControllerEvents::from(&handle));
        let (datapaths, map) = (Arc::new(handle), Some(topology as Arc<dyn NetworkMap>));
        let network = RestNetwork { datapaths, map, events: Some(events), routers, apps: None };
        start(&options, network).map(Some)
    }
}
