//! One OpenFlow connection as a state machine without I/O, and the transports that carry it.
#![forbid(unsafe_code)]
