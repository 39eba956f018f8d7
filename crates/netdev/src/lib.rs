//! Ports: memory, null, pcap, AF_PACKET and TAP behind one trait, and the Linux facts around them.
