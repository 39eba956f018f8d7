//! The row of a port kind, and the text that names a port: `kind:name?option=value&option=value`.
//!
//! The text, its errors and help texts are derived from the row. Parsing checks the kind and the
//! names of its options against a table of kinds, so that a slip is refused at once and with what
//! is allowed. It must never open anything.

use std::collections::BTreeMap;
use std::fmt;

use openflow::text::{parse_decimal, zero_advice};

use crate::error::PortError;
use crate::port::Port;
use crate::spec_error::SpecError;

/// One kind of port.
#[derive(Debug)]
pub struct KindRow {
    /// Its word in the spec text.
    pub word: &'static str,
    /// The thing that the name stands for; empty when a name is not needed.
    pub name_hint: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
    /// The options.
    pub options: &'static [OptionRow],
    /// The thing that a port of the kind needs for itself alone: two ports that name the same
    /// cannot both be open. `None` where any number of ports may be the same.
    pub(crate) exclusive: fn(&PortSpec) -> Option<String>,
    /// The use of the file of the port's name; `None` where the name is no file.
    pub(crate) file_use: fn(&PortSpec) -> Option<FileUse>,
    /// The rights that a process needs to open a port of the kind.
    pub rights: &'static [PortRight],
    /// Opens a port of the kind.
    pub(crate) open: fn(&PortSpec) -> Result<Port, PortError>,
}

/// One option of a kind.
#[derive(Debug)]
pub struct OptionRow {
    /// The name.
    pub name: &'static str,
    /// The values in short, default first.
    pub values: &'static str,
    /// One sentence for help texts.
    pub help: &'static str,
}

/// A right that opening a port takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRight {
    /// Packet sockets: `CAP_NET_RAW`.
    PacketSocket,
    /// Links, promiscuity and offloads of devices: `CAP_NET_ADMIN`.
    DeviceSettings,
    /// TAP devices: `/dev/net/tun`.
    TunDevice,
    /// Memory that stays where it is: `CAP_IPC_LOCK`.
    LockedMemory,
    /// Registers of a device: `CAP_SYS_RAWIO`.
    DeviceRegisters,
}

/// The use of a file by a port, or by another part of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// It is read, which any number may do.
    Read,
    /// It is written, by one alone.
    Write,
    /// It is a wire in memory, which both ends share.
    Wire,
}

/// A row of an option.
pub(crate) const fn option(
    name: &'static str,
    values: &'static str,
    help: &'static str,
) -> OptionRow {
    OptionRow { name, values, help }
}

/// [`KindRow::exclusive`] of a kind whose ports need the device of their name.
pub(crate) fn by_name(spec: &PortSpec) -> Option<String> {
    Some(spec.name().to_owned())
}

/// [`KindRow::exclusive`] of a kind of which any number of ports may be the same.
pub(crate) fn shared(_: &PortSpec) -> Option<String> {
    None
}

/// [`KindRow::file_use`] of a kind whose ports use no file.
pub(crate) fn no_file(_: &PortSpec) -> Option<FileUse> {
    None
}

/// [`KindRow::name_hint`] of a kind whose ports are devices of the kernel.
pub(crate) const DEVICE: &str = "DEVICE";

/// The kernel's rule for names of devices.
pub(crate) fn is_device_name(name: &str) -> bool {
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    (1..libc::IFNAMSIZ).contains(&name.len())
        && !name.contains(wrong)
        && name != "."
        && name != ".."
}

/// The options of every kind: a switch takes no more than this from the port.
pub const COMMON: &[OptionRow] = &[
    option("police", "BITS", "most bits a second that a switch takes, as 100M; more is dropped"),
    option("police_burst", "8M", "so many bits may come at once before that rate holds"),
    option("police_packets", "COUNT", "most packets a second that a switch takes, as 10k"),
    option("police_packets_burst", "16k", "so many packets may come at once"),
];

/// A rate, and what may come at once before it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoliceRate {
    /// In a second.
    pub per_s: u64,
    /// At once.
    pub burst: u64,
}

/// The most that a switch takes from a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policing {
    /// Bits.
    pub bits: Option<PoliceRate>,
    /// Packets.
    pub packets: Option<PoliceRate>,
}

/// The option by which a port has more than one queue.
pub(crate) const QUEUES: &str = "queues";

/// The most queues of one port.
pub const QUEUES_MAX: u32 = 64;

/// A port as named by its spec text. `to_string` gives the text back.
#[derive(Debug, Clone)]
pub struct PortSpec {
    kind: &'static KindRow,
    name: String,
    options: BTreeMap<String, String>,
}

