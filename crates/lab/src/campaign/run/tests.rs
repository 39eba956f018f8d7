//! Whole runs of a switch and of methods that do what the test says; no figure is measured, and no
//! clock decides.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use programs::cancel::Cancel;

use super::{CampaignError, Outside, Run, execute_with, programs};
use crate::campaign::fake::{
    Act, TWO_POINTS, campaign, fail_starts, happened, is_all_over, play, still,
};
use crate::campaign::gather::gather;
use crate::campaign::job::{Campaign, head, jobs};
use crate::campaign::ledger::{self, NAME};
use crate::campaign::record::{Record, results_of};
use crate::facts::{BoxFacts, Machine};
use crate::results::{CellResults, CellState, PartEnd, Results, TrialRecord};

fn resumed(text: &str, folder: &Path) -> Campaign {
    Campaign { is_resumed: true, ..campaign(text, folder) }
}

/// The machine does not stall.
fn calm(work: &mut dyn FnMut()) -> f64 {
    work();
    0.0
}

fn machine() -> Machine {
    Machine { real_time_error: None, load_average: "0".to_owned(), ..Machine::read() }
}

fn outside<'a>(watch: &'a dyn Fn(&mut dyn FnMut()) -> f64, machine: Machine) -> Outside<'a> {
    let draw_every = Duration::from_secs(3_600);
    Outside { watch, draw: &|_, _| {}, draw_every, has_floor: false, machine }
}

/// Runs a campaign on a machine that stalls as long as `stalls` say, trial by trial.
fn run_on(campaign: &Campaign, machine: Machine, stalls: &[f64]) -> Result<Results, CampaignError> {
    let stalls = RefCell::new(stalls.iter().copied().collect::<VecDeque<f64>>());
    let watch = |work: &mut dyn FnMut()| {
        work();
        stalls.borrow_mut().pop_front().unwrap_or(0.0)
    };
    let outside = outside(&watch, machine);
    results(execute_with(campaign, &Cancel::default(), &outside))
}

fn results(of: Result<Record, CampaignError>) -> Result<Results, CampaignError> {
    of.map(|record| record.results().unwrap())
}

pub(in crate::campaign) fn run(campaign: &Campaign) -> Result<Results, CampaignError> {
    run_on(campaign, machine(), &[])
}

fn cells(results: &Results) -> &[CellResults] {
    &results.scenarios[0].cells
}

fn errors(trials: &[TrialRecord]) -> Vec<(usize, usize, Option<&str>)> {
    trials.iter().map(|one| (one.start, one.attempt, one.error.as_deref())).collect()
}

/// The results without all that depends on the time and the number of parts.
fn timeless(results: &Results) -> Results {
    let mut results = results.clone();
    results.started = String::new();
    results.duration_s = 0.0;
    results.parts = Vec::new();
    results.notes.retain(|note| !note.starts_with("Measured in 2 parts"));
    for cell in results.scenarios.iter_mut().flat_map(|scenario| &mut scenario.cells) {
        // The folder of each start has another name.
        cell.commands = Vec::new();
        cell.trials.iter_mut().for_each(|trial| trial.stall_ms = 0.0);
    }
    results
}

#[test]
fn a_trial_in_which_the_machine_stalled_is_made_again_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    play(&[Act::Yields(70.0), Act::Yields(1.0), Act::Yields(2.0)]);
    let results = run_on(&campaign(TWO_POINTS, folder.path()), machine(), &[51.0, 49.0]).unwrap();
    let first = &cells(&results)[0];
    let stalled = Some("the machine stalled for 51 ms");
    assert_eq!(errors(&first.trials), [(0, 0, stalled), (0, 1, None), (1, 0, None)]);
    assert_eq!(first.rows[0].samples, [1.0, 1.0], "what stalled is no sample");
    assert_eq!(cells(&results)[1].rows[0].samples, [2.0, 1.0]);
    let expected = ["start", "trial", "trial", "trial", "start", "trial", "trial"];
    assert_eq!(happened(), expected, "the switch goes on");
    // Three attempts, and the second start.
    play(&[]);
    let stalls = [80.0, 90.0, 100.0];
    let results = run_on(&campaign(TWO_POINTS, folder.path()), machine(), &stalls).unwrap();
    let first = &cells(&results)[0];
    assert_eq!((first.trials.len(), &first.rows[0].samples[..]), (4, &[1.0][..]));
    assert_eq!(first.trials[2].error.as_deref(), Some("the machine stalled for 100 ms"));
}

