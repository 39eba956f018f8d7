//! Serves HTTP within bounds, on a thread of its own: REST, the page of a campaign, statistics.
//!
//! A client costs a bounded number of connections, bytes and seconds, and none keeps the others
//! out: a connection that finds all places taken gets that of another, in the order of the module
//! `places`. A `hyper` service is served; this crate knows no path and no answer.
#![forbid(unsafe_code)]

mod places;

pub use places::ClientPlace;

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use places::{Answering, Places};
use tokio::sync::oneshot;
use tokio_io_timeout::TimeoutStream;

/// Wait after a connection that could not be accepted: others are to end theirs.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Bounds on the cost of clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time.
    pub connections: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Time that a client may take for the head of a request, and to read on.
    pub patience: Duration,
}

/// A server on a thread of its own, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Runs what `serve` makes of the listener, on a thread of that name. It is dropped at the end,
    /// and so is all that it has spawned.
    ///
    /// # Errors
    /// When the listener cannot be used, or the system gives no thread or runtime.
    pub fn start<F: Future<Output = ()>>(
        name: &str,
        listener: TcpListener,
        serve: impl FnOnce(tokio::net::TcpListener) -> F + Send + 'static,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // An error here is the end of the sender, which asks for the same.
                    _ = stopped => {}
                    () = serve(listener) => {}
                }
            });
            // What reads or draws beside it would be waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been logged and concerns nobody else.
            drop(thread.join());
        }
    }
}

/// Serves a listener without end.
pub async fn serve<S, B>(listener: tokio::net::TcpListener, limits: Limits, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let places = Places::new(limits.connections, limits.patience);
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely.
                tracing::debug!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let place = Arc::new(places.take(peer.ip()).await);
        // An answer leaves in one piece; waiting for more would only delay it.
        drop(stream.set_nodelay(true));
        let (service, client) = (service.clone(), ClientPlace::new(&place));
        let service = service_fn(move |mut request: Request<Incoming>| {
            let answering = Answering::new(client.clone());
            request.extensions_mut().insert(client.clone());
            let answer = service.call(request);
            async move {
                let answer = answer.await?;
                // It lasts until all of the body has been sent.
                Ok::<_, Infallible>(answer.map(move |body| {
                    body.map_frame(move |frame| {
                        answering.goes_on();
                        frame
                    })
                }))
            }
        });
        tokio::spawn(async move {
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(limits.patience));
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.patience)
                .max_buf_size(limits.head_bytes)
                .serve_connection(TokioIo::new(Box::pin(stream)), service);
            tokio::select! {
                () = place.lost() => {}
                // What goes wrong on a connection is its client's business.
                ended = connection => drop(ended),
            }
        });
    }
}
