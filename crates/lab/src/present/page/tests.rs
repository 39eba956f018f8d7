//! The page, as far as it can be judged without a browser; `contrib/page/results.py` has one.

use super::render;
use crate::present::sample::{HOSTILE, hostile, results};
use crate::results::Results;

/// Contents of the script element of that id.
fn script<'p>(page: &'p str, id: &str) -> &'p str {
    let start = format!("<script type=\"application/json\" id=\"{id}\">");
    let from = page.find(&start).unwrap() + start.len();
    &page[from..from + page[from..].find("</script>").unwrap()]
}

#[test]
fn the_page_is_whole_and_needs_nothing_from_elsewhere() {
    let page = render(&results());
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    // uPlot names its home in its licence line, and SVG elements have a namespace.
    let own = page.replace("https://github.com/leeoniya/uPlot", "");
    let own = own.replace("http://www.w3.org/2000/svg", "");
    for word in ["http://", "https://", "src=", "@import", "url(", "NaN<"] {
        assert!(!own.contains(word), "{word}");
    }
    for word in ["prefers-color-scheme: dark", "@media print", "linux-bridge", "<noscript>"] {
        assert!(page.contains(word), "{word} is missing");
    }
    let data = script(&page, "results").len() + script(&page, "view").len();
    let frame = page.len() - data;
    assert!(frame < 200_000, "{frame} bytes beside the data");
}

#[test]
fn the_page_carries_the_results() {
    for results in [results(), hostile()] {
        let page = render(&results);
        let read: Results = serde_json::from_str(script(&page, "results")).unwrap();
        assert!(read == results, "the page holds other data than the results");
    }
}

#[test]
fn hostile_texts_become_no_markup() {
    let page = render(&hostile());
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, render(&results()).matches("<script").count());
    assert!(!page.contains("<script>alert") && !page.contains("<b>line"));
    assert!(!page.contains(HOSTILE), "a text stands there as it is");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"));
}

#[test]
fn each_claim_leads_to_a_row_that_is_there() {
    for results in [results(), hostile()] {
        let page = render(&results);
        let mut links = 0;
        for piece in page.split("class=\"claim\" href=\"#").skip(1) {
            let anchor = &piece[..piece.find('"').unwrap()];
            assert!(page.contains(&format!("<tr id=\"{anchor}\">")), "no row {anchor}");
            links += 1;
        }
        assert!(links > 20, "{links} links");
    }
}

#[test]
fn large_data_are_thinned_and_the_page_says_so() {
    let mut results = results();
    assert!(render(&results).contains("\"thinned\":false"));
    results.scenarios[2].cells[0].trials[0].raw =
        serde_json::json!("x".repeat(super::data::DATA_MAX));
    let page = render(&results);
    assert!(page.contains("\"thinned\":true"));
    let read: Results = serde_json::from_str(script(&page, "results")).unwrap();
    let distribution = &read.scenarios[2].cells[0].distributions[0];
    let whole = &results.scenarios[2].cells[0].distributions[0];
    assert_eq!(distribution.quantiles.len(), 41);
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    assert_eq!(distribution.quantiles.last(), whole.quantiles.last());
    assert!(read.scenarios[2].cells[0].rows == results.scenarios[2].cells[0].rows);
}
