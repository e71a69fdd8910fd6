//! Tests of the marks, with ends of a process in between.

use super::*;
use crate::crash_marks::blame::{self, CAPACITY};

fn subject(name: &str, state: u64) -> Subject {
    Subject::new(name, state)
}

/// Ends the process without a shutdown, and starts the next one.
fn crash(ledger: &Ledger) -> Ledger {
    Ledger::after(ledger.marks().flatten().copied().collect())
}

fn begin(ledger: &mut Ledger, names: &[&str]) -> Vec<usize> {
    names
        .iter()
        .map(|name| ledger.begin(subject(name, 1)).unwrap())
        .collect()
}

fn standings(ledger: &mut Ledger, names: &[&str]) -> Vec<Standing> {
    names
        .iter()
        .map(|name| ledger.standing(subject(name, 1)).0)
        .collect()
}

#[test]
fn object_whose_passes_alone_end_the_process_twice_is_set_aside() {
    let mut ledger = Ledger::after(Vec::new());
    begin(&mut ledger, &["bad"]);
    let mut ledger = crash(&ledger);
    assert_eq!(
        standings(&mut ledger, &["bad", "good"]),
        [Standing::Suspect, Standing::Clear]
    );
    begin(&mut ledger, &["bad"]);
    let mut ledger = crash(&ledger);
    assert_eq!(standings(&mut ledger, &["bad"]), [Standing::SetAside]);
    // It stays so without a pass, whatever else happens.
    begin(&mut ledger, &["good"]);
    let mut ledger = crash(&crash(&ledger));
    assert_eq!(
        standings(&mut ledger, &["bad", "good"]),
        [Standing::SetAside, Standing::Suspect]
    );
}

#[test]
fn only_suspect_is_blamed_more_than_what_runs_beside_it() {
    let mut ledger = Ledger::after(Vec::new());
    begin(&mut ledger, &["good", "bad", "other"]);
    let mut ledger = crash(&ledger);
    assert_eq!(
        standings(&mut ledger, &["good", "bad", "other"]),
        [Standing::Suspect; 3]
    );
    let [good] = begin(&mut ledger, &["good"])[..] else {
        panic!()
    };
    ledger.end(good, PassEnd::Complete);
    begin(&mut ledger, &["bad", "beside"]);
    let mut ledger = crash(&ledger);
    assert_eq!(
        standings(&mut ledger, &["good", "bad", "other", "beside"]),
        [
            Standing::Clear,
            Standing::Suspect,
            Standing::Suspect,
            Standing::Suspect
        ]
    );
    begin(&mut ledger, &["bad", "good"]);
    let mut ledger = crash(&ledger);
    assert_eq!(standings(&mut ledger, &["bad"]), [Standing::SetAside]);
    let slots = begin(&mut ledger, &["good", "other", "beside"]);
    slots
        .into_iter()
        .for_each(|slot| ledger.end(slot, PassEnd::Complete));
    assert_eq!(
        standings(&mut ledger, &["good", "other", "beside"]),
        [Standing::Clear; 3]
    );
}

#[test]
fn failed_passes_clear_a_suspect_after_some_and_cut_ones_never() {
    let mut ledger = Ledger::after(Vec::new());
    begin(&mut ledger, &["app"]);
    let mut ledger = crash(&ledger);
    for end in [PassEnd::Partial, PassEnd::Cut, PassEnd::Cut, PassEnd::Partial] {
        let [slot] = begin(&mut ledger, &["app"])[..] else {
            panic!()
        };
        ledger.end(slot, end);
        assert_eq!(standings(&mut ledger, &["app"]), [Standing::Suspect]);
    }
    let [slot] = begin(&mut ledger, &["app"])[..] else {
        panic!()
    };
    ledger.end(slot, PassEnd::Partial);
    assert_eq!(standings(&mut ledger, &["app"]), [Standing::Clear]);
}

#[test]
fn changed_object_that_was_set_aside_is_tried_again_and_one_end_sets_it_aside() {
    let mut ledger = Ledger::after(Vec::new());
    for _ in 0..2 {
        begin(&mut ledger, &["bad"]);
        ledger = crash(&ledger);
    }
    assert_eq!(ledger.standing(subject("bad", 1)).0, Standing::SetAside);
    assert_eq!(ledger.standing(subject("bad", 2)).0, Standing::Suspect);
    let slot = ledger.begin(subject("bad", 2)).unwrap();
    let mut again = crash(&ledger);
    assert_eq!(again.standing(subject("bad", 2)).0, Standing::SetAside);
    ledger.end(slot, PassEnd::Complete);
    assert_eq!(ledger.standing(subject("bad", 2)).0, Standing::Clear);
}