#[test]
fn what_an_attempt_has_spent_is_started_anew_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    play(&[]);
    let text =
        TWO_POINTS.replace("\"fake\"", "\"fake-spender\"").replace("starts = 2", "starts = 1");
    let results = run_on(&campaign(&text, folder.path()), machine(), &[60.0]).unwrap();
    let expected = ["start", "trial", "start", "trial", "start", "trial"];
    assert_eq!(happened(), expected, "an attempt that stalled, its second, and the other point");
    for cell in cells(&results) {
        assert_eq!(cell.rows[0].samples, [1.0], "{:?}", errors(&cell.trials));
    }
    // The same without that promise of the method: its second attempt fails.
    assert!(results.is_whole());
}

#[test]
fn a_missing_program_is_named_with_its_remedy() {
    let folder = tempfile::tempdir().unwrap();
    play(&[Act::Misses, Act::Yields(1.0), Act::Misses]);
    let results = run(&campaign(TWO_POINTS, folder.path())).unwrap();
    let why = "fakes not installed: apt-get install fakes";
    assert_eq!(cells(&results)[0].trials[0].error.as_deref(), Some(why));
    let note = format!("No figures of Fake: {why}");
    assert_eq!(results.notes.iter().filter(|one| **one == note).count(), 1, "{:?}", results.notes);
}

#[test]
fn a_switch_that_dies_in_a_trial_is_started_anew() {
    let folder = tempfile::tempdir().unwrap();
    play(&[Act::Kills(9.0), Act::Yields(1.0), Act::Fails("no answer")]);
    let results = run(&campaign(TWO_POINTS, folder.path())).unwrap();
    let (first, second) = (&cells(&results)[0], &cells(&results)[1]);
    let died = first.trials[0].error.as_deref().unwrap();
    assert!(died.contains("fake-switch"), "{died}");
    assert_eq!(second.rows[0].samples, [1.0, 1.0]);
    assert_eq!(first.trials[1].error.as_deref(), Some("fake: no answer"));
    assert!(first.rows.is_empty() && matches!(first.state, CellState::Failed(_)));
    let expected = ["start", "trial", "start", "trial", "start", "trial", "trial"];
    assert_eq!(happened(), expected);
    assert!(!results.is_whole());
}

#[test]
fn a_switch_that_does_not_start_is_tried_in_its_next_turn() {
    let folder = tempfile::tempdir().unwrap();
    play(&[]);
    fail_starts(1);
    let results = run(&campaign(TWO_POINTS, folder.path())).unwrap();
    for cell in cells(&results) {
        assert_eq!(cell.state, CellState::Measured);
        assert_eq!(cell.rows[0].samples, [1.0]);
        assert_eq!(cell.trials[0].method, "start");
        let error = cell.trials[0].error.as_deref();
        assert_eq!(error, Some("switch under test: does not come up"));
    }
}

