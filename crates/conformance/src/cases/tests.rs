//! Cases on a switch in memory: a wire from port 1 to port 2, once it has an entry.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use ::cases::{Case, parse};
use openflow::message::{
    ErrorMessage, Message, MultipartReplyBody, MultipartRequestBody, SwitchConfig,
};
use openflow::port::{PortConfig, PortDesc, PortState};
use openflow::{Error, PortNo, Version};

use super::{
    CaseVerdict, CheckError, PlayPace, PlayedSwitch, TOO_LATE, counters, load, obedience, obstacle,
    play, play_all,
};
use crate::Truth;

const VERSION: Version = Version::V1_3;

/// Waits of a test: the mock has all at once.
const PACE: PlayPace = PlayPace {
    patience: Duration::from_millis(30),
    quiet: Duration::from_millis(1),
    obey: Duration::ZERO,
};

#[derive(Default)]
struct Wire {
    has_entry: bool,
    /// Its entries are in force so long after the barrier's answer.
    is_late_by: Duration,
    taken: Option<Instant>,
    /// The error with which this double refuses.
    refuses: Option<Error>,
    /// Frames come out twice.
    is_double: bool,
    /// So many frames that come are lost.
    loses: u32,
    /// So long it takes a frame.
    takes: Duration,
    /// The channel breaks at the next frame.
    breaks: bool,
    is_broken: bool,
    /// The lab can take its links away, and the way with fragments can be set.
    has_all: bool,
    port_configs: [PortConfig; 2],
    is_unlinked: [bool; 2],
    fragments: u16,
    frames: u32,
    /// The frame that came last.
    last: Vec<u8>,
    out: VecDeque<Vec<u8>>,
    reconnects: u32,
}

impl PlayedSwitch for Wire {
    fn ports(&self) -> u32 {
        2
    }

    fn has_links(&self) -> bool {
        self.has_all
    }

    fn reset(&mut self) -> Result<(), CheckError> {
        self.has_entry = false;
        self.out.clear();
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), CheckError> {
        self.reconnects += 1;
        self.is_broken = false;
        Ok(())
    }

    fn carry_out(
        &mut self,
        version: Version,
        message: &Message,
    ) -> Result<(Option<ErrorMessage>, Vec<Message>), CheckError> {
        if version != VERSION {
            return Err(CheckError::Broken("no common version".to_owned()));
        }
        if self.is_broken {
            return Err(CheckError::Broken("the channel is over".to_owned()));
        }
        let mut refused = None;
        if let Message::FlowMod(_) = message {
            self.has_entry = self.refuses.is_none();
            self.taken = Some(Instant::now());
            refused = self.refuses.map(|error| ErrorMessage::new(VERSION, error, vec![]));
        } else if let Message::SetConfig(config) = message
            && self.has_all
        {
            self.fragments = config.flags;
        } else if let Message::PortMod(change) = message {
            self.port_configs[change.port_no.0 as usize - 1] = change.config;
        }
        Ok((refused, Vec::new()))
    }

    fn came(&mut self, _version: Version) -> Result<Vec<Message>, CheckError> {
        Ok(Vec::new())
    }

    fn ask(&mut self, _message: &Message) -> Result<Message, CheckError> {
        Ok(Message::GetConfigReply(SwitchConfig { flags: self.fragments, miss_send_len: 0 }))
    }

    fn statistics(&mut self, body: MultipartRequestBody) -> Result<MultipartReplyBody, CheckError> {
        if body != MultipartRequestBody::PortDesc {
            return Err(CheckError::Refused("OFPBRC_BAD_MULTIPART".to_owned()));
        }
        let port = |index: usize| PortDesc {
            port_no: PortNo(if index == 0 { 1 } else { 2 }),
            config: self.port_configs[index],
            state: if self.is_unlinked[index] { PortState::LINK_DOWN } else { PortState::LIVE },
            ..PortDesc::default()
        };
        Ok(MultipartReplyBody::PortDesc(vec![port(0), port(1)]))
    }