#[test]
fn passes_beyond_the_capacity_have_no_mark() {
    let mut ledger = Ledger::after(Vec::new());
    let slots: Vec<_> = (0..CAPACITY)
        .map(|at| ledger.begin(subject(&at.to_string(), 1)).unwrap())
        .collect();
    assert_eq!(ledger.begin(subject("more", 1)), None);
    let crashed = crash(&ledger);
    assert_eq!(crashed.marks().flatten().count(), CAPACITY / 2);
    slots
        .into_iter()
        .for_each(|slot| ledger.end(slot, PassEnd::Partial));
    assert!(!ledger.end_all() && ledger.begin(subject("more", 1)).is_some());
}

#[test]
fn marks_outlive_an_end_without_a_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let open = || CrashMarks::open(dir.path(), "a/controller", "cluster");
    let bad = subject("bad", 1);
    for standing in [Standing::Clear, Standing::Suspect, Standing::SetAside] {
        let marks = open();
        assert_eq!(marks.standing(bad), standing);
        // As at the end of a process: nothing is dropped, and the lock goes with the file.
        std::mem::forget(marks.begin(bad));
        marks.state.lock().file = None;
    }
    let marks = open();
    assert_eq!(marks.standing(bad), Standing::SetAside);
    // The file is in use, so another process has another one.
    assert_eq!(open().standing(bad), Standing::Clear);
    assert_eq!(
        CrashMarks::open(dir.path(), "a/controller", "other").standing(bad),
        Standing::Clear
    );
    assert_eq!(marks.standing(subject("bad", 2)), Standing::Suspect);
    marks.begin(subject("bad", 2)).end(PassEnd::Complete);
    assert_eq!(marks.standing(bad), Standing::Clear);
}

#[test]
fn shutdown_blames_no_pass_and_leaves_no_file_without_blame() {
    let dir = tempfile::tempdir().unwrap();
    let open = || CrashMarks::open(dir.path(), "controller", "cluster");
    let (good, bad) = (subject("good", 1), subject("bad", 1));
    let marks = open();
    std::mem::forget(marks.begin(bad));
    marks.state.lock().file = None;
    let marks = open();
    let running = marks.begin(good);
    marks.end();
    drop(running);
    let marks = open();
    assert_eq!(
        (marks.standing(good), marks.standing(bad)),
        (Standing::Clear, Standing::Suspect)
    );
    marks.begin(bad).end(PassEnd::Complete);
    marks.end();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn damaged_and_foreign_files_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let open = || CrashMarks::open(dir.path(), "controller", "cluster");
    let names = || (0..50).map(|at| subject(&at.to_string(), 1));
    let mut random = fastrand::Rng::with_seed(37);
    for _ in 0..100 {
        let marks = open();
        names().for_each(|name| std::mem::forget(marks.begin(name)));
        marks.state.lock().file = None;
        let path = std::fs::read_dir(dir.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut bytes = std::fs::read(&path).unwrap();
        match random.u8(..4) {
            0 => bytes.truncate(random.usize(..bytes.len())),
            1 => bytes.extend(b"more"),
            2 => bytes.iter_mut().for_each(|byte| *byte = random.u8(..)),
            _ => (0..20).for_each(|_| bytes[random.usize(..2000)] ^= 1 << random.u8(..8)),
        }
        std::fs::write(&path, &bytes).unwrap();
        let marks = open();
        for name in names() {
            marks.begin(name).end(PassEnd::Complete);
        }
        marks.end();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let marks = CrashMarks::open(&file, "controller", "cluster");
    assert_eq!(marks.standing(subject("app", 1)), Standing::Clear);
    marks.begin(subject("app", 1)).end(PassEnd::Complete);
}

#[test]
fn many_suspects_begin_within_a_minute() {
    for (suspects, seconds) in [(0, 5), (1, 5), (12, 5), (13, 4), (60, 1), (2000, 1)] {
        let time = blame::time_alone(suspects);
        assert_eq!(time.as_secs(), seconds, "{suspects}");
    }
}
