//! The generator: an answer to any bytes is a right frame that is not answered in turn, and any
//! text is a profile or an error.
#![no_main]

use std::net::{Ipv4Addr, Ipv6Addr};

use generator::profile::Profile;
use generator::responder::Responder;
use openflow::MacAddr;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // The claimed addresses are those of the input, so that many inputs ask for them.
    let mac = input.first_chunk::<6>().map_or(MacAddr::default(), |mac| MacAddr(*mac));
    let v4 = |at: usize| input.get(at..)?.first_chunk::<4>().map(|a| Ipv4Addr::from(*a).into());
    let v6 = |at: usize| input.get(at..)?.first_chunk::<16>().map(|a| Ipv6Addr::from(*a).into());
    let addresses = [v4(30), v4(38), v6(38), v6(62)].into_iter().flatten().collect();
    let responder = Responder::new(mac, addresses);
    if let Some(reply) = responder.reply(input) {
        packet::verify(&reply).expect("an answer has right checksums");
        assert_eq!(responder.reply(&reply), None, "an answer is answered");
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    for read in [Profile::from_json, Profile::from_toml] {
        if let Ok(profile) = read(text) {
            for stream in &profile.streams {
                let _ = stream.size.sequence();
            }
        }
    }
});
