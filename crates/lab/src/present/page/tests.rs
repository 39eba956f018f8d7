//! The page, as far as it can be judged without a browser; `contrib/page/results.py` has one.

use super::render;
use crate::present::sample::{HOSTILE, hostile, results};

#[test]
fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
    let page = render(&results(), None);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    for word in ["http://", "https://", "src=", "@import", "url(", "NaN", "inf "] {
        assert!(!page.contains(word), "{word}");
    }
    for word in ["color-scheme: light dark", "@media print", "linux-bridge", "class=\"matrix\""] {
        assert!(page.contains(word), "{word} is missing");
    }
    assert!(page.len() < 150_000, "{} bytes", page.len());
}

#[test]
fn a_page_of_a_run_says_how_it_stands_and_is_loaded_anew() {
    let page = render(&results(), Some("3 of 9 steps <b>"));
    assert!(page.contains("</span> 3 of 9 steps &lt;b&gt;</p>") && page.contains("\"refresh\""));
    assert!(!render(&results(), None).contains("\"refresh\""));
}

#[test]
fn hostile_texts_become_no_markup() {
    let page = render(&hostile(), None);
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, render(&results(), None).matches("<script").count());
    assert!(!page.contains("<script>alert") && !page.contains("<b>line"));
    assert!(!page.contains(HOSTILE), "a text stands there as it is");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
}

#[test]
fn each_link_leads_to_a_place_and_each_place_is_one() {
    for results in [results(), hostile()] {
        let page = render(&results, None);
        let mut links = 0;
        for piece in page.split("href=\"#").skip(1) {
            let anchor = &piece[..piece.find('"').unwrap()];
            assert_eq!(page.matches(&format!(" id=\"{anchor}\"")).count(), 1, "{anchor}");
            links += 1;
        }
        assert!(links > 20, "{links} links");
    }
}

/// Of turns nothing is called a start.
#[test]
fn turns_of_one_start_are_called_turns() {
    let mut results = results();
    results.scenarios.truncate(1);
    assert!(render(&results, None).contains("<title>starts: "));
    results.scenarios[0].is_held = true;
    let page = render(&results, None);
    assert!(page.contains("<title>turns: ") && !page.contains("<title>starts: "));
}

#[test]
fn the_charts_hold_what_was_measured_and_what_was_published() {
    let page = render(&results(), None);
    for piece in [
        "Rate, packets/s, by frame size</figcaption>",
        "published: Open vSwitch, Xeon L5640",
        "Delay, µs: distribution</figcaption>",
        "<title>weir, 5 starts</title>",
        "<title>published: HP 2920 1,049.0–1,120.0</title>",
        "class=\"bound\"",
    ] {
        assert!(page.contains(piece), "{piece} is not in the page");
    }
}

#[test]
fn dates_read_well() {
    assert_eq!(super::when("2026-11-23T08:00:00Z"), "23 November 2026, 08:00 UTC");
    for odd in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-23T8"] {
        assert_eq!(super::when(odd), odd);
    }
}
