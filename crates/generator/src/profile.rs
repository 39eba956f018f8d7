//! A profile of streams to be sent, as TOML, JSON, Python and the console write it.
//!
//! A profile is data: it is checked as a whole when it is loaded into a
//! [`crate::session::Session`], and nothing is sent before all of it is known to be right. Every
//! value has one text form, which all interfaces share. It must never depend on a port being there.
//!
//! ```
//! use generator::profile::{Profile, Rate};
//!
//! let profile = Profile::from_toml(
//!     r#"
//!     [[streams]]
//!     name = "web"
//!     packet = "eth/vlan(vid=5)/ipv4(src=10.0.0.1,dst=10.1.0.1)/udp(src=1234,dst=80)"
//!     size = { imix = "simple" }
//!     rate = "80%"
//!     modifiers = [{ field = "ipv4.src", op = "increment", min = "10.0.0.1", max = "10.0.0.254" }]
//!     "#,
//! )
//! .unwrap();
//! assert_eq!(profile.streams[0].rate, Rate::PercentOfLine(80.0));
//! ```

mod mode;
mod modifier;
mod rate;
mod size;

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

pub use mode::{Arrival, CaptureReplay, CaptureTiming, Mode, Payload};
pub use modifier::{FieldModifier, FieldValue, Modifier, ModifierOp, TupleModifier};
pub use rate::{Rate, RateTextError};
pub use size::{FRAME_SIZES, FrameSize, FrameSizeError, SizeSequence};

/// Bytes that a frame takes on the wire besides itself with its FCS: preamble, start of frame
/// delimiter and the shortest gap between frames (IEEE 802.3, clause 4.4.2).
pub const LAYER_1_OVERHEAD: u32 = 20;

/// Bytes of the FCS, which sizes include and frames in memory do not.
pub const FCS_LEN: u32 = 4;

/// Streams of any number of ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The streams; a text has one at least.
    #[serde(deserialize_with = "some_streams")]
    pub streams: Vec<StreamSpec>,
}

/// One stream: frames of one header stack, from one port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StreamSpec {
    /// The name, which no other stream of the port has; `stream-N` where it is empty.
    #[serde(deserialize_with = "given_name", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The port that sends it: the index in the session's list.
    pub port: usize,
    /// The headers from the outside in, `eth/vlan(vid=5)/ipv4(src=10.0.0.1)/udp(dst=53)`; the
    /// words are in [`crate::stack`].
    pub packet: String,
    /// Length of the frames in bytes, FCS included.
    pub size: FrameSize,
    /// The fields that differ from frame to frame.
    pub modifiers: Vec<Modifier>,
    /// The rate.
    pub rate: Rate,
    /// The number of frames, and their gaps.
    pub mode: Mode,
    /// The spread of the frames in time at the given rate.
    pub arrival: Arrival,
    /// Time in seconds from the start of the port, or of the chain, to the first frame.
    pub start_after_s: f64,
    /// The stream of the same port that starts when this one has ended.
    pub next: Option<String>,
    /// Whether it starts with its port; a stream that is only the `next` of another does not.
    pub self_start: bool,
    /// Whether each frame that has room carries a sequence number and a time stamp, at its end.
    pub probe: bool,
    /// A frame that arrives this number of microseconds after it was due is counted as late (the
    /// waiting time of RFC 7680).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_after_us: Option<f64>,
    /// Whether all checksums of each frame that arrives are checked, so that a corrupted byte
    /// outside of number and time stamp is seen too.
    pub verify_checksums: bool,
    /// The bytes after the headers.
    pub pattern: Payload,
    /// Frames of a capture file instead of `packet`, `size`, `modifiers` and `pattern`.
    pub capture: Option<CaptureReplay>,
}

/// Streams that are written are some: a profile of none would send nothing, and say so late.
fn some_streams<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<StreamSpec>, D::Error> {
    let streams = Vec::deserialize(from)?;
    if streams.is_empty() {
        return Err(serde::de::Error::custom("streams: there is none; a profile has one at least"));
    }
    Ok(streams)
}

/// Characters of a name, at most.
const NAME_MAX: usize = 100;

/// A name that is written is one; it is left out where the generator is to make one up.
fn given_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    check_name(&name).map(|()| name).map_err(serde::de::Error::custom)
}