    fn put(&mut self, port: u32, frame: &[u8]) -> Result<(), CheckError> {
        self.frames += 1;
        self.last = frame.to_vec();
        std::thread::sleep(self.takes);
        if self.breaks {
            self.is_broken = true;
            return Err(CheckError::Broken("the switch is gone".to_owned()));
        }
        let obeys = self.taken.is_some_and(|taken| taken.elapsed() >= self.is_late_by);
        let is_lost = self.loses > 0;
        self.loses = self.loses.saturating_sub(1);
        if self.has_entry && obeys && !is_lost && port == 1 {
            self.out.extend(vec![frame.to_vec(); if self.is_double { 2 } else { 1 }]);
        }
        Ok(())
    }

    fn take(&mut self, port: u32) -> Result<Vec<Vec<u8>>, CheckError> {
        Ok(if port == 2 { self.out.drain(..).collect() } else { Vec::new() })
    }

    fn set_link(&mut self, port: u32, is_up: bool) -> Result<(), CheckError> {
        self.is_unlinked[port as usize - 1] = !is_up;
        Ok(())
    }
}

fn case(steps: &str) -> Case {
    parse(Path::new("a.case"), &format!("case: a\n{steps}\n")).unwrap().remove(0)
}

fn found(switch: &mut Wire, steps: &str) -> (CaseVerdict, usize, String) {
    let found = play(switch, VERSION, &case(steps), PACE).unwrap();
    (found.verdict, found.line, found.note)
}

/// Plays a case, which ends with that verdict, at that line, with a note that has these words.
fn ends(switch: &mut Wire, steps: &str, verdict: CaseVerdict, line: usize, words: &str) {
    let found = found(switch, steps);
    assert_eq!((found.0, found.1), (verdict, line), "{steps}: {}", found.2);
    assert!(found.2.contains(words), "{steps}: {}", found.2);
}

const WIRE: &str = "flow: in_port=1,actions=output:2\nin: 1 0102\nout: 2 0102";

/// A meter of a frame a second; the wire lets all through.
const METERED: &str = "meter: meter=1,pktps,burst,bands=type=drop,rate=1,burst_size=1
flow: in_port=1,actions=meter:1,output:2
in: 1 0102
out: 2 0102
in: 1 0102
drop: meter";

#[test]
fn a_switch_that_does_what_it_should_passes() {
    for steps in [WIRE, "in: 1 0102\ndrop: no_match"] {
        ends(&mut Wire::default(), steps, CaseVerdict::Passed, 1, "");
    }
}

#[test]
fn what_is_otherwise_than_expected_is_named_with_its_line() {
    let mut double = Wire { is_double: true, ..Wire::default() };
    ends(&mut double, WIRE, CaseVerdict::Failed, 3, "by port 2 left 0102");
    for (steps, line, words) in [
        ("error: x", 2, "taken, expected x"),
        ("in: 1 0102\nout: 2 0102", 3, "nothing left by port 2"),
        ("flow: actions=output:2\nin: 1 0102\nout: 2 0103", 4, "the frame by port 2 is 0102"),
        ("flow: actions=output:2\nin: 1 0102\ndrop: no_match", 3, "by port 2 left"),
        ("in: 1 0102\npacket_in: no_match 0102", 3, "no packet-in came"),
        ("flow: actions=drop\nerror: OFPFMFC_OVERLAP", 3, "taken, expected OFPFMFC_OVERLAP"),
    ] {
        ends(&mut Wire::default(), steps, CaseVerdict::Failed, line, words);
    }
}

#[test]
fn a_refusal_that_says_so_is_not_supported_and_another_fails() {
    for (error, expected) in [
        (Error::BadMatchBadField, CaseVerdict::NotSupported),
        (Error::BadInstructionUnsupInst, CaseVerdict::NotSupported),
        (Error::FlowModTableFull, CaseVerdict::NotSupported),
        (Error::FlowModUnknown, CaseVerdict::NotSupported),
        (Error::FlowModOverlap, CaseVerdict::Failed),
    ] {
        let mut switch = Wire { refuses: Some(error), ..Wire::default() };
        ends(&mut switch, WIRE, expected, 2, error.name());
        // The case may ask for just this.
        let steps = format!("flow: actions=drop\nerror: {}", error.name());
        ends(&mut switch, &steps, CaseVerdict::Passed, 1, "");
    }
    for steps in ["setting: fragments=drop", "counter: table 0 active = 1"] {
        ends(&mut Wire::default(), steps, CaseVerdict::NotSupported, 2, "");
    }
}

