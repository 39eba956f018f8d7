//! The forwarding pipeline: flow tables, groups, meters, actions, counters and trace, without threads, clocks or sockets.
