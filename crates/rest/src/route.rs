//! The rows: each endpoint with its method, its path, its body and what runs it.
//!
//! Routes and OpenAPI document are made from the same rows, so that neither can have an endpoint
//! that the other has not. A row never reads the request itself: [`Call`] has the parts of the path
//! and the body, which is parsed, and bounded, before the row runs.

use crate::datapath::{RestFuture, Target};
use crate::problem::Problem;
use crate::services::Services;
use crate::shape::{self, Fields, Shape};
use axum::http::Method;
use openflow::DatapathId;
use serde_json::Value;
use std::sync::Arc;

/// An endpoint's answer when it is done: a JSON value, or nothing but the status.
pub(crate) type Answer = Result<Option<Value>, Problem>;

/// The body that is sent when an endpoint is done.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// Nothing but the status.
    Nothing,
    /// A JSON value.
    Value(Value),
    /// The text of one, of which there never was a tree.
    Text(String),
}

impl From<Option<Value>> for Reply {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Nothing, Self::Value)
    }
}

/// One endpoint.
pub(crate) struct Row {
    /// The method.
    pub(crate) method: Method,
    /// The path, with its variable parts in braces; [`PARTS`] says what they are.
    pub(crate) path: &'static str,
    /// Its act, for people.
    pub(crate) what: &'static str,
    /// The body.
    pub(crate) body: Body,
    /// The words that the path's part `cmd` may be.
    pub(crate) commands: &'static [&'static str],
    /// Whether there is a JSON value in the answer.
    pub(crate) answers: bool,
    /// The function that runs it.
    pub(crate) run: fn(Call) -> RestFuture<Result<Reply, Problem>>,
}

/// The body of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// None.
    None,
    /// One of this shape, or none.
    May(&'static Shape),
    /// One of this shape.
    Must(&'static Shape),
}

/// Endpoints by lines: method, path, what it does, body, whether it answers a value, what runs it.
macro_rules! endpoints {
    ($($method:ident $path:literal $what:literal $body:expr, $answers:literal
        $(, commands $commands:expr)? => $run:path;)+) => {
        [$($crate::route::Row {
            method: axum::http::Method::$method,
            path: $path,
            what: $what,
            body: $body,
            commands: {
                let _commands: &'static [&'static str] = &[];
                $(let _commands = $commands;)?
                _commands
            },
            answers: $answers,
            run: |call| Box::pin(async move { Ok($crate::route::Reply::from($run(call).await?)) }),
        },)+]
    };
}

pub(crate) use endpoints;

/// A variable part of a path.
pub(crate) struct Part {
    /// Its name in the braces.
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) what: &'static str,
    /// Its pattern.
    pub(crate) pattern: &'static str,
    /// One that most networks have.
    pub(crate) example: &'static str,
}

const fn part(
    name: &'static str,
    pattern: &'static str,
    example: &'static str,
    what: &'static str,
) -> Part {
    Part { name, what, pattern, example }
}

const NUMBER: &str = "^(0x[0-9a-fA-F]{1,8}|0|[1-9][0-9]{0,9})$";

/// The variable parts of paths.
pub(crate) const PARTS: &[Part] = &[
    part("dpid", "^(0x[0-9a-fA-F]{1,16}|0|[1-9][0-9]{0,19})$", "1", "datapath id"),
    part("hex_dpid", "^[0-9a-fA-F]{16}$", "0000000000000001", "datapath id, 16 hex digits"),
    part("switch", "^([0-9a-fA-F]{16}|all)$", "all", "datapath id, 16 hex digits, or `all`"),
    part("vlan", "^(0|[1-9][0-9]{0,3}|all)$", "2", "VLAN id, 2 to 4094, or `all`"),
    part("port", NUMBER, "1", "port number; ALL is every port"),
    part("queue_id", NUMBER, "1", "queue id; ALL is every queue"),
    part("meter_id", NUMBER, "1", "meter id; ALL is every meter"),
    part("group_id", NUMBER, "1", "group id; ALL is every group"),
    part("cmd", "", "add", "what to do"),
];

/// A request to a row.
pub(crate) struct Call {
    /// The services of the controller.
    pub(crate) services: Arc<Services>,
    /// The variable parts of the path.
    pub(crate) parts: Vec<(String, String)>,
    /// The body; `Null` when there is none.
    pub(crate) body: Value,
    /// The most bytes of an answer.
    pub(crate) answer_bytes_max: usize,
}

impl Call {
    /// A variable part of the path, if the path has it.
    pub(crate) fn part(&self, name: &str) -> Option<&str> {
        self.parts.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The switch that the path names.
    ///
    /// # Errors
    /// When it names none, or one that is not connected.
    pub(crate) fn target(&self) -> Result<Target, Problem> {
        let text = self.part("dpid").unwrap_or_default();
        let no_dpid = |why| Problem::bad(format!("no datapath id: {why}")).at("dpid");
        let dpid = shape::digits(text).map_err(no_dpid)?;
        Target::of(&self.services.datapaths, DatapathId(dpid))
    }

    /// A number in the path: `None` where the part is missing or `ALL`.
    ///
    /// # Errors
    /// When it is no number of 32 bits.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u32>, Problem> {
        let Some(text) = self.part(name).filter(|text| *text != "ALL") else { return Ok(None) };
        let number = shape::digits(text).and_then(|number| {
            u32::try_from(number).map_err(|_| format!("{text} has more than 32 bits"))
        });
        let no_number = |why| Problem::bad(format!("neither a number nor ALL: {why}")).at(name);
        number.map_err(no_number).map(Some)
    }

    /// The command in the path.
    ///
    /// # Errors
    /// When it is none of the commands.
    pub(crate) fn command<T: Copy>(&self, commands: &[(&'static str, T)]) -> Result<T, Problem> {
        let text = self.part("cmd").unwrap_or_default();
        let found = commands.iter().find(|(name, _)| *name == text).map(|(_, command)| *command);
        found.ok_or_else(|| {
            let names = commands.iter().map(|(name, _)| *name);
            Problem::not_found(format!("there is no command `{text}`")).at("cmd").allowing(names)
        })
    }

    /// The body as an object of a shape.
    ///
    /// # Errors
    /// When it is none, or has keys that the shape has not.
    pub(crate) fn fields(&self, shape: &'static Shape) -> Result<Fields<'_>, Problem> {
        Fields::of(&self.body, shape, "")
    }
}

/// The switch that a body names.
///
/// # Errors
/// When it names none, or one that is not connected.
pub(crate) fn target_of(services: &Services, fields: &Fields<'_>) -> Result<Target, Problem> {
    let dpid = fields.number::<u64>("dpid")?;
    let dpid = dpid.ok_or_else(|| fields.problem("dpid", "the datapath id is missing"))?;
    Target::of(&services.datapaths, DatapathId(dpid))
}