#[test]
fn a_run_that_was_cut_off_is_gone_on_with_by_whole_starts() {
    let (folder, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // The first start serves both points; the second is interrupted behind its first point.
    play(&[Act::Yields(1.0), Act::Yields(2.0), Act::Yields(7.0), Act::Interrupts]);
    let error = run(&campaign(TWO_POINTS, folder.path())).unwrap_err();
    assert!(matches!(error, CampaignError::Stopped(_)), "{error}");
    happened();
    play(&[Act::Yields(3.0), Act::Yields(4.0)]);
    let results = run(&resumed(TWO_POINTS, folder.path())).unwrap();
    assert_eq!(happened(), ["start", "trial", "trial"]);
    let samples: Vec<&[f64]> =
        cells(&results).iter().map(|cell| cell.rows[0].samples.as_slice()).collect();
    assert_eq!(samples, [[1.0, 3.0], [2.0, 4.0]], "the start that was cut off is void");
    let ends: Vec<Option<PartEnd>> = results.parts.iter().map(|part| part.end).collect();
    assert_eq!(ends, [Some(PartEnd::Interrupted), Some(PartEnd::Whole)]);
    let sum: f64 = results.parts.iter().filter_map(|part| part.duration_s).sum();
    assert!((results.duration_s - sum).abs() < 1e-9, "all parts count");
    assert!(results.started == results.parts[0].started);
    assert!(cells(&results)[0].commands.iter().any(|one| one.contains("sleep")));

    play(&[Act::Yields(1.0), Act::Yields(2.0), Act::Yields(3.0), Act::Yields(4.0)]);
    let at_once = run(&campaign(TWO_POINTS, whole.path())).unwrap();
    assert!(timeless(&at_once) == timeless(&results), "both tell the same");
}

#[test]
fn what_is_through_is_not_measured_again_nor_is_its_floor() {
    let folder = tempfile::tempdir().unwrap();
    let outside = Outside { has_floor: true, ..outside(&calm, machine()) };
    let cancel = Cancel::default();
    play(&[]);
    let first =
        results(execute_with(&campaign(TWO_POINTS, folder.path()), &cancel, &outside)).unwrap();
    let of_turn = ["floor", "floor", "start", "trial", "trial"];
    assert_eq!(happened(), [of_turn, of_turn].concat());
    assert_eq!(cells(&first)[1].rows[0].floor, Some(0.5));
    play(&[]);
    let again =
        results(execute_with(&resumed(TWO_POINTS, folder.path()), &cancel, &outside)).unwrap();
    assert_eq!(happened(), Vec::<&str>::new());
    assert!(timeless(&first) == timeless(&again));
    assert!(again.duration_s >= first.duration_s);
}

#[test]
fn cells_without_time_are_named_and_measured_when_resumed() {
    let folder = tempfile::tempdir().unwrap();
    play(&[]);
    let short = Campaign { limit: Some(Duration::ZERO), ..campaign(TWO_POINTS, folder.path()) };
    let results = run(&short).unwrap();
    assert!(happened().is_empty());
    for cell in cells(&results) {
        assert!(matches!(&cell.state, CellState::Skipped(why) if why.contains("budget")));
    }
    assert!(results.notes.iter().any(|note| note.contains("no time left")), "{:?}", results.notes);
    let results = run(&resumed(TWO_POINTS, folder.path())).unwrap();
    assert!(cells(&results).iter().all(|cell| cell.state == CellState::Measured));
}

/// Two points with a start each, which serves three turns.
fn held() -> String {
    let text =
        TWO_POINTS.replace("\"frame_size\"\nvalues = [64, 128]", "\"ports\"\nvalues = [2, 3]");
    text.replace("starts = 2", "starts = 3\nis_held = true")
}

fn samples(results: &Results) -> Vec<&[f64]> {
    cells(results).iter().map(|cell| cell.rows[0].samples.as_slice()).collect()
}

#[test]
fn held_switches_are_started_once_and_measured_there_and_back() {
    let folder = tempfile::tempdir().unwrap();
    play(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Act::Yields));
    let results = run(&campaign(&held(), folder.path())).unwrap();
    assert_eq!(samples(&results), [[1.0, 4.0, 5.0], [2.0, 3.0, 6.0]], "A B B A A B");
    let expected = ["start", "trial", "start", "trial", "trial", "trial", "trial", "trial"];
    assert_eq!(happened(), expected);
    assert_eq!(still(), [0, 1, 1, 1, 1, 0], "all but the one that is measured");
    assert!(is_all_over() && results.is_whole());
}

#[test]
fn a_switch_that_dies_while_held_is_named_and_started_anew() {
    let folder = tempfile::tempdir().unwrap();
    let [two, three] = [2.0, 3.0].map(Act::Yields);
    play(&[Act::Yields(1.0), Act::KillsHeld(7.0), two, Act::Yields(9.0), three]);
    let results = run(&campaign(&held(), folder.path())).unwrap();
    assert_eq!(
        samples(&results),
        [&[1.0, 3.0][..], &[7.0, 2.0, 1.0]],
        "what is dead yields nothing"
    );
    let died = cells(&results)[0].trials[1].error.as_deref().unwrap();
    assert!(died.contains("fake-switch"), "{died}");
    let expected =
        ["start", "trial", "start", "trial", "trial", "trial", "start", "trial", "trial"];
    assert_eq!(happened(), expected);
    assert!(is_all_over());
}

#[test]
fn an_interrupted_run_leaves_no_switch_that_is_held() {
    let folder = tempfile::tempdir().unwrap();
    play(&[Act::Yields(1.0), Act::Yields(2.0), Act::Interrupts]);
    let error = run(&campaign(&held(), folder.path())).unwrap_err();
    assert!(matches!(error, CampaignError::Stopped(_)), "{error}");
    assert_eq!(still(), [0, 1, 1]);
    assert!(is_all_over());
    play(&[3.0, 4.0, 5.0, 6.0].map(Act::Yields));
    let results = run(&resumed(&held(), folder.path())).unwrap();
    assert_eq!(samples(&results), [[1.0, 4.0, 5.0], [2.0, 3.0, 6.0]]);
    let expected = ["start", "trial", "start", "trial", "trial", "trial"];
    assert_eq!(happened(), expected, "what is through is not measured again");
    run(&resumed(&held(), folder.path())).unwrap();
    assert!(happened().is_empty(), "nor started");
}

