//! One loop for all tests that search for inputs that break something.
//!
//! ```
//! testkit::fuzz::run("numbers", |random| {
//!     let text = random.int().to_string();
//!     random.note("text", &text);
//!     assert!(text.parse::<i64>().is_ok());
//! });
//! ```
//!
//! By default a search is short and always the same. `WEIR_FUZZ_SECONDS` gives it that much time and cases that nobody
//! saw before. A failure is made as small as possible, and names the `WEIR_FUZZ_SEED` that begins with it. Tests that
//! search are called `fuzz_*`: `make fuzz` runs exactly these.

mod compare;
mod json;
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

use watch::Watch;

/// What a search tries when nobody asked for more.
const CASES: u64 = 300;
/// When it ends even before that, on a busy machine.
const SHORT: Duration = Duration::from_secs(2);

/// Runs `case` again and again, each time with other random numbers. It fails by panicking.
///
/// # Panics
/// When a case fails, with the smallest one that was found.
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

/// Runs `case` with `cases` seeds from `seed` on, however long that takes, and tells of those that fail, of which `most` are
/// looked for: each as small as it could be made in the time that `patience` gives.
pub fn failures(
    name: &str,
    seed: u64,
    cases: u64,
    most: usize,
    patience: Duration,
    mut case: impl FnMut(&mut Random),
) -> Vec<String> {
    let watch = Watch::start(name);
    let mut failures = Vec::new();
    for seed in seed..seed.saturating_add(cases) {
        if failures.len() >= most {
            break;
        }
        let mut random = Random::seeded(seed);
        watch.begin(seed);
        if let Some(message) = attempt(&mut case, &mut random).or_else(|| watch.end()) {
            failures.push(describe(name, seed, patience, random.taken(), message, &mut case));
        }
    }
    failures
}

/// How long a failure is made smaller.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to search, and from where on.
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

    /// Past the test harness, which keeps what a successful test prints, if somebody waits for it.
    #[allow(clippy::print_stdout, reason = "the harness keeps it for who wants to see it")]
    fn tell(&self, line: &str) {
        if self.time.is_some() {
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            println!("{line}");
        }
    }
}

/// Counts the cases up to the first that fails, and says how that failed.
fn search(plan: &Plan, name: &str, mut case: impl FnMut(&mut Random)) -> (u64, Option<String>) {
    let (started, watch) = (Instant::now(), Watch::start(name));
    let mut cases = 0;
    loop {
        let seed = plan.seed.wrapping_add(cases);
        let mut random = Random::seeded(seed);
        watch.begin(seed);
        let failed = attempt(&mut case, &mut random).or_else(|| watch.end());
        cases += 1;
        if let Some(message) = failed {
            return (
                cases,
                Some(describe(name, seed, PATIENCE, random.taken(), message, case)),
            );
        }
        if plan.is_over(cases, started.elapsed()) {
            return (cases, None);
        }
    }
}

/// Runs a case and returns the message of its panic.
fn attempt(case: &mut impl FnMut(&mut Random), random: &mut Random) -> Option<String> {
    let result = watch::quietly(|| panic::catch_unwind(AssertUnwindSafe(|| case(random))));
    result.1.err().map(|_| {
        result
            .0
            .unwrap_or_else(|| "it panicked on another thread".to_owned())
    })
}

/// Looks for the smallest case that fails like the one that was found.
fn describe(
    name: &str,
    seed: u64,
    patience: Duration,
    found: Vec<u64>,
    message: String,
    mut case: impl FnMut(&mut Random),
) -> String {
    let smallest = shrink::smallest(patience, found, |values| {
        let mut random = Random::replayed(values);
        attempt(&mut case, &mut random).map(|_| random.taken())
    });
    let mut random = Random::replayed(smallest).with_notes();
    let message = attempt(&mut case, &mut random).unwrap_or(message);
    let notes = random.notes().join("\n");
    format!("fuzz {name}: WEIR_FUZZ_SEED={seed} fails, at its smallest with\n{notes}\n{message}")
}
