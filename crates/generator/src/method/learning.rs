//! Learning frames (RFC 2544, clause 23): the headers of a stream with source and destination
//! exchanged, so that a device which learns addresses sees where the stream's destination is.
//!
//! Text in, text out. It must never make a frame with a group address as its source (IEEE 802.3,
//! clause 3.2.3): such a destination is nowhere.

use crate::stack::HeaderStack;

/// The bit of an Ethernet address that makes it one of a group.
const GROUP_BIT: u128 = 1 << 40;

/// The stack of headers on the way back, for a stream that is sent with the Ethernet address `mac`
/// where it has none; `None` where there is nothing to learn, or the stack is wrong.
pub(super) fn returning(packet: &str, mac: [u8; 6]) -> Option<String> {
    let mut stack = HeaderStack::parse(packet).ok()?;
    let mac = mac.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
    stack.set_default("eth.src", mac);
    let value = |field: &str| stack.place(field).ok().map(|place| stack.value(place));
    if value("eth.dst")? & GROUP_BIT != 0 {
        return None;
    }
    let mut words: Vec<&str> = Vec::new();
    let mut headers = Vec::new();
    for part in packet.split('/').map(str::trim) {
        let (word, arguments) = part.split_once('(').unwrap_or((part, ""));
        words.push(word);
        let number = words.iter().filter(|other| **other == word).count();
        let arguments = arguments.trim_end_matches(')').split(',').map(str::trim);
        let is_end = |argument: &&str| {
            let name = argument.split('=').next().unwrap_or_default().trim();
            ["src", "dst"].contains(&name)
        };
        let kept = arguments.filter(|argument| !argument.is_empty() && !is_end(argument));
        let mut all: Vec<String> = kept.map(str::to_owned).collect();
        let end = |name: &str| value(&format!("{word}#{number}.{name}"));
        if let (Some(src), Some(dst)) = (end("src"), end("dst")) {
            // Addresses may be written as numbers.
            all.extend([format!("src={dst}"), format!("dst={src}")]);
        }
        headers.push(if all.is_empty() {
            word.to_owned()
        } else {
            format!("{word}({})", all.join(","))
        });
    }
    Some(headers.join("/"))
}

#[cfg(test)]
mod tests {
    use super::returning;
    use crate::stack::HeaderStack;

    #[test]
    fn ends_are_exchanged_and_all_else_stays() {
        let there = "eth(dst=02:00:00:00:00:02)/vlan(vid=7)/ipv4(src=10.0.0.1,ttl=9)/udp(dst=53)\
                     /vxlan(vni=4)/eth/ipv4(src=10.1.0.1,dst=10.1.0.2)";
        let back = returning(there, [2, 0, 0, 0, 0, 1]).unwrap();
        let stack = HeaderStack::parse(&back).unwrap();
        let there = HeaderStack::parse(there).unwrap();
        let of = |stack: &HeaderStack, field: &str| stack.value(stack.place(field).unwrap());
        assert_eq!(of(&stack, "eth.src"), 0x0200_0000_0002);
        assert_eq!(of(&stack, "eth.dst"), 0x0200_0000_0001);
        for (to, from) in [("src", "dst"), ("dst", "src")] {
            for header in ["ipv4", "udp", "eth#2", "ipv4#2"] {
                let (to, from) = (format!("{header}.{to}"), format!("{header}.{from}"));
                assert_eq!(of(&stack, &to), of(&there, &from), "{back}");
            }
        }
        for field in ["vlan.vid", "ipv4.ttl", "vxlan.vni"] {
            assert_eq!(of(&stack, field), of(&there, field), "{back}");
        }
    }

    #[test]
    fn a_group_is_nowhere() {
        assert_eq!(returning("eth(dst=ff:ff:ff:ff:ff:ff)/ipv4", [2, 0, 0, 0, 0, 1]), None);
        assert_eq!(returning("no/such/stack", [2, 0, 0, 0, 0, 1]), None);
    }
}