/// Whether tables can show the name, and a reader distinguish it.
fn check_name(name: &str) -> Result<(), String> {
    let refused = |what: &str| Err(format!("a name has {what}; leave it out for stream-N"));
    if name.trim().is_empty() {
        return refused("a letter or a digit at least");
    }
    if let Some(odd) = name.chars().find(|c| c.is_control()) {
        return refused(&format!("no control characters such as {odd:?}"));
    }
    if name.chars().count() > NAME_MAX {
        return refused(&format!("at most {NAME_MAX} characters"));
    }
    Ok(())
}

impl Default for StreamSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            port: 0,
            packet: "eth/ipv4/udp".to_owned(),
            size: FrameSize::Fixed(64),
            modifiers: Vec::new(),
            rate: Rate::PacketsPerSecond(1.0),
            mode: Mode::Continuous,
            arrival: Arrival::Constant,
            start_after_s: 0.0,
            next: None,
            self_start: true,
            probe: true,
            late_after_us: None,
            verify_checksums: false,
            pattern: Payload::Zero,
            capture: None,
        }
    }
}

/// A stream that cannot be sent as it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stream {stream:?}, {field}: {reason}")]
pub struct ProfileError {
    /// The stream's name.
    pub stream: String,
    /// The key of the stream's table, `size` or `modifiers[1].max`.
    pub field: String,
    /// The mistake, and what is allowed.
    pub reason: String,
}

impl ProfileError {
    /// An error of one field of one stream.
    #[must_use]
    pub fn new(stream: &str, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { stream: stream.to_owned(), field: field.into(), reason: reason.into() }
    }
}

impl Profile {
    /// Reads TOML; every stream has a name afterwards.
    ///
    /// # Errors
    /// With line, column and the allowed words; [`ProfileError`] for streams of one name.
    pub fn from_toml(text: &str) -> Result<Self, ProfileTextError> {
        let profile: Self = toml::from_str(text)?;
        Ok(profile.named()?)
    }

    /// Reads JSON; every stream has a name afterwards.
    ///
    /// # Errors
    /// With line, column and the allowed words; [`ProfileError`] for streams of one name.
    pub fn from_json(text: &str) -> Result<Self, ProfileTextError> {
        let profile: Self = serde_json::from_str(text)?;
        Ok(profile.named()?)
    }

    /// Gives each stream without a name the name `stream-N`, where N is its place from 1 or the
    /// next that no stream of the port has, and checks that the names of a port differ and that
    /// each `next` is there.
    ///
    /// # Errors
    /// Two streams of one port with one name, or a name that tables cannot show; a `next` that the
    /// port does not have.
    pub fn named(mut self) -> Result<Self, ProfileError> {
        let mut names: BTreeSet<(usize, String)> =
            self.streams.iter().map(|stream| (stream.port, stream.name.clone())).collect();
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let mut number = index + 1;
            while stream.name.is_empty() {
                let name = (stream.port, format!("stream-{number}"));
                if names.insert(name.clone()) {
                    stream.name = name.1;
                }
                number += 1;
            }
        }
        self.check_names()?;
        Ok(self)
    }

    fn check_names(&self) -> Result<(), ProfileError> {
        let mut names = BTreeSet::new();
        for stream in &self.streams {
            check_name(&stream.name)
                .map_err(|reason| ProfileError::new(&stream.name, "name", reason))?;
            if !names.insert((stream.port, stream.name.as_str())) {
                let reason = format!("port {} has another stream of this name", stream.port);
                return Err(ProfileError::new(&stream.name, "name", reason));
            }
        }
        for stream in &self.streams {
            let Some(next) = &stream.next else { continue };
            if !names.contains(&(stream.port, next.as_str())) {
                let reason = format!("port {} has no stream {next:?}", stream.port);
                return Err(ProfileError::new(&stream.name, "next", reason));
            }
        }
        Ok(())
    }

    /// The streams of one port, in order.
    #[must_use]
    pub fn of_port(&self, port: usize) -> Vec<StreamSpec> {
        self.streams.iter().filter(|stream| stream.port == port).cloned().collect()
    }
}

/// A profile that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProfileTextError {
    /// The text is no TOML, or has keys or values that a profile does not have.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The text is no JSON, or has keys or values that a profile does not have.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The streams do not fit each other.
    #[error(transparent)]
    Stream(#[from] ProfileError),
}

#[cfg(test)]
mod tests {
    use super::{FieldModifier, FrameSize, Mode, Modifier, Profile, Rate, StreamSpec};