impl PortSpec {
    /// Reads a text that names a port of one of `kinds`.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn parse(text: &str, kinds: &'static [KindRow]) -> Result<Self, SpecError> {
        if text.contains(char::is_control) {
            return Err(SpecError::Control { text: text.to_owned() });
        }
        let words = || kinds.iter().map(|row| row.word).collect::<Vec<_>>().join(", ");
        let Some((word, rest)) = text.split_once(':') else {
            return Err(SpecError::NoKind { text: text.to_owned(), kinds: words() });
        };
        let Some(row) = kinds.iter().find(|row| row.word == word) else {
            return Err(SpecError::UnknownKind { kind: word.to_owned(), kinds: words() });
        };
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        if name.is_empty() && !row.name_hint.is_empty() {
            return Err(SpecError::NoName { kind: row.word, hint: row.name_hint });
        }
        if row.name_hint == DEVICE && !is_device_name(name) {
            return Err(SpecError::NoDevice { kind: row.word, name: name.to_owned() });
        }
        let mut options = BTreeMap::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (option, value) = part.split_once('=').unwrap_or((part, "true"));
            if !row.options.iter().chain(COMMON).any(|known| known.name == option) {
                return Err(unknown_option(row, option));
            }
            options.insert(option.to_owned(), value.to_owned());
        }
        Ok(Self { kind: row, name: name.to_owned(), options })
    }

    /// The kind's row.
    #[must_use]
    pub fn kind(&self) -> &'static KindRow {
        self.kind
    }

    /// The text between the colon and the question mark.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The thing that the port needs for itself alone, such as a device; `None` where any number of
    /// ports may have the same spec.
    #[must_use]
    pub fn exclusive(&self) -> Option<String> {
        (self.kind.exclusive)(self)
    }

    /// The use of the file that the port is named after; `None` where its name is no file.
    #[must_use]
    pub fn file_use(&self) -> Option<FileUse> {
        (self.kind.file_use)(self)
    }

    /// The text of an option, where it was given.
    #[must_use]
    pub fn option(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// The same port with this number of queues, where its kind has several and it names no number.
    #[must_use]
    pub fn with_queues(mut self, queues: u32) -> Self {
        if self.kind.options.iter().any(|option| option.name == QUEUES) {
            self.options.entry(QUEUES.to_owned()).or_insert_with(|| queues.to_string());
        }
        self
    }

    /// The number of queues that the text asks for; 1 without the option.
    ///
    /// # Errors
    /// [`SpecError::BadValue`].
    pub(crate) fn queues(&self) -> Result<u32, SpecError> {
        Ok(self.number(QUEUES, 1..=QUEUES_MAX)?.unwrap_or(1))
    }

    /// The most that a switch takes from the port.
    ///
    /// # Errors
    /// [`SpecError::BadValue`].
    pub fn policing(&self) -> Result<Policing, SpecError> {
        let rate = |rate, burst, default| match (self.amount(rate)?, self.amount(burst)?) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(self.bad_value(burst, &format!("it beside {rate}"))),
            (Some(per_s), given) => Ok(Some(PoliceRate { per_s, burst: given.unwrap_or(default) })),
        };
        Ok(Policing {
            bits: rate("police", "police_burst", 8_000_000)?,
            packets: rate("police_packets", "police_packets_burst", 16_000)?,
        })
    }

    /// A number above zero, perhaps with k, M or G behind.
    fn amount(&self, option: &str) -> Result<Option<u64>, SpecError> {
        let Some(text) = self.option(option) else { return Ok(None) };
        let digits = text.trim_end_matches(['k', 'M', 'G']);
        let unit: Option<u64> = match text.get(digits.len()..) {
            Some("") => Some(1),
            Some("k") => Some(1_000),
            Some("M") => Some(1_000_000),
            Some("G") => Some(1_000_000_000),
            Some(_) | None => None,
        };
        let amount =
            parse_decimal::<u64>(digits).zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
        let allowed = || format!("a number above 0, perhaps with k, M or G{}", zero_advice(digits));
        let amount = amount.filter(|amount| *amount > 0);
        amount.map(Some).ok_or_else(|| self.bad_value(option, &allowed()))
    }

    /// A switch-like option: `true`, `false`, or nothing for `default`.
    pub(crate) fn flag(&self, option: &str, default: bool) -> Result<bool, SpecError> {
        match self.option(option) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(self.bad_value(option, "true or false")),
        }
    }

    /// A number option within `range`, where it was given.
    pub(crate) fn number(
        &self,
        option: &str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<u32>, SpecError> {
        let Some(text) = self.option(option) else { return Ok(None) };
        match parse_decimal(text) {
            Some(value) if range.contains(&value) => Ok(Some(value)),
            _ => {
                let (from, to) = (range.start(), range.end());
                let allowed = format!("a number from {from} to {to}{}", zero_advice(text));
                Err(self.bad_value(option, &allowed))
            }
        }
    }

    /// The error for a value that does not fit.
    pub(crate) fn bad_value(&self, option: &str, allowed: &str) -> SpecError {
        SpecError::BadValue {
            kind: self.kind.word,
            option: option.to_owned(),
            value: self.option(option).unwrap_or_default().to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

impl PartialEq for PortSpec {
    fn eq(&self, other: &Self) -> bool {
        let whole = |spec: &Self| (spec.kind.word, spec.name.clone(), spec.options.clone());
        whole(self) == whole(other)
    }
}

impl Eq for PortSpec {}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.word, self.name)?;
        for (n, (option, value)) in self.options.iter().enumerate() {
            write!(f, "{}{option}={value}", if n == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

fn unknown_option(row: &KindRow, option: &str) -> SpecError {
    let names: Vec<String> =
        row.options.iter().chain(COMMON).map(|o| format!("{}={}", o.name, o.values)).collect();
    let allowed = format!("it has: {}", names.join(", "));
    SpecError::UnknownOption { kind: row.word, option: option.to_owned(), allowed }
}

#[cfg(test)]
mod tests {
    use super::{PoliceRate, Policing, PortSpec};
    use crate::kinds::KINDS;

    #[test]
    fn every_kind_reads_and_prints_back() {
        for row in KINDS {
            let mut text = format!("{}:x", row.word);
            for (n, option) in row.options.iter().enumerate() {
                text += if n == 0 { "?" } else { "&" };
                text += &format!("{}=1", option.name);
            }
            let spec: PortSpec = text.parse().unwrap();
            assert_eq!(spec.kind().word, row.word);
            assert_eq!(spec.name(), "x");
            assert_eq!(spec.to_string().parse::<PortSpec>().unwrap(), spec);
        }
    }

    #[test]
    fn slips_are_refused_with_what_is_allowed() {
        let error = |text: &str| text.parse::<PortSpec>().unwrap_err().to_string();
        assert!(error("veth0").contains("af_packet:eth0"));
        assert!(error("afpacket:veth0").contains("af_packet, tap"), "{}", error("afpacket:x"));
        assert!(error("pcap:").contains("pcap:FILE"));
        assert!(error("pcap:f?lop=true").contains("loop=false|true"));
        assert!(error("null:?x=1").contains("it has: queues=1"));
        assert!(error("dpdk:x?x=1").contains("it has: queues=1"));
        for name in ["tap:a/b", "af_packet:sixteen-bytes-xx", "tap:a b"] {
            assert!(error(name).contains("use 1 to 15 bytes"), "{}", error(name));
        }
        assert!("tap:fifteen-bytes-x".parse::<PortSpec>().is_ok());
        for text in ["null:a\nb", "memory:\u{1b}[31m", "pcap:f?loop=true\r"] {
            let why = error(text);
            assert!(why.contains("a line end or another control") && !why.contains(['\n', '\r']));
        }
        let spec: PortSpec = "tap:x?queues=010".parse().unwrap();
        let why = spec.queues().unwrap_err().to_string();
        assert!(why.ends_with("`010` begins with a zero: write 10, or 8 if it is octal"), "{why}");
    }

    #[test]
    fn queues_are_what_the_port_says_or_else_what_is_asked_for() {
        let spec = |text: &str| text.parse::<PortSpec>().unwrap().with_queues(4).to_string();
        assert_eq!(spec("memory:x"), "memory:x?queues=4");
        assert_eq!(spec("null:?queues=2"), "null:?queues=2");
        assert_eq!(spec("pcap:x"), "pcap:x", "a file has one");
    }

    #[test]
    fn rates_of_policing_are_read_or_refused() {
        let policing =
            |text: &str| format!("null:x?{text}").parse::<PortSpec>().unwrap().policing();
        let rate = |per_s, burst| Some(PoliceRate { per_s, burst });
        assert_eq!(policing(""), Ok(Policing::default()));
        let found = policing("police=10M&police_packets=2k&police_packets_burst=5").unwrap();
        let expected = Policing { bits: rate(10_000_000, 8_000_000), packets: rate(2_000, 5) };
        assert_eq!(found, expected);
        for bad in ["police=0", "police=x", "police=1T", "police=05", "police=M", "police_burst=-1"]
        {
            let error = policing(bad).unwrap_err().to_string();
            assert!(error.contains("a number above 0"), "{error}");
        }
        // A burst alone would be a word without effect.
        for (alone, rate) in
            [("police_burst=1M", "police"), ("police=1M&police_packets_burst=5", "police_packets")]
        {
            let error = policing(alone).unwrap_err().to_string();
            assert!(error.ends_with(&format!("use it beside {rate}")), "{error}");
        }
    }

    #[test]
    fn values_are_checked() {
        let spec: PortSpec = "memory:x?slots=many&end=a".parse().unwrap();
        let error = spec.number("slots", 1..=8).unwrap_err().to_string();
        assert!(error.contains("a number from 1 to 8"), "{error}");
        assert!(spec.flag("end", true).is_err());
        assert_eq!(spec.number("frame_max", 1..=8), Ok(None));
    }
}