#[test]
fn a_switch_whose_packets_obey_late_is_named() {
    let cases = [case(WIRE), case(WIRE), case(WIRE), case(WIRE)];
    let mut honest = Wire::default();
    let found = play_all(&mut honest, VERSION, &cases, PACE, |_| ()).unwrap();
    assert_eq!(obedience(&found).unwrap().verdict, Truth::Yes);
    let mut late = Wire { is_late_by: Duration::from_millis(400), ..Wire::default() };
    let found = play_all(&mut late, VERSION, &cases, PACE, |_| ()).unwrap();
    assert!(found.iter().all(|case| case.verdict == CaseVerdict::Passed));
    // The last is not tried without a delay any more.
    assert_eq!(
        found.iter().map(|case| case.is_late).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    assert_eq!(late.frames, 3 * 4 + 1);
    assert_eq!(obedience(&found).unwrap().verdict, Truth::Lies);
    assert!(obedience(&[]).is_none());
}

#[test]
fn a_frame_that_is_lost_or_a_meter_makes_no_case_late() {
    let one = METERED.lines().take(4).collect::<Vec<_>>().join("\n");
    let late_by = Duration::from_millis(400);
    for (mut switch, steps, verdict, frames) in [
        (Wire { loses: 1, ..Wire::default() }, WIRE, CaseVerdict::Passed, 2),
        // One is lost while frames are kept back, too.
        (Wire { loses: 3, ..Wire::default() }, WIRE, CaseVerdict::Failed, 3),
        (Wire { is_late_by: late_by, ..Wire::default() }, &*one, CaseVerdict::Passed, 3),
    ] {
        let found = play(&mut switch, VERSION, &case(steps), PACE).unwrap();
        assert_eq!((found.verdict, found.is_late), (verdict, false), "{steps}: {}", found.note);
        assert!(switch.frames <= frames, "{steps}: {} frames", switch.frames);
    }
}

#[test]
fn a_switch_that_ignores_meters_fails() {
    ends(&mut Wire::default(), METERED, CaseVerdict::Failed, 6, "by port 2 left 0102");
    // So does one that lets nothing through: the wait for a frame is not the lab's slowness.
    let mut deaf = Wire { loses: u32::MAX, ..Wire::default() };
    let pace = PlayPace { patience: TOO_LATE + Duration::from_millis(50), ..PACE };
    let found = play(&mut deaf, VERSION, &case(METERED), pace).unwrap();
    assert_eq!((found.verdict, found.line), (CaseVerdict::Failed, 5), "{}", found.note);
}

#[test]
fn a_lab_that_is_slower_than_a_meter_accuses_nobody() {
    let mut slow = Wire { takes: TOO_LATE / 2 + Duration::from_millis(10), ..Wire::default() };
    let (verdict, _, note) = found(&mut slow, METERED);
    assert_eq!(verdict, CaseVerdict::NotPlayed, "{note}");
    assert!(note.contains("slower than the rate"), "{note}");
    assert_eq!(slow.frames, 2 * 6);
}

#[test]
fn a_broken_channel_fails_the_case_and_the_switch_is_restored() {
    let mut switch = Wire { breaks: true, has_all: true, ..Wire::default() };
    let steps = "port: 1 port_down\nport: 2 link_down\nsetting: fragments=drop\nin: 1 0102";
    ends(&mut switch, steps, CaseVerdict::Failed, 5, "the switch is gone");
    assert_eq!(switch.reconnects, 1);
    assert_eq!(switch.port_configs, [PortConfig::empty(); 2]);
    assert_eq!((switch.is_unlinked, switch.fragments), ([false; 2], 0));
}

#[test]
fn what_cannot_be_played_says_why() {
    for (steps, why) in [
        ("version: 1.0\nflow: actions=drop", "a case of OpenFlow 1.0"),
        ("setting: miss=controller", "a case of OpenFlow 1.0"),
        ("flow: actions=flood", "needs 4 ports, of which there are 2"),
        ("flow: in_port=3,actions=drop", "needs 3 ports, of which there are 2"),
        ("group: group_id=1,type=ff,bucket=watch_port:4,output:4", "needs 4 ports"),
        ("flow: actions=output:99,output:4", "needs 4 ports"),
        ("packet_out: 99 00 actions=output:99,output:3", "needs 3 ports"),
        ("wait: 0.5", "says what happens at a moment"),
        ("wait: 100", "waits for more than 6 s"),
        ("late: 1", "a switch that has not looked"),
        ("port: 2 link_down", "the links are not the lab's"),
        ("port: 2 vlans=access:1", "an option of Weir's switch"),
        ("in: 99 00", "a port that the switch does not have"),
        ("connect: c 1.3", "has several controllers"),
    ] {
        ends(&mut Wire::default(), steps, CaseVerdict::NotPlayed, 1, why);
    }
    let steps = "flow: actions=drop\nversion: 1.0";
    ends(&mut Wire::default(), steps, CaseVerdict::NotPlayed, 3, "no common version");
    assert!(obstacle(&case("version: 1.0"), Version::OLDEST, 2, true).is_none());
    assert!(obstacle(&case("flow: actions=drop"), Version::OLDEST, 2, true).is_some());
}

/// A learning switch has not learnt them before.
#[test]
fn a_case_with_normal_has_stations_of_its_own() {
    let steps = "flow: actions=NORMAL\n\
                 in: 1 02000000000202000000000188b5\nout: 2 02000000000202000000000188b5";
    let mut switch = Wire::default();
    let mut frames = Vec::new();
    for _ in 0..2 {
        let (verdict, _, note) = found(&mut switch, steps);
        assert_eq!(verdict, CaseVerdict::Passed, "{note}");
        frames.push(std::mem::take(&mut switch.last));
    }
    assert!(frames[0] != frames[1], "{frames:02x?}");
    for frame in frames {
        assert_eq!((frame.len(), frame[..3] == frame[6..9]), (14, true), "{frame:02x?}");
        assert_eq!((frame[3..5] == frame[9..11], frame[5], frame[11]), (true, 2, 1));
        assert_eq!(frame[12..], [0x88, 0xb5]);
    }
}

#[test]
fn most_of_the_built_in_cases_can_be_played() {
    let cases = load(None).unwrap();
    let playable = |version: Version| {
        cases.iter().filter(|case| obstacle(case, version, 4, true).is_none()).count()
    };
    assert!(playable(VERSION) > 900, "{}", playable(VERSION));
    assert!(playable(Version::OLDEST) >= 10, "{}", playable(Version::OLDEST));
}

#[test]
fn cases_come_from_a_file_or_a_folder_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.case");
    std::fs::write(&file, "case: one\nflow: actions=drop\n").unwrap();
    for path in [file.as_path(), folder.path()] {
        assert_eq!(load(Some(path)).unwrap().len(), 1);
    }
    assert!(load(Some(&folder.path().join("none"))).is_err());
    std::fs::write(&file, "frob: 1\n").unwrap();
    let error = load(Some(&file)).unwrap_err().to_string();
    assert!(error.contains("x.case:1:"), "{error}");
}

#[test]
fn a_counter_has_the_words_of_its_kind_and_no_others() {
    // Nobody asks a switch for what is no counter; this one refuses all that it is asked for.
    let is_asked = |what| match counters::counter(&mut Wire::default(), &[], what) {
        Err(CheckError::Refused(_)) => true,
        Err(CheckError::Unsaid(why)) => !why.contains("is no counter"),
        other => panic!("{what}: {other:?}"),
    };
    for what in ["group 1 packets", "bucket 1 0 packets", "band 1 0 packets", "port 1 tx_packets"] {
        assert!(is_asked(what), "{what}");
    }
    for what in ["bucket 1 packets", "group 1 0 packets", "band 1 packets", "table 0 0 0 active"] {
        assert!(!is_asked(what), "{what}");
    }
}