#[test]
fn a_changed_box_ends_a_resumed_campaign() {
    let folder = tempfile::tempdir().unwrap();
    let first = BoxFacts {
        address: "root@h".to_owned(),
        host: "one".to_owned(),
        weir: "1".to_owned(),
        machine: Some(machine()),
    };
    play(&[Act::Interrupts]);
    let campaign = campaign(TWO_POINTS, folder.path());
    run(&campaign).unwrap_err();
    let outside = outside(&|_| 0.0, machine());
    let cancel = Cancel::default();
    let with_ledger = || {
        let (file, lines) = ledger::resume(folder.path(), &head(&campaign)).unwrap();
        Run::new(&campaign, file, Record::of(lines), &cancel, &outside)
    };
    // Known from the first part on, and by what a ledger says of it.
    with_ledger().check_box(first.clone()).unwrap();
    with_ledger().check_box(BoxFacts { host: "renamed".to_owned(), ..first.clone() }).unwrap();
    with_ledger().check_box(BoxFacts { address: "root@i".to_owned(), ..first.clone() }).unwrap();
    let kernel = Machine { kernel: "Linux 1.2".to_owned(), ..machine() };
    let other = BoxFacts { weir: "2".to_owned(), machine: Some(kernel), ..first };
    let reason = with_ledger().check_box(other).unwrap_err().to_string();
    let what = "other conditions (the box of the agent root@h: weir: 1, now 2; kernel: ";
    assert!(reason.contains(what), "{reason}");
}

#[test]
fn a_run_is_not_gone_on_with_under_other_conditions() {
    let folder = tempfile::tempdir().unwrap();
    play(&[Act::Interrupts]);
    run(&campaign(TWO_POINTS, folder.path())).unwrap_err();
    let before = std::fs::read(folder.path().join(NAME)).unwrap();
    let other = Machine { kernel: "Linux 1.2".to_owned(), ..machine() };
    let resumed_on = |machine: Machine| run_on(&resumed(TWO_POINTS, folder.path()), machine, &[]);
    let reason = resumed_on(other).unwrap_err().to_string();
    assert!(reason.contains("measured under other conditions (kernel: "), "{reason}");
    assert!(reason.contains(", now Linux 1.2): "), "{reason}");
    let refused = Machine { real_time_error: Some("not permitted".to_owned()), ..machine() };
    let error = resumed_on(refused).unwrap_err();
    assert!(error.to_string().contains("real time: permitted, now not permitted"), "{error}");
    let more = TWO_POINTS.replace("[64, 128]", "[64, 128, 256]");
    let error = run(&resumed(&more, folder.path())).unwrap_err();
    assert!(error.to_string().contains("other scenarios"), "{error}");
    assert_eq!(std::fs::read(folder.path().join(NAME)).unwrap(), before, "nothing was written");
    // A machine that was started anew is the same, and both starts of it are named.
    let rebooted = Machine { id: "ffffffff".to_owned(), ..machine() };
    play(&[]);
    let results = resumed_on(rebooted).unwrap();
    assert_eq!(results.machines.len(), 2);
    assert_eq!(cells(&results)[0].trials[0].machine, "ffffffff");
    let text = String::from_utf8(before).unwrap().replacen("\"format\":5", "\"format\":4", 1);
    std::fs::write(folder.path().join(NAME), text).unwrap();
    let reason = resumed_on(machine()).unwrap_err().to_string();
    assert!(reason.contains("another version of weir (form 4, and this one reads 5)"), "{reason}");
}

