//! The vocabulary of OpenFlow: five tables (match fields, actions, instructions, messages, errors), version-neutral values and the text syntax of ovs-ofctl.
#![forbid(unsafe_code)]
