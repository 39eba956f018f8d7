//! The controller over HTTP: the endpoints of Ryu's REST apps, with truthful answers.
//!
//! Paths, bodies and keys are those of Ryu's `ofctl_rest`, `rest_topology`, `rest_firewall`,
//! `rest_router` and `rest_qos`, so that scripts for Ryu go on. What differs is what Ryu kept to
//! itself: a change is answered when the switch has
//! done it, or with the `OFPT_ERROR` that the switch sent; a key that nobody knows is refused, with
//! those that there are; statistics are whole or an error. `/openapi.json` describes all of it, and
//! is made from the same rows as the routes.
//!
//! [`start`] serves on a thread of its own over any [`ServedSwitches`]; a controller is one.
#![forbid(unsafe_code)]

mod app_routes;
mod body;
mod byte_budget;
#[cfg(feature = "cli")]
pub mod cli;
mod controller_events;
mod controller_switches;
mod datapath;
mod events;
mod firewall;
mod guard;
mod literal;
mod ofctl;
mod openapi;
mod page;
mod pause;
mod problem;
mod qos;
mod route;
mod router;
mod rule_numbers;
mod rules;
mod server;
mod services;
mod shape;
mod topology;
mod words;

pub use app_routes::{AppRequest, AppResponse, AppRoute, AppRoutes};
pub use controller_events::ControllerEvents;
pub use datapath::{Failure, RestFuture, ServedSwitch, ServedSwitches};
pub use events::{NetworkEvents, SeenEvent};
pub use guard::Token;
pub use problem::Problem;
pub use server::{Error, RestLimits, RestOptions, RestServer, start};
pub use services::{LinkEnd, NetworkMap, RestNetwork, SeenHost};
