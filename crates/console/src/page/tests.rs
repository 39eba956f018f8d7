//! Whole screens, compared with the texts in `snapshots/`, and their bounds.

use std::collections::VecDeque;

use generator::statistics::{
    DelayFloor, GapStatistics, PortStatistics, PortStop, PortTraffic, RxLosses, RxStatistics,
    SessionStatistics, StreamStatistics, TxStatistics,
};

use netdev::{PortCounters, PortInfo};

use super::{PageInput, WIDTH, render};
use crate::cpu_use::ThreadUse;
use crate::state::{ConsoleState, PageName};
use crate::words;

/// The settings of E3's session.
fn state(lines: &[&str]) -> ConsoleState {
    let mut state = ConsoleState::new(&[0x0200_0000_0001, 0x0200_0000_0002]);
    let typed = ["set all rate 80", "range all on", "pkt.size start all 128"];
    for line in typed.iter().chain(lines) {
        words::parse(line, 2).unwrap().unwrap().apply(&mut state).unwrap();
    }
    state
}

fn port(port: usize) -> PortStatistics {
    let traffic = PortTraffic {
        packets: 64_000_000,
        bytes: 8_192_000_000,
        pps: 6_478_885.0,
        l1_bps: 7_671e6,
        l2_bps: 6_634e6,
    };
    PortStatistics {
        port,
        name: format!("memory:wire{port}"),
        link_up: port == 0,
        line_rate_bps: 10e9,
        transmitting: true,
        paused: false,
        stopped: (port == 1)
            .then(|| PortStop { at_ns: 5_000_000_000, reason: "it went down".to_owned() }),
        tx: TxStatistics {
            traffic,
            unsent: 12,
            late: 345,
            late_ns_max: 1_234_567,
            span_ns: 9_878_000_000,
            gaps: GapStatistics { count: 63, p50_ns: 154, p99_ns: 310, max_ns: 99_000 },
            ..TxStatistics::default()
        },
        rx: RxStatistics {
            traffic: PortTraffic { l1_bps: 7_563e6, ..traffic },
            foreign: 7,
            losses: RxLosses { drops: 3, errors: 0 },
            error: None,
        },
    }
}

fn statistics() -> SessionStatistics {
    SessionStatistics { ports: vec![port(0), port(1)], ..SessionStatistics::default() }
}

fn page(state: &ConsoleState, statistics: &SessionStatistics, width: usize) -> Vec<String> {
    let threads = [
        ThreadUse { name: "tx0".to_owned(), percent: 99.7 },
        ThreadUse { name: "weir".to_owned(), percent: 0.3 },
    ];
    let info = |port: u8| PortInfo {
        mac: [2, 0, 0, 0, 0, port],
        mtu: 1500,
        link_up: port == 0,
        speed_bps: 10_000_000_000 * u64::from(port),
        full_duplex: None,
        notes: if port == 1 { vec!["a remark".to_owned()] } else { Vec::new() },
        ..PortInfo::without_device("memory", &format!("wire{port}?end=a"), "")
    };
    let counters = [PortCounters { rx_packets: 5, tx_bytes: 640, ..Default::default() }; 2];
    let log = VecDeque::from(["column 5: a word is missing".to_owned()]);
    let infos = [info(0), info(1)];
    render(&PageInput {
        state,
        statistics,
        threads: &threads,
        infos: &infos,
        counters: &counters,
        log: &log,
        width,
    })
}

#[test]
fn every_page_is_as_it_was() {
    let sequence = "seq 0 all 02:00:00:00:00:09 02:00:00:00:00:01 10.0.0.1 10.0.1.1/24 1 2 ipv4 \
                    udp 7 64";
    for name in PageName::ALL {
        let mask = "rnd 0 3 26 X01.";
        let mut state = state(&[sequence, "set all seqCnt 2", mask, "set 0 random on"]);
        state.page = name;
        let text = page(&state, &statistics(), WIDTH).join("\n") + "\n";
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        let path = format!("{}/src/page/snapshots/{}.txt", env!("CARGO_MANIFEST_DIR"), name.word());
        if std::env::var_os("WEIR_WRITE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, expected, "{path}; WEIR_WRITE_DOCS=1 writes it anew");
    }
}

#[test]
fn pages_of_two_ports_fit_a_terminal_of_80_by_24() {
    for name in PageName::ALL {
        let mut state = state(&[]);
        state.page = name;
        let lines = page(&state, &statistics(), WIDTH);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{name:?}: {lines:#?}");
        // The range page has a table for each port, and the terminal shows the chosen one.
        assert!(lines.len() <= 21 || name == PageName::Range, "{name:?}: {lines:#?}");
        assert!(lines.iter().all(|line| line.bytes().all(|byte| byte >= b' ')), "{name:?}");
    }
}

#[test]
fn a_narrow_screen_cuts_and_a_wide_one_has_more_ports() {
    let mut state = ConsoleState::new(&[1, 2, 3, 4, 5]);
    let statistics =
        SessionStatistics { ports: (0..5).map(port).collect(), ..SessionStatistics::default() };
    let flags = |width: usize, state: &ConsoleState| page(state, &statistics, width)[1].clone();
    assert!(flags(80, &state).ends_with(":1"), "{}", flags(80, &state));
    assert!(flags(132, &state).ends_with(":3"), "{}", flags(132, &state));
    assert!(page(&state, &statistics, 30).iter().all(|line| line.chars().count() <= 30));
    words::parse("page 2", 5).unwrap().unwrap().apply(&mut state).unwrap();
    assert!(flags(80, &state).ends_with(":4"), "{}", flags(80, &state));
}

#[test]
fn the_latency_page_says_which_frames_are_not_in_it() {
    let line = |unnumbered| {
        let stream = StreamStatistics { unnumbered, probe_size: 72, ..StreamStatistics::default() };
        let statistics = SessionStatistics { streams: vec![stream], ..statistics() };
        let mut state = state(&[]);
        state.page = PageName::Latency;
        let lines = page(&state, &statistics, WIDTH);
        lines.into_iter().find(|line| line.contains("had no room"))
    };
    let remark = "5 frames had no room for number and time stamp; 72 bytes have";
    assert_eq!((line(5).as_deref(), line(0)), (Some(remark), None));
}

#[test]
fn the_latency_page_has_the_floor_and_marks_delays_below_it() {
    let floor = DelayFloor { p50_ns: 1_250.0, resolution_ns: 17.0, ..DelayFloor::default() };
    let statistics = SessionStatistics { floor: Some(floor), ..statistics() };
    let mut state = state(&[]);
    state.page = PageName::Latency;
    let lines = page(&state, &statistics, WIDTH);
    assert!(lines.contains(&"Own floor 1.2 us, resolution 17 ns; * is below the floor".to_owned()));
}

#[test]
fn a_hundred_streams_have_a_line_each() {
    let stream = |at: u64| StreamStatistics {
        name: format!("s{at}"),
        sent: at,
        ..StreamStatistics::default()
    };
    let statistics = SessionStatistics { streams: (0..100).map(stream).collect(), ..statistics() };
    let mut state = state(&[]);
    state.page = PageName::Streams;
    let lines = page(&state, &statistics, WIDTH);
    assert!(lines.iter().any(|line| line.starts_with("0:s99")), "{lines:#?}");
}
