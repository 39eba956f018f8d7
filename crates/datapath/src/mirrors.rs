//! Mirrors: copies of the packets of ports and VLANs to a port (SPAN) or a VLAN (RSPAN), beside
//! whatever the pipeline does with them.
//!
//! The rules are those of Open vSwitch. A packet is eligible where it comes in and each time it
//! leaves, as it is at that moment; a destination gets it once, for whatever reasons and by
//! however many mirrors. What a mirror sends is mirrored by no other one. A port that is a mirror's
//! output takes nothing else, and what comes in there goes nowhere.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use openflow::text::parse_decimal;
use openflow::{Field, PortNo};

use crate::vlans::{VID_MAX, Vids};

/// Most mirrors of a bridge.
pub const MIRRORS_MAX: usize = 32;

/// The shortest part of a packet that a mirror sends: an Ethernet header.
pub const SNAPLEN_MIN: u16 = 14;

/// The destination of a mirror's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorOutput {
    /// A port, for nothing else.
    Port(PortNo),
    /// All ports that carry a VLAN, with its tag.
    Vlan(u16),
}

/// A mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Its name, for people.
    pub name: String,
    /// Whether it selects what comes in or leaves by any port.
    pub selects_all: bool,
    /// Ports whose incoming packets it selects.
    pub sources: BTreeSet<PortNo>,
    /// Ports whose outgoing packets it selects.
    pub destinations: BTreeSet<PortNo>,
    /// The VLANs whose packets it selects.
    pub vlans: Vids,
    /// The destination.
    pub output: MirrorOutput,
    /// The most bytes of a packet that it sends; `None` for all.
    pub snaplen: Option<u16>,
}

/// The way of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It comes in.
    In,
    /// It leaves.
    Out,
}

impl Mirror {
    /// Whether it selects packets of a port, in some VLAN.
    fn selects(&self, port: PortNo, side: Side) -> bool {
        let listed = match side {
            Side::In => &self.sources,
            Side::Out => &self.destinations,
        };
        self.selects_all || listed.contains(&port)
    }
}

/// An error in the text of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMirror(String);

impl fmt::Display for BadMirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no mirror; write NAME, then some of all, src=PORT, dst=PORT and vlan=VID (or \
             vlan=FIRST-LAST), each as often as needed, then output=PORT or output-vlan=VID, \
             perhaps snaplen=BYTES ({SNAPLEN_MIN} to 65535), with commas between",
            self.0
        )
    }
}

impl std::error::Error for BadMirror {}

impl FromStr for Mirror {
    type Err = BadMirror;

    /// Reads a mirror as its error describes it.
    fn from_str(text: &str) -> Result<Self, BadMirror> {
        read(text).ok_or_else(|| BadMirror(text.to_owned()))
    }
}

fn read(text: &str) -> Option<Mirror> {
    let mut words = text.split(',');
    let name = words.next().filter(|name| !name.is_empty() && !name.contains('='))?;
    let mut output = None;
    let mut mirror = Mirror {
        name: name.to_owned(),
        selects_all: false,
        sources: BTreeSet::new(),
        destinations: BTreeSet::new(),
        vlans: Vids::ALL,
        output: MirrorOutput::Vlan(0),
        snaplen: None,
    };
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let vid = |text: &str| parse_decimal(text).filter(|vid| *vid <= VID_MAX);
        match key {
            "all" if value.is_empty() => mirror.selects_all = true,
            "src" => drop(mirror.sources.insert(port(value)?)),
            "dst" => drop(mirror.destinations.insert(port(value)?)),
            "vlan" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                let vids = vid(first)?..=vid(last)?;
                if vids.is_empty() {
                    return None;
                }
                vids.for_each(|vid| mirror.vlans.add(vid));
            }
            "output" if output.is_none() => output = Some(MirrorOutput::Port(port(value)?)),
            "output-vlan" if output.is_none() => {
                output = Some(MirrorOutput::Vlan(vid(value).filter(|vid| *vid != 0)?));
            }
            "snaplen" if mirror.snaplen.is_none() => {
                let len: u16 = parse_decimal(value)?;
                mirror.snaplen = Some(len).filter(|len| *len >= SNAPLEN_MIN);
                mirror.snaplen?;
            }
            _ => return None,
        }
    }
    Some(Mirror { output: output?, ..mirror })
}