    const EXAMPLE: &str = r#"
        [[streams]]
        packet = "eth/ipv4/udp"
        size = [64, 128]
        rate = "1.5Mpps"
        mode = { bursts = { count = 3, packets = 10, gap_us = 5 } }
        arrival = { poisson = 7 }
        next = "second"
        modifiers = [
            { field = "udp.dst", op = "random", min = 1, max = 9, seed = 3 },
            { fields = ["ipv4.src", "udp.src"], tuples = [["10.0.0.1", 5], ["10.0.0.2", 6]] },
        ]

        [[streams]]
        name = "second"
        self_start = false
        mode = { burst = 5 }
        size = { min = 64, max = 1518, random = 1 }
        pattern = { user = "hello" }
    "#;

    #[test]
    fn a_profile_is_the_same_in_toml_and_json() {
        let profile = Profile::from_toml(EXAMPLE).unwrap();
        assert_eq!(profile.streams[0].name, "stream-1");
        assert_eq!(profile.streams[0].size, FrameSize::Cycle(vec![64, 128]));
        assert_eq!(profile.streams[0].rate, Rate::PacketsPerSecond(1.5e6));
        assert_eq!(profile.streams[1].mode, Mode::Burst(5));
        let json = serde_json::to_string(&profile).unwrap();
        assert_eq!(Profile::from_json(&json).unwrap(), profile);
        let again = toml::to_string(&profile).unwrap();
        assert_eq!(Profile::from_toml(&again).unwrap(), profile);
    }

    #[test]
    fn names_that_are_made_up_are_free_ones() {
        let text =
            "[[streams]]\nname = 'stream-2'\n[[streams]]\n[[streams]]\n[[streams]]\nport = 1";
        let names: Vec<String> =
            Profile::from_toml(text).unwrap().streams.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["stream-2", "stream-3", "stream-4", "stream-4"]);
    }

    #[test]
    fn slips_are_refused_with_what_is_allowed() {
        let error = |text: &str| Profile::from_toml(text).unwrap_err().to_string();
        assert!(error("[[streams]]\nrat = '1pps'").contains("`rate`"));
        assert!(error("[[streams]]\nrate = '1 parsec'").contains("Mpps"));
        assert!(error("[[streams]]\nsize = 'big'").contains("imix"));
        assert!(error("[[streams]]\nmode = 'sometimes'").contains("continuous"));
        let field = error("[[streams]]\nmodifiers = [{ feld = 'ipv4.src', op = 'list' }]");
        assert!(field.contains("`field`"), "{field}");
        let op = error("[[streams]]\nmodifiers = [{ field = 'ipv4.src', op = 'grow' }]");
        assert!(op.contains("increment"), "{op}");
        assert!(error("[[streams]]\nname='a'\n[[streams]]\nname='a'").contains("another stream"));
        assert!(error("[[streams]]\nnext='b'").contains("no stream \"b\""));
    }

    #[test]
    fn a_profile_without_streams_is_refused_with_the_place() {
        let json = |text: &str| Profile::from_json(text).unwrap_err().to_string();
        let toml = |text: &str| Profile::from_toml(text).unwrap_err().to_string();
        let none = json("{\n \"streams\": []}");
        assert!(none.contains("there is none") && none.contains("line 2"), "{none}");
        let none = toml("\nstreams = []");
        assert!(none.contains("there is none") && none.contains("line 2"), "{none}");
        for missing in [json("{}"), toml("")] {
            assert!(missing.contains("missing field `streams`"), "{missing}");
        }
    }

    /// The defect of names whose escape codes changed the terminal of the report's reader.
    #[test]
    fn names_that_nobody_can_read_are_refused() {
        let long = "x".repeat(101);
        for name in ["", " ", "\u{1b}[31mred", "two\nlines", &long] {
            let stream = StreamSpec { name: name.into(), ..StreamSpec::default() };
            let json = serde_json::json!({ "streams": [{ "name": name }] }).to_string();
            let error = Profile::from_json(&json).unwrap_err().to_string();
            assert!(error.contains("a name has"), "{error}");
            // A program gives no name by an empty one.
            let made = Profile { streams: vec![stream] }.named();
            assert_eq!(made.is_ok(), name.is_empty(), "{name:?}");
        }
    }

    #[test]
    fn modifiers_of_tuples_and_of_fields_are_distinct() {
        let profile = Profile::from_toml(EXAMPLE).unwrap();
        let [Modifier::Field(FieldModifier { field, .. }), Modifier::Tuples(tuples)] =
            &profile.streams[0].modifiers[..]
        else {
            panic!("{:?}", profile.streams[0].modifiers)
        };
        assert_eq!((field.as_str(), tuples.tuples.len()), ("udp.dst", 2));
    }
}
