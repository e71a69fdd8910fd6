//! The loop of all tests that search for inputs that break something.
//!
//! ```
//! testkit::fuzz::run("numbers", |random| {
//!     let text = random.int().to_string();
//!     random.note("text", &text);
//!     assert!(text.parse::<i64>().is_ok());
//! });
//! ```
//!
//! By default a search is short and always the same. `WEIR_FUZZ_SECONDS` sets its time, and makes its cases new. A failing
//! case is made as small as possible, and its message names the `WEIR_FUZZ_SEED` that begins with it. A case also fails if it
//! takes more than 20 s, or more memory than 256 MiB and 1 KiB for each byte of its input (on Linux). Tests that search are
//! called `fuzz_*`: `make fuzz` runs exactly these.

mod compare;
mod json;
mod memory;
mod random;
mod shrink;
#[cfg(test)]
mod tests;
mod watch;

use std::{
    env,
    io::Write as _,
    panic::{self, AssertUnwindSafe},
    time::{Duration, Instant, SystemTime},
};

pub use compare::{Comparison, Tally};
pub use random::Random;

use memory::Baseline;
use watch::Watch;

const CASES: u64 = 300;
/// Time after which a short search ends even before that, on a busy machine.
const SHORT: Duration = Duration::from_secs(2);

/// Runs `case` with new random numbers until the time is over. A case fails by panicking.
///
/// # Panics
/// Panics if a case fails, with the smallest failing case in the message.
#[track_caller]
pub fn run(name: &str, case: impl FnMut(&mut Random)) {
    let plan = Plan::from_environment();
    let started = Instant::now();
    let (cases, failure) = search(&plan, name, case);
    assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    plan.tell(&format!(
        "fuzz {name}: {cases} cases in {:.1} s",
        started.elapsed().as_secs_f64()
    ));
}

/// Runs `case` with `cases` seeds from `seed` on, without a limit of time, and describes those that fail, at most `most`.
/// Each is made as small as possible within the time `shrink_time`.
pub fn failures(
    name: &str,
    seed: u64,
    cases: u64,
    most: usize,
    shrink_time: Duration,
    mut case: impl FnMut(&mut Random),
) -> Vec<String> {
    let watch = Watch::start(name, SLOW);
    let mut failures = Vec::new();
    for seed in seed..seed.saturating_add(cases) {
        if failures.len() >= most {
            break;
        }
        let mut random = Random::seeded(seed);
        if let Some(message) = watched(&watch, seed, &mut case, &mut random) {
            failures.push(describe(
                name,
                seed,
                shrink_time,
                random.taken(),
                message,
                &mut case,
            ));
        }
    }
    failures
}

/// Time limit of a case, even on a busy machine.
const SLOW: Duration = Duration::from_secs(20);

/// Time for making a failing case smaller.
const SHRINK_TIME: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
struct Plan {
    time: Option<Duration>,
    seed: u64,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let time = number("WEIR_FUZZ_SECONDS").map(Duration::from_secs);
        let new = || {
            SystemTime::UNIX_EPOCH
                .elapsed()
                .map_or(0, |now| now.as_micros() as u64)
        };
        let seed = number("WEIR_FUZZ_SEED").unwrap_or_else(|| if time.is_some() { new() } else { 0 });
        Self { time, seed }
    }

    fn is_over(&self, cases: u64, elapsed: Duration) -> bool {
        match self.time {
            Some(time) => elapsed >= time,
            None => cases >= CASES || elapsed >= SHORT,
        }
    }

    /// Prints a line: to standard error in a search by `make fuzz`, since the test harness hides the output of passing tests.
    #[allow(clippy::print_stdout, reason = "the harness captures it")]
    fn tell(&self, line: &str) {
        if self.time.is_some() {
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            println!("{line}");
        }
    }
}

/// Runs cases up to the first that fails; returns their number and the description of the failure.
fn search(plan: &Plan, name: &str, mut case: impl FnMut(&mut Random)) -> (u64, Option<String>) {
    let (started, watch) = (Instant::now(), Watch::start(name, SLOW));
    let mut cases = 0;
    loop {
        let seed = plan.seed.wrapping_add(cases);
        let mut random = Random::seeded(seed);
        // Short searches run beside all other tests of their crate, whose memory would count.
        let memory = plan.time.map(|_| Baseline::start());
        let failed =
            watched(&watch, seed, &mut case, &mut random).or_else(|| memory?.exceeded(random.input_bytes()));
        cases += 1;
        if let Some(message) = failed {
            return (
                cases,
                Some(describe(name, seed, SHRINK_TIME, random.taken(), message, case)),
            );
        }
        if plan.is_over(cases, started.elapsed()) {
            return (cases, None);
        }
    }
}

/// Runs a case with a seed, and returns its problem. One that took too long is run again: a virtual machine may have stood still meanwhile.
fn watched(
    watch: &Watch,
    seed: u64,
    case: &mut impl FnMut(&mut Random),
    random: &mut Random,
) -> Option<String> {
    let mut run = |random: &mut Random| {
        watch.begin(seed);
        let failed = attempt(case, random);
        (failed, watch.end())
    };
    match run(random) {
        (None, Some(_)) => {
            let (failed, slow) = run(&mut Random::seeded(seed));
            failed.or(slow)
        }
        (failed, _) => failed,
    }
}

fn attempt(case: &mut impl FnMut(&mut Random), random: &mut Random) -> Option<String> {
    let result = watch::quietly(|| panic::catch_unwind(AssertUnwindSafe(|| case(random))));
    result.1.err().map(|_| {
        result
            .0
            .unwrap_or_else(|| "it panicked on another thread".to_owned())
    })
}

/// Describes the smallest failing case that is found from a failing one.
fn describe(
    name: &str,
    seed: u64,
    shrink_time: Duration,
    found: Vec<u64>,
    message: String,
    mut case: impl FnMut(&mut Random),
) -> String {
    let smallest = shrink::smallest(shrink_time, found, |values| {
        let mut random = Random::replayed(values);
        attempt(&mut case, &mut random).map(|_| random.taken())
    });
    let mut random = Random::replayed(smallest).with_notes();
    let message = attempt(&mut case, &mut random).unwrap_or(message);
    let notes = random.notes().join("\n");
    format!("fuzz {name}: WEIR_FUZZ_SEED={seed} fails, at its smallest with\n{notes}\n{message}")
}
