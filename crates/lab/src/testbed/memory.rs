//! No namespaces and no root: in-memory ports between the lab and the switch.
