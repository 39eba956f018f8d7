//! The ready apps from end to end: controller, codec and real datapaths, in memory and in virtual
//! time.

mod balancing;
mod bridging;
mod discovery;
mod documented;
mod fabric;
mod filtering;
mod managed_routing;
mod routing;
mod statistics;