fn port(text: &str) -> Option<PortNo> {
    if text == "LOCAL" {
        return Some(PortNo::LOCAL);
    }
    parse_decimal(text).map(PortNo).filter(|port| (1..=PortNo::MAX.0).contains(&port.0))
}

/// The mirrors of a bridge. A set of them is a number with a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mirrors(Vec<Mirror>);

impl Mirrors {
    /// The first of these, as many as there may be.
    pub(crate) fn new(mut mirrors: Vec<Mirror>) -> Self {
        mirrors.truncate(MIRRORS_MAX);
        Self(mirrors)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mirrors that select packets at a port, in some VLAN.
    pub(crate) fn at(&self, port: PortNo, side: Side) -> u32 {
        self.set_of(|mirror| mirror.selects(port, side))
    }

    /// The mirrors with the same output as this one, itself among them.
    pub(crate) fn with_output(&self, output: MirrorOutput) -> u32 {
        self.set_of(|mirror| mirror.output == output)
    }

    /// The first mirror of a set that selects packets of a VLAN.
    pub(crate) fn first(&self, among: u32, vlan: u16) -> Option<&Mirror> {
        let mut listed = self.0.iter().enumerate();
        listed.find(|(index, it)| among >> index & 1 != 0 && it.vlans.has(vlan)).map(|(_, it)| it)
    }

    /// Whether a port is the output of one.
    pub(crate) fn has_output(&self, port: PortNo) -> bool {
        self.0.iter().any(|mirror| mirror.output == MirrorOutput::Port(port))
    }

    /// Whether any sends only a part of a packet.
    pub(crate) fn cut_packets(&self) -> bool {
        self.0.iter().any(|mirror| mirror.snaplen.is_some())
    }

    /// The fields of a packet that make a difference to them.
    pub(crate) fn fields(&self) -> &'static [Field] {
        if self.is_empty() { &[] } else { &[Field::VlanVid, Field::EthDst] }
    }

    fn set_of(&self, is_in: impl Fn(&Mirror) -> bool) -> u32 {
        let listed = (0_u32..).zip(&self.0);
        listed.filter(|(_, mirror)| is_in(mirror)).fold(0, |set, (index, _)| set | 1 << index)
    }
}

#[cfg(test)]
mod tests {
    use super::{Mirror, MirrorOutput};
    use openflow::PortNo;

    #[test]
    fn mirrors_are_read_or_refused() {
        let read = |text: &str| text.parse::<Mirror>();
        let all = read("m0,all,output=9").unwrap();
        assert!(all.selects_all && all.snaplen.is_none() && all.vlans.has(7));
        assert_eq!((all.name.as_str(), all.output), ("m0", MirrorOutput::Port(PortNo(9))));
        let text = "m1,src=1,src=LOCAL,dst=2,vlan=5,vlan=10-12,output-vlan=100,snaplen=64";
        let some = read(text).unwrap();
        assert!(some.sources.contains(&PortNo::LOCAL) && some.destinations.len() == 1);
        assert!(some.vlans.has(11) && !some.vlans.has(13));
        assert_eq!((some.output, some.snaplen), (MirrorOutput::Vlan(100), Some(64)));
        for bad in [
            "",
            "all,output",
            "m0",
            "output=1",
            "m0,all",
            "m0,all,output=0",
            "m0,all,output=x",
            "m0,all,output=1,output=2",
            "m0,all,output=1,output-vlan=2",
            "m0,all,output-vlan=0",
            "m0,all,output-vlan=4095",
            "m0,all=1,output=1",
            "m0,src=,output=1",
            "m0,vlan=5-4,output=1",
            "m0,vlan=4095,output=1",
            "m0,snaplen=13,output=1",
            "m0,snaplen=70000,output=1",
            "m0,sources=1,output=1",
        ] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.contains("then output=PORT"), "{error}");
        }
    }
}
