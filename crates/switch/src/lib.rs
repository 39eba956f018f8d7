//! The OpenFlow switch: agent, workers, configuration, control socket.
#![forbid(unsafe_code)]
