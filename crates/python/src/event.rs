//! Events for Python: the handlers of an app, one for each kind of event, and what they get.
//!
//! The rows of `controller::app_events` say which handlers there are. From them follow their
//! numbers, the class `Handlers`, which `weir.App` extends, and its stub.

use controller::{ControllerEvent, HostEvent, LinkEvent};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::{
    Bound, PyAny, PyAnyMethods, PyDictMethods, PyModule, PyModuleMethods, PyResult, Python,
};
use pyo3::types::{PyDict, PyTuple};

use crate::discovered;
use crate::switch_message::{FlowRemoved, Message, PortStatus, RoleChange, SwitchError};
use crate::transport::Connection;

/// A handler's arguments, each with its class, and its docstring.
struct Row {
    name: &'static str,
    arguments: &'static [(&'static str, &'static str)],
    doc: &'static str,
}

macro_rules! define_handlers {
    (
        of_switch { $(
            $(#[$doc:meta])*
            fn $handler:ident $([$xid:ident])? ($value:ident: $type:ty) => $variant:ident
                $(of $message:ident)?, python($argument:ident: $class:ident) $text:literal;
        )* }
        of_network { $(
            $(#[$network_doc:meta])*
            fn $network_handler:ident($network_value:ident: $network_type:ty)
                => $network_variant:ident, python { $(
                    $pattern:pat => $part:ident($($part_argument:ident: $part_class:ident),+)
                        $part_text:literal;
                )+ }
        )* }
    ) => {
        /// The number of a kind of event: the place of its handler in `EVENTS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[expect(non_camel_case_types, reason = "they are the names of the handlers")]
        pub(crate) enum Handler {
            switch_ready,
            switch_down,
            $($handler,)*
            $($($part,)+)*
            /// An answer, which a future gets.
            Answer,
            /// A line for the log.
            Line,
            /// A request for a route of an app.
            Request,
        }

        const ROWS: &[Row] = &[
            Row {
                name: "switch_ready",
                arguments: &[("sw", "Switch")],
                doc: "A switch has sent its features and ports.",
            },
            Row {
                name: "switch_down",
                arguments: &[("dpid", "int")],
                doc: "The connection of a switch that was ready is over.",
            },
            $(Row {
                name: stringify!($handler),
                arguments: &[("sw", "Switch"), (stringify!($argument), stringify!($class))],
                doc: $text,
            },)*
            $($(Row {
                name: stringify!($part),
                arguments: &[$((stringify!($part_argument), stringify!($part_class))),+],
                doc: $part_text,
            },)+)*
        ];

        impl Handler {
            /// The handler of an event.
            pub(crate) fn of(event: &ControllerEvent) -> Self {
                match event {
                    ControllerEvent::SwitchReady(_) => Self::switch_ready,
                    ControllerEvent::SwitchDown(_) => Self::switch_down,
                    $( ControllerEvent::$variant { .. } => Self::$handler, )*
                    $( ControllerEvent::$network_variant(event) => match event {
                        $( $pattern => Self::$part, )+
                    }, )*
                }
            }
        }
    };
}

controller::app_events!(define_handlers);

/// The class `Handlers`, in words that are code and stub alike.
pub(crate) fn handlers() -> String {
    let mut text =
        "class Handlers:\n    \"\"\"The handlers of events, all empty here.\"\"\"\n".to_owned();
    for Row { name, arguments, doc } in ROWS {
        let typed = arguments.iter().map(|(name, class)| format!(", {name}: \"{class}\""));
        text += &format!(
            "\n    def {name}(self{}) -> \"Done\":\n        \"\"\"{doc}\"\"\"\n",
            typed.collect::<String>()
        );
    }
    text
}

/// Adds the class `Handlers` and the names of its handlers in the order of their numbers.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let globals = PyDict::new(py);
    globals.set_item("__name__", "weir._weir")?;
    py.import("builtins")?.call_method1("exec", (handlers(), &globals))?;
    module.add("Handlers", globals.as_any().get_item("Handlers")?)?;
    module.add("EVENTS", PyTuple::new(py, ROWS.iter().map(|row| row.name))?)
}

/// The value that the handler of a switch's event gets beside the switch.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others are messages")]
pub(crate) fn of_switch<'py>(
    py: Python<'py>,
    from: &Connection,
    event: ControllerEvent,
) -> PyResult<Bound<'py, PyAny>> {
    let version = from.version;
    match event {
        ControllerEvent::PortStatus { status, .. } => {
            PortStatus { inner: status }.into_bound_py_any(py)
        }
        ControllerEvent::FlowRemoved { removed, .. } => {
            FlowRemoved { inner: removed }.into_bound_py_any(py)
        }
        ControllerEvent::Error { xid, error, .. } => {
            SwitchError { version, xid, inner: error }.into_bound_py_any(py)
        }
        ControllerEvent::RoleChanged { change, .. } => {
            RoleChange { inner: change }.into_bound_py_any(py)
        }
        event => {
            let xid = Some(event.xid());
            let inner = event.into_message().map_err(|event| {
                PyTypeError::new_err(format!("{} has no class in Python", event.handler_name()))
            })?;
            Message { version, xid, inner }.into_bound_py_any(py)
        }
    }
}

/// The values that the handler of an event of no switch gets.
pub(crate) fn of_network<'py>(
    py: Python<'py>,
    event: &ControllerEvent,
) -> PyResult<Bound<'py, PyAny>> {
    if let ControllerEvent::Link(event) = event {
        discovered::link_event(py, event)
    } else if let ControllerEvent::Host(event) = event {
        discovered::host_event(py, event)
    } else {
        py.None().into_bound_py_any(py)
    }
}
