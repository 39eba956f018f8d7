//! Further parts of a campaign's page while it is served: the state of the campaign, and the script
//! that follows it.

use crate::campaign::follow::{CampaignState, Seen};
use crate::present::markup::{Markup, markup, script_json};
use crate::present::number::{count, duration, number};

/// Follows the campaign.
pub(super) const SCRIPT: &str = include_str!("../assets/live.js");

/// Of how the campaign stands: a word, and the class of its chip.
fn word(standing: CampaignState) -> (&'static str, &'static str) {
    match standing {
        CampaignState::Waiting => ("waiting", "even"),
        CampaignState::Running => ("measuring", "ahead"),
        CampaignState::Silent => ("silent", "caution"),
        CampaignState::Ended => ("through", "even"),
        CampaignState::Interrupted => ("interrupted", "caution"),
        CampaignState::CutOff => ("cut off", "behind"),
        CampaignState::Unreadable => ("not readable", "behind"),
    }
}

/// The panel above the results. The script fills it anew from the same numbers.
pub(super) fn panel(seen: &Seen) -> Markup {
    let (label, class) = word(seen.standing);
    let json = serde_json::to_string(seen).expect("what is seen is representable as JSON");
    let (title, done, of, left) = match &seen.step {
        Some(step) => (step.title.as_str(), step.done, step.of.max(1), duration(step.left_s)),
        None => ("", 0, 1, String::new()),
    };
    let trials = match seen.failed {
        0 => number(seen.trials as f64, 0),
        failed => {
            let without = count(failed, "without a figure", "without a figure");
            format!("{}, {without}", number(seen.trials as f64, 0))
        }
    };
    markup!(
        "<aside id=\"live\" class=\"live card\" aria-label=\"The campaign\">\
         <p class=\"live-head\"><span class=\"chip {}\" id=\"live-word\" role=\"status\">{}</span> \
         <span id=\"live-words\">{}</span></p>\
         <div id=\"live-step\"{}><p class=\"live-now\" id=\"live-title\">{}</p>\
         <progress id=\"live-bar\" max=\"{}\" value=\"{}\" aria-label=\"Steps\"></progress>\
         <dl class=\"live-facts\"><div><dt>Steps</dt><dd id=\"live-steps\">{} of {}</dd></div>\
         <div><dt>Gone</dt><dd id=\"live-gone\">{}</dd></div>\
         <div><dt>Left, about</dt><dd id=\"live-left\">{}</dd></div>\
         <div><dt>Trials</dt><dd id=\"live-trials\">{}</dd></div>\
         <div><dt>Last line</dt><dd id=\"live-age\">{} ago</dd></div></dl></div>\
         <p class=\"chip caution\" id=\"live-gone-away\" hidden></p>\
         <script type=\"application/json\" id=\"live-seen\">{}</script></aside>",
        class,
        label,
        seen.words,
        seen.step.is_none().then(|| markup!(" hidden")),
        title,
        of.to_string(),
        done.to_string(),
        number(done as f64, 0),
        number(of as f64, 0),
        duration(seen.elapsed_s),
        left,
        trials,
        duration(seen.age_s),
        script_json(&json)
    )
}
