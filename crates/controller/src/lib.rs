//! The OpenFlow controller framework: the App trait, its runtime, and ready apps.
#![forbid(unsafe_code)]