#[test]
fn gathered_jobs_have_the_results_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let order = |name: &str| {
        let of = folder.path().join(name);
        std::fs::create_dir(&of).unwrap();
        (of.clone(), campaign(TWO_POINTS, &of))
    };
    let acts = [1.0, 2.0, 3.0, 4.0].map(Act::Yields);
    play(&acts);
    let whole = run(&order("whole").1).unwrap();
    let names: Vec<&str> = whole.programs.iter().map(|program| program.name.as_str()).collect();
    assert_eq!(names, ["fake-switch"], "no program that did not take part");

    play(&acts);
    let measured = |name: &str, job: usize| {
        let (path, order) = order(name);
        run(&Campaign { job: Some(job), ..order }).map(|_| path)
    };
    assert_eq!(jobs(&campaign(TWO_POINTS, folder.path()), false).len(), 2);
    let mut ledgers = vec![measured("0", 0).unwrap(), measured("1", 1).unwrap()];
    let reason = measured("2", 2).unwrap_err().to_string();
    assert!(reason.contains("there are 2 jobs"), "{reason}");
    let out = order("out").0;
    let (gathered, missing) = gather(&ledgers, &out).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(timeless(&gathered) == timeless(&whole));

    // The second job failed first, and was cut off then.
    play(&[Act::Fails("no answer"), Act::Yields(9.0), Act::Yields(9.0), Act::Yields(9.0)]);
    let (failed, torn) = (measured("failed", 1).unwrap(), measured("torn", 1).unwrap());
    let file = torn.join(NAME);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 30]).unwrap();
    ledgers.splice(1..1, [failed.clone(), torn]);
    assert!(timeless(&gather(&ledgers, &out).unwrap().0) == timeless(&whole));
    let (_, missing) = gather(&ledgers[..2], &out).unwrap();
    assert_eq!(missing, ["job 1 of 2: fakes on fake-switch: fake: fake: no answer"]);
    let (gathered, missing) = gather(&ledgers[..1], &out).unwrap();
    assert_eq!(missing, ["job 1 of 2: no result"]);
    assert_eq!(samples(&gathered), [[1.0], [2.0]]);
    assert!(!gathered.notes.iter().any(|note| note.contains("parts")));
    // What is missing is measured by a run that goes on.
    play(&[3.0, 4.0].map(Act::Yields));
    let resumed = run(&resumed(TWO_POINTS, &out)).unwrap();
    assert_eq!(samples(&resumed), samples(&whole));

    let reason = gather(&ledgers, &ledgers[0]).unwrap_err().to_string();
    assert!(reason.contains("is gathered, and would be replaced"), "{reason}");
    let reason = gather(&[folder.path().join("whole")], &out).unwrap_err().to_string();
    assert!(reason.contains("is no ledger of a job"), "{reason}");
    let huge = std::fs::read_to_string(ledgers[0].join(NAME)).unwrap();
    assert!(huge.contains("[0,2]"));
    let file = folder.path().join("huge");
    std::fs::write(&file, huge.replace("[0,2]", "[0,1099511627776]")).unwrap();
    let reason = gather(&[file], &out).unwrap_err().to_string();
    assert!(
        reason.ends_with("is of job 0 of 1099511627776; a plan has 100000 at most"),
        "{reason}"
    );
    let other = order("other").1;
    play(&[]);
    run(&Campaign { job: Some(1), is_quick: true, ..other }).unwrap();
    ledgers.push(folder.path().join("other"));
    let reason = gather(&ledgers, &out).unwrap_err().to_string();
    assert!(reason.contains("of another campaign") && reason.contains("quick"), "{reason}");
}

#[test]
fn a_refused_real_time_stands_in_the_results() {
    let folder = tempfile::tempdir().unwrap();
    play(&[]);
    let refused =
        Machine { real_time_error: Some("Operation not permitted".to_owned()), ..machine() };
    let results = run_on(&campaign(TWO_POINTS, folder.path()), refused, &[]).unwrap();
    let says = |note: &String| note.contains("real time (Operation not permitted)");
    assert!(results.notes.iter().any(says), "{:?}", results.notes);
}

#[test]
fn the_programs_of_a_controller_and_of_a_method_are_named() {
    let text = TWO_POINTS
        .replace("[\"fake\"]", "[\"ping\"]")
        .replace("\"learning\"", "\"controller\"\ncontroller = \"weir\"\nversion = \"1.0\"");
    let folder = tempfile::tempdir().unwrap();
    let mut campaign = campaign(&text, folder.path());
    campaign.paths.weir = PathBuf::from("/bin/echo");
    let (programs, _) = programs(&campaign);
    let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    assert!(names.contains(&"weir"), "the controller: {names:?}");
    assert!(!names.iter().any(|name| name.starts_with("iperf")), "{names:?}");
    let is_here = programs::tools::Tool::PING.find().is_ok();
    assert_eq!(names.contains(&"ping"), is_here, "{names:?}");
}

