//! `weir` as processes: each test starts the program itself, many in namespaces of their own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command_line;
mod controller_apps;
mod gen_console;
mod gen_rfc2544;
mod gen_terminal;
mod generator_commands;
mod generator_python;
mod generator_tour;
mod hostile_peers;
mod hot_restart;
mod lab_agent;
mod lab_controllers;
mod lab_duts;
mod lab_jobs;
mod lab_methods;
mod lab_programs;
mod lab_samples;
mod lab_teardown;
mod memory_limit;
mod metrics;
mod net;
mod process;
mod quick_start;
mod rest;
mod switch_process;
mod tls;
mod vswitchd;
mod with_etcd;
