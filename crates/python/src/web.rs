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
use rest::{
    AppRequest, AppResponse, AppRoute, AppRoutes, ControllerEvents, RestFuture, RestLimits,
    RestNetwork, RestOptions, RestServer, Token,
};
use tokio::sync::oneshot;

use crate::live::Live;
use crate::web_request::WebRequest;

/// The REST service, and the routers that `/router` sets.
pub(crate) struct Web {
    options: RestOptions,
    routes: Vec<AppRoute>,
    routers: Arc<ManagedRouters>,
}

impl Web {
    /// `HOST:PORT`, the file of the token where one is demanded, and method, path and act of the
    /// routes of apps.
    ///
    /// # Errors
    /// When the token cannot be read.
    pub(crate) fn new(
        listen: String,
        token_file: Option<&str>,
        routes: Vec<(String, String, String)>,
    ) -> Result<Self, String> {
        let token = token_file.map(|file| Token::read(Path::new(file))).transpose()?;
        let options = RestOptions { listen, token, limits: RestLimits::default() };
        let routes = routes.into_iter();
        let routes = routes.map(|(method, path, what)| AppRoute { method, path, what }).collect();
        Ok(Self { options, routes, routers: Arc::default() })
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
        live: &Arc<Live>,
    ) -> Result<RestServer, String> {
        let events = Box::new(ControllerEvents::from(&handle));
        let map = Some(topology.cloned().unwrap_or_default() as Arc<dyn rest::NetworkMap>);
        let routers = Some(Arc::clone(&self.routers));
        let apps = Apps { routes: self.routes.clone(), live: Arc::clone(live) };
        let apps = Some(Arc::new(apps) as Arc<dyn AppRoutes>).filter(|_| !self.routes.is_empty());
        let datapaths = Arc::new(handle);
        let network = RestNetwork { datapaths, map, events: Some(events), routers, apps };
        rest::start(&self.options, network).map_err(|error| error.to_string())
    }
}

/// The apps, whose thread answers by the queue of events.
struct Apps {
    routes: Vec<AppRoute>,
    live: Arc<Live>,
}

impl AppRoutes for Apps {
    fn routes(&self) -> &[AppRoute] {
        &self.routes
    }

    fn answer(&self, request: AppRequest) -> RestFuture<Option<AppResponse>> {
        let (sender, receiver) = oneshot::channel();
        self.live.queue.request(WebRequest::new(request, sender));
        Box::pin(async move { receiver.await.ok() })
    }
}
