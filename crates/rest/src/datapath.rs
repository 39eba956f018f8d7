//! The controller as REST needs it: its switches, an answer to a question, changes that are done or
//! refused.
//!
//! The trait keeps the endpoints apart from threads and sockets, so that they run in a test against
//! a datapath in memory. A question is answered whole or not at all: Ryu gave what had come within
//! a second, without a sign that more was on its way.

use crate::problem::Problem;
use axum::http::StatusCode;
use openflow::message::{
    ErrorMessage, Features, MultipartReplyBody, MultipartRequest, MultipartRequestBody, QueueConfig,
};
use openflow::port::PortDesc;
use openflow::{DatapathId, Message, PortNo, QueueId, Version, Xid};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Something that is awaited.
pub type RestFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A switch that is ready.
#[derive(Clone, Debug)]
pub struct ServedSwitch {
    /// Its datapath id.
    pub dpid: DatapathId,
    /// The version spoken with it.
    pub version: Version,
    /// Its features reply.
    pub features: Arc<Features>,
    /// Its ports, as they are now.
    pub ports: Vec<PortDesc>,
}

/// Why a switch did not do or answer something.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// No such switch is ready, or its connection ended meanwhile.
    #[error("no switch {0} is connected")]
    NoSwitch(DatapathId),
    /// Messages for it wait already, up to the bound.
    #[error("switch {0} does not read what is sent to it")]
    Full(DatapathId),
    /// It answered with an error.
    #[error("the switch refuses message {index}")]
    Refused {
        /// The place of the message.
        index: usize,
        /// The transaction number of that message, where it is known.
        xid: Option<Xid>,
        /// The error.
        error: ErrorMessage,
    },
    /// The version has no words for the message.
    #[error("{0}")]
    NotEncodable(String),
    /// It did not answer in time.
    #[error("the switch has not answered within {} s", .0.as_secs())]
    Silent(Duration),
    /// It answered, but not the question.
    #[error("{0}")]
    Odd(String),
    /// The controller is ending.
    #[error("the controller is ending")]
    Gone,
}

/// The switches of a controller.
pub trait ServedSwitches: Send + Sync + 'static {
    /// All that are ready.
    fn all(&self) -> Vec<ServedSwitch>;
    /// One of them.
    fn get(&self, dpid: DatapathId) -> Option<ServedSwitch>;
    /// The answer to a message, all parts of it.
    fn request(&self, dpid: DatapathId, message: Message) -> RestFuture<Result<Message, Failure>>;
    /// Messages that have no answer; done when a barrier behind them is answered and none of them
    /// was refused.
    fn apply(&self, dpid: DatapathId, messages: Vec<Message>) -> RestFuture<Result<(), Failure>>;
}

/// The switch that a request is about.
pub(crate) struct Target {
    pub(crate) datapath: ServedSwitch,
    datapaths: Arc<dyn ServedSwitches>,
}

impl Target {
    /// The switch of a datapath id.
    ///
    /// # Errors
    /// When none is connected.
    pub(crate) fn of(
        datapaths: &Arc<dyn ServedSwitches>,
        dpid: DatapathId,
    ) -> Result<Self, Problem> {
        let datapath = datapaths.get(dpid);
        let datapath =
            datapath.ok_or_else(|| Problem::not_found(format!("no switch {dpid} is connected")))?;
        Ok(Self { datapath, datapaths: Arc::clone(datapaths) })
    }

    /// The version spoken with it.
    pub(crate) fn version(&self) -> Version {
        self.datapath.version
    }

    /// The answer to a message.
    ///
    /// # Errors
    /// When there is none, or it is an error.
    pub(crate) async fn request(&self, message: Message) -> Result<Message, Problem> {
        let answer = self.datapaths.request(self.datapath.dpid, message).await;
        answer.map_err(|failure| self.problem(&failure))
    }

    /// The answer to a multipart request.
    ///
    /// # Errors
    /// As [`Target::request`].
    pub(crate) async fn ask(
        &self,
        body: MultipartRequestBody,
    ) -> Result<MultipartReplyBody, Problem> {
        let request = Message::MultipartRequest(MultipartRequest { more: false, body });
        let answer = self.request(request).await?;
        let Message::MultipartReply(reply) = answer else { return Err(odd_answer(&answer)) };
        Ok(reply.body)
    }

    /// The queues of a port; of all ports by [`PortNo::ANY`], where the version has that.
    ///
    /// # Errors
    /// As [`Target::request`].
    pub(crate) async fn queues(&self, port: PortNo) -> Result<QueueConfig, Problem> {
        if self.version().has_queue_desc() {
            let body = MultipartRequestBody::QueueDesc { port, queue: QueueId::ALL };
            let MultipartReplyBody::QueueDesc(queues) = self.ask(body).await? else {
                return Err(odd());
            };
            return Ok(QueueConfig { port, queues });
        }
        let answer = self.request(Message::QueueGetConfigRequest(port)).await?;
        let Message::QueueGetConfigReply(config) = answer else { return Err(odd_answer(&answer)) };
        Ok(config)
    }

    /// Has the switch do something, and waits until it is done.
    ///
    /// # Errors
    /// When it is refused, or it is not known whether it is done.
    pub(crate) async fn apply(&self, messages: Vec<Message>) -> Result<(), Problem> {
        let done = self.datapaths.apply(self.datapath.dpid, messages).await;
        done.map_err(|failure| self.problem(&failure))
    }

    fn problem(&self, failure: &Failure) -> Problem {
        let status = match failure {
            Failure::Refused { index, xid, error } => {
                return Problem::refused(self.version(), *index, *xid, error);
            }
            Failure::NoSwitch(_) => StatusCode::NOT_FOUND,
            Failure::NotEncodable(_) => StatusCode::BAD_REQUEST,
            Failure::Full(_) | Failure::Gone => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Silent(_) => StatusCode::GATEWAY_TIMEOUT,
            Failure::Odd(_) => StatusCode::BAD_GATEWAY,
        };
        Problem::new(status, failure.to_string())
    }
}

/// The switch answers with another multipart reply than the one that answers the question.
pub(crate) fn odd() -> Problem {
    let words = "the switch answers with another kind of statistics than it was asked for";
    Problem::new(StatusCode::BAD_GATEWAY, words)
}

/// The switch answers with another message than the one that answers the question.
pub(crate) fn odd_answer(message: &Message) -> Problem {
    let name = message.kind().row().name;
    Problem::new(StatusCode::BAD_GATEWAY, format!("the switch answers with an odd {name}"))
}
