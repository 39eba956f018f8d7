//! Each word in Pktgen's spelling, wrong words, and completion.

use std::collections::BTreeSet;

use super::{FAMILIES, REFUSED, complete, help, parse, rows};
use crate::effect::Effect;
use crate::state::{ConsoleState, PageName, RangeField, SendMode};

fn state() -> ConsoleState {
    ConsoleState::new(&[0x0200_0000_0001, 0x0200_0000_0002])
}

/// Carries a line out on two ports.
fn done(state: &mut ConsoleState, line: &str) -> Effect {
    let command = parse(line, 2).unwrap_or_else(|error| panic!("{line}: {error}"));
    let command = command.unwrap_or_else(|| panic!("{line}: empty"));
    command.apply(state).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn error(line: &str) -> String {
    parse(line, 2).unwrap_err().to_string()
}

/// A value that fits a placeholder.
fn example(word: &str) -> &str {
    match word {
        "PORTS" => "all",
        "PORT" => "1",
        "RATE" => "80",
        "MAC" => "02:00:00:00:00:09",
        "IP" => "10.0.0.1",
        "SIZE" => "128",
        "FILE" | "WHAT" => "start",
        "TEXT" => "any text",
        "COUNT" | "STEP" | "L4PORT" | "VID" | "BITS3" | "BYTE" | "WORD24" | "WORD32" | "SLOT"
        | "SLOTS" | "BURST" | "INDEX" | "OFFSET" | "MICROSECONDS" | "MILLISECONDS" | "SECONDS" => {
            "1"
        }
        "NUMBER" => "0",
        "MASK" => "X01.",
        choice => choice,
    }
}

/// All lines of a form, one for each choice of words.
fn lines(form: &str) -> Vec<String> {
    form.split_whitespace().fold(vec![String::new()], |lines, item| {
        let words: Vec<&str> = match item.chars().next() {
            Some(first) if first.is_ascii_uppercase() => vec![example(item)],
            _ => item.split('|').collect(),
        };
        let longer = |line: &String| {
            words.iter().map(|word| format!("{line} {word}").trim().to_owned()).collect::<Vec<_>>()
        };
        lines.iter().flat_map(longer).collect()
    })
}

#[test]
fn every_form_can_be_typed_and_carried_out() {
    for row in rows() {
        for line in lines(row.form) {
            // A packet of the sequence says which addresses it has.
            let is_ipv6 = line.starts_with("seq") && line.contains(" ipv6 ");
            let ip = if is_ipv6 { "2001:db8::1" } else { "10.0.0.1" };
            done(&mut state(), &line.replace("10.0.0.1", ip));
        }
    }
}

#[test]
fn no_form_hides_another() {
    for row in rows() {
        let line = &lines(row.form)[0];
        let tokens = crate::form::tokens(line);
        let reading = rows().filter(|row| crate::form::read(row.form, &tokens, 2).is_ok());
        let forms: Vec<&str> = reading.map(|row| row.form).collect();
        assert_eq!(forms, [row.form], "{line}");
    }
}

#[test]
fn what_the_author_of_the_testpmd_measurement_typed() {
    let mut state = state();
    assert_eq!(done(&mut state, "set all rate 80"), Effect::Rate(vec![0, 1]));
    assert_eq!(done(&mut state, "range all on"), Effect::Changed(vec![0, 1]));
    assert_eq!(done(&mut state, "page range"), Effect::Show);
    assert_eq!(done(&mut state, "pkt.size start all 128"), Effect::Changed(vec![0, 1]));
    assert_eq!(done(&mut state, "set all size 64"), Effect::Changed(vec![0, 1]));
    assert_eq!(done(&mut state, "start all"), Effect::Start(vec![0, 1]));
    assert_eq!(done(&mut state, "stp"), Effect::Stop(vec![0, 1]));
    assert_eq!(state.page, PageName::Range);
    for port in &state.ports {
        assert_eq!(port.rate.to_string(), "80%");
        assert_eq!(port.range.span(RangeField::PktSize).start, 128);
        assert_eq!(port.single.size, 64);
        assert!(port.is_range_on);
    }
}

#[test]
fn both_grammars_set_the_same() {
    for (old, new) in [
        ("range 0 on", "enable 0 range"),
        ("pkt.size max all 512", "range all size max 512"),
        ("dst.ip min 1 10.0.0.3", "range 1 dst ip min 10.0.0.3"),
        ("src.mac start 0 02:00:00:00:00:07", "range 0 src mac start 02:00:00:00:00:07"),
        ("dst.port inc all 3", "range all dst port inc 3"),
        ("vlan.id inc 1 1", "range 1 vlan inc 1"),
        ("gtpu.teid start 1 77", "range 1 teid start 77"),
        ("ip.proto udp all", "range all proto udp"),
        ("set mac 1 02:00:00:00:00:07", "set 1 dst mac 02:00:00:00:00:07"),
        ("set ip dst 1 10.9.8.7", "set 1 dst ip 10.9.8.7"),
        ("proto icmp 0", "set 0 proto icmp"),
        ("type ipv6 all", "set all type ipv6"),
        ("vlan 0 on", "enable 0 vlan"),
        ("vlanid 0 7", "set 0 vlan 7"),
        ("qinqids 0 7 8", "range 0 qinq index 7 8"),
        ("set 1 random on", "enable 1 random"),
        ("set 1 burst 16", "set 1 txburst 16"),
        ("rnd 1 3 26 x0_1.", "rnd 1 3 26 X01."),
    ] {
        let (mut by_old, mut by_new) = (state(), state());
        done(&mut by_old, old);
        done(&mut by_new, new);
        assert_eq!(by_old, by_new, "{old} and {new}");
        assert_ne!(by_old, state(), "{old} changes something");
    }
}

#[test]
fn wrong_words_get_their_place_and_what_is_allowed() {
    assert_eq!(
        error("set all rat 80"),
        "column 9: \"rat\" cannot stand here; did you mean rate? allowed: burst, cos, count, \
         dport, dst, late_after, pattern, prime, prio, proto, random, rate, seqCnt, seq_cnt, \
         seqcnt, size, sport, src, tcp, tos, ttl, txburst, type, vlan, vlanid"
    );
    assert_eq!(
        error("start 7"),
        "column 7: there is no port 7; ports are 0 to 1; allowed: ports (0,2,4-6 or all)"
    );
    assert_eq!(
        error("set 0 size 63"),
        "column 12: 63 is not from 64 to 9220; allowed: a frame size with FCS, 64 to 9220 bytes"
    );
    assert!(error("start").starts_with("column 7: something is missing; allowed: ports"));
    assert!(error("strat all").contains("did you mean start? help"), "{}", error("strat all"));
    assert!(error("str 1").starts_with("column 5: \"1\" cannot stand here; the line ends"));
    assert!(error("zzz").ends_with("cannot stand here; help lists all commands"));
    assert!(error("sto all").contains("did you mean stop?"), "{}", error("sto all"));
    assert!(error("set 0 rate fast").contains("Mpps"));
    assert!(error("dst.ip start 0 10.0.0").contains("no IP address"));
    assert!(error("page rnge").contains("range, rnd, seq"));
}

#[test]
fn single_packets_and_files_are_sent_by_their_words() {
    let mut state = state();
    assert_eq!(done(&mut state, "set all prime 7"), Effect::Changed(Vec::new()));
    assert_eq!(state.ports[1].prime, 7);
    assert_eq!(done(&mut state, "prime 1"), Effect::Prime(vec![1]));
    let arp = |is_gratuitous| Effect::Arp { ports: vec![0], is_gratuitous };
    assert_eq!(done(&mut state, "send arp req 0"), arp(false));
    assert_eq!(done(&mut state, "send arp grat 0"), done(&mut state, "garp 0"));
    done(&mut state, "pcap.file 0 \"some file.pcap\"");
    done(&mut state, "enable 0 pcap");
    assert_eq!(state.ports[0].mode(), SendMode::Capture);
    assert_eq!(done(&mut state, "pcap.show"), Effect::Show);
    assert_eq!(state.page, PageName::Pcap);
}

#[test]
fn values_that_make_no_sense_change_nothing() {
    for (line, reason) in [
        ("set all rate 101", "a line carries 100 %"),
        ("set all prime 0", "1 packet or more"),
        ("range 0 size 512 1518 64 1", "min is greater than max"),
        ("range 0 dst ip 10.0.0.1 10.0.0.1 2001:db8::1 0.0.0.1", "one version"),
        ("page 1", "pages 0 to 0"),
        (
            "seq 0 0 02:00:00:00:00:01 02:00:00:00:00:02 10.0.0.1 2001:db8::1/64 1 2 ipv4 udp 1 64",
            "no address of ipv4",
        ),
    ] {
        let mut state = state();
        let command = parse(line, 2).unwrap().unwrap();
        let error = command.apply(&mut state).unwrap_err();
        assert!(error.contains(reason), "{line}: {error}");
        assert_eq!(state, self::state(), "{line}");
    }
}

#[test]
fn words_of_pktgen_that_are_not_here_say_why() {
    for (word, why) in REFUSED {
        let line = match word.split_once(' ') {
            Some((set, word)) => format!("{set} 0 {word} 1"),
            None => format!("{word} 0 on"),
        };
        assert!(error(&line).contains(why), "{}", error(&line));
    }
    assert!(error("blink").starts_with("column 1: blink is not done here"));
    assert!(error("set all rxburst 32").starts_with("column 9: set rxburst is not done here"));
    // A word that is here must not be refused.
    let first = |form: &'static str| form.split_whitespace().next().unwrap_or("").split('|');
    let words: BTreeSet<&str> = rows().flat_map(|row| first(row.form)).collect();
    assert!(REFUSED.iter().all(|(word, _)| !words.contains(word)));
}

#[test]
fn comments_and_empty_lines_are_nothing() {
    for line in ["", "   ", "# start all", "  # x"] {
        assert!(parse(line, 2).unwrap().is_none(), "{line:?}");
    }
    assert_eq!(done(&mut state(), "  start all # both"), Effect::Start(vec![0, 1]));
}

#[test]
fn the_end_of_a_word_is_completed() {
    let words = |line: &str| complete(line, 2).1;
    assert_eq!(words("sta"), ["start"]);
    assert_eq!(words("start "), ["0", "1", "all"]);
    assert_eq!(words("set all rat"), ["rate"]);
    assert_eq!(words("set all ra"), ["random", "rate"]);
    assert_eq!(words("page s"), ["seq", "sequence", "stats", "streams"]);
    assert_eq!(words("pkt.size "), ["inc", "max", "min", "start"]);
    assert_eq!(words("pkt.size start "), ["0", "1", "all"]);
    assert!(words("start all ").is_empty());
    assert!(words("nothing ").is_empty());
    assert_eq!(complete("set all ra", 2).0, 8);
    assert_eq!(complete("", 2).0, 0);
}

#[test]
fn the_help_has_every_form_and_finds_those_of_a_word() {
    let all = help(None).unwrap();
    for (heading, rows) in FAMILIES {
        assert!(all.contains(heading));
        for row in rows {
            assert!(all.contains(row.form), "{}", row.form);
        }
    }
    let about = help(Some("pkt.size")).unwrap();
    assert!(about.contains("pkt.size inc PORTS STEP") && !about.contains("dst.ip"), "{about}");
    assert!(help(Some("blink")).unwrap().contains("not done here"));
    assert!(help(Some("nonsense")).is_err());
}

#[test]
fn the_words_and_the_session_of_the_documentation_are_right() {
    let page = include_str!("../../../../docs/generator.md");
    let (_, section) = page.split_once("\n## The console\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    for (heading, rows) in FAMILIES {
        let line = section.lines().find(|line| line.starts_with(&format!("| {heading} |")));
        let line = line.unwrap_or_else(|| panic!("{heading}")).replace("\\|", "|");
        for form in line.split('`').skip(1).step_by(2) {
            assert!(rows.iter().any(|row| row.form == form), "{heading}: {form}");
        }
    }
    for page in PageName::ALL {
        assert!(section.contains(&format!("| `{}` |", page.word())), "{page:?}");
    }
    // Between fences stand screens.
    let outside = section.split("\n```").step_by(2).flat_map(str::lines);
    let typed = outside.filter_map(|line| line.strip_prefix("    "));
    let typed: Vec<&str> = typed.filter(|line| !line.starts_with("weir ")).collect();
    assert!(typed.contains(&"range all on"), "{typed:?}");
    let mut state = state();
    for line in typed {
        done(&mut state, line);
    }
}

#[test]
fn sizes_are_written_as_they_are_read() {
    let most = *generator::profile::FRAME_SIZES.end();
    for line in ["set 0 size ", "pkt.size inc 0 "] {
        assert!(parse(&format!("{line}{most}"), 2).is_ok(), "{line}");
        let error = parse(&format!("{line}{}", most + 1), 2).unwrap_err().to_string();
        assert_eq!(error.matches(&format!(" to {most}")).count(), 2, "{error}");
    }
}
