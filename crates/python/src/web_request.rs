//! A request for a route of an app, on its way through the queue of events.

use std::sync::Mutex;

use pyo3::prelude::{pyclass, pymethods};
use rest::{AppRequest, AppResponse};
use tokio::sync::oneshot;

use crate::lock::lock;

/// A request for a route of an app.
#[pyclass(frozen, module = "weir")]
pub(crate) struct WebRequest {
    request: AppRequest,
    sender: Mutex<Option<oneshot::Sender<AppResponse>>>,
}

impl WebRequest {
    pub(crate) fn new(request: AppRequest, sender: oneshot::Sender<AppResponse>) -> Self {
        Self { request, sender: Mutex::new(Some(sender)) }
    }
}

#[pymethods]
impl WebRequest {
    /// Method, path, the part behind the question mark, and body.
    #[getter]
    fn parts(&self) -> (&str, &str, &str, &[u8]) {
        let AppRequest { method, path, query, body } = &self.request;
        (method, path, query, body)
    }

    /// Answers it, once; its client may have left.
    fn answer(&self, status: u16, content_type: String, body: Vec<u8>) {
        if let Some(sender) = lock(&self.sender).take() {
            let _ = sender.send(AppResponse { status, content_type, body });
        }
    }
}
