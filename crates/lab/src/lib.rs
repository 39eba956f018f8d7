//! Measures any OpenFlow switch: switches under test, testbeds, scenarios, methods, statistics, reports.
#![forbid(unsafe_code)]