#[test]
fn a_run_is_drawn_between_its_jobs_and_where_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = RefCell::new(Vec::new());
    let draw = |results: &Results, state: Option<&str>| {
        let samples = samples(results).concat();
        drawn.borrow_mut().push((samples.len(), state.map(str::to_owned)));
    };
    let outside = Outside { draw: &draw, draw_every: Duration::ZERO, ..outside(&calm, machine()) };
    play(&[Act::Yields(1.0), Act::Yields(2.0), Act::Interrupts]);
    let order = campaign(TWO_POINTS, folder.path());
    execute_with(&order, &Cancel::default(), &outside).unwrap_err();
    let drawn = drawn.take();
    assert_eq!((drawn.len(), drawn[0].0, drawn[1].clone()), (2, 2, (2, None)));
    assert!(drawn[0].1.as_ref().is_some_and(|state| state == "2 of 4 steps"));
}

/// The ratio of both switches is 0.5, after the first start of the plan that of an outlier.
#[test]
fn headlines_have_further_starts_until_their_ratio_is_sure() {
    let folder = tempfile::tempdir().unwrap();
    let of_start = |first: f64| [first, 1.0, 2.0, 1.0].map(Act::Yields);
    let further = [1.0, 2.0].map(Act::Yields).repeat(30);
    play(&[of_start(1.1), of_start(1.0)].concat().into_iter().chain(further).collect::<Vec<_>>());
    let order = campaign(TWO_POINTS, folder.path());
    let duts = ["fake-switch", "fake-other"].map(|name| crate::dut::find(name).unwrap());
    let order = Campaign { duts: duts.to_vec(), ..order };
    let whole =
        run(&Campaign { limit: Some(Duration::from_secs(3_600)), ..order.clone() }).unwrap();
    let starts = |results: &Results| -> Vec<usize> {
        cells(results).iter().map(|cell| cell.rows[0].samples.len()).collect()
    };
    let counts = starts(&whole);
    assert!(counts[0] > 3 && counts[0] == counts[1], "{counts:?}");
    assert_eq!(counts[2..], [2, 2], "a point that is no headline has none");
    let ratio = cells(&whole)[0].rows[0].beside(&cells(&whole)[1].rows[0]).unwrap();
    assert!(ratio.high / ratio.estimate <= 1.05, "{ratio:?}");
    let note = format!("was over: fakes {}", counts[0] - 2);
    assert!(whole.notes.iter().any(|one| one.ends_with(&note)), "{:?}", whole.notes);
    // None where the number was chosen, or a quick run is for a look.
    for order in
        [Campaign { starts: Some(2), ..order.clone() }, Campaign { is_quick: true, ..order }]
    {
        play(&[of_start(1.1), of_start(1.0)].concat());
        assert_eq!(starts(&run(&order).unwrap()), [2; 4]);
    }
}

/// Its scenario, switch and methods may be others by then.
#[test]
fn a_ledger_is_read_by_a_lab_that_lacks_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    play(&[1.0, 2.0, 3.0, 4.0].map(Act::Yields));
    let results = run(&campaign(TWO_POINTS, folder.path())).unwrap();
    let file = folder.path().join(NAME);
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("fake-switch", "other-switch").replace("\"fake\"", "\"other\"");
    let text = text.replace("forwarding = ", "forwards = ");
    std::fs::write(&file, text).unwrap();
    let read = results_of(folder.path()).unwrap();
    assert_eq!(samples(&read), samples(&results));
    assert_eq!((cells(&read)[0].dut.as_str(), read.scenarios[0].starts), ("other-switch", 2));
    assert_eq!(read.scenarios[0].metrics, results.scenarios[0].metrics);
}

/// The ledger is the only file of a run, so that nothing is measured that it does not hold.
#[test]
fn a_run_ends_where_its_ledger_finds_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let outside = outside(&|_| 0.0, machine());
    let campaign = campaign(TWO_POINTS, folder.path());
    let (full, cancel) = (std::fs::File::create("/dev/full").unwrap(), Cancel::default());
    let jobs = jobs(&campaign, false);
    play(&[]);
    let mut run = Run::new(&campaign, full, Record::default(), &cancel, &outside);
    let reason = run.jobs(&jobs).unwrap_err().to_string();
    assert!(reason.contains("No space left") && reason.contains("--resume"), "{reason}");
    assert!(happened() == ["start"] && is_all_over());
}
