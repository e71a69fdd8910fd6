//! Comparing what we make of random input with what another program makes of it.

use std::{env, fmt, io::Write as _, time::SystemTime};

use super::{PATIENCE, Random, failures};

/// How many random cases are compared, and from which seed on. `WEIR_FUZZ_SEED` and `WEIR_FUZZ_DIFFERENCES` say it, together
/// with a variable of the comparison's own; new cases are tried only where somebody asks for a number.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// Whether somebody asked for a number.
    pub asked: bool,
    /// How many cases are tried.
    pub count: u64,
    /// The seed of the first.
    pub seed: u64,
    /// How many differences are looked for.
    most: usize,
}

impl Comparison {
    /// As many cases as the variable says, or `few` that are always the same.
    #[must_use]
    pub fn from_environment(variable: &str, few: u64) -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs());
        let asked = number(variable);
        let new = || if asked.is_some() { now() } else { 0 };
        Self {
            asked: asked.is_some(),
            count: asked.unwrap_or(few),
            seed: number("WEIR_FUZZ_SEED").unwrap_or_else(new),
            most: number("WEIR_FUZZ_DIFFERENCES").unwrap_or(1) as usize,
        }
    }

    /// The differences, each as small as it could be made. A case fails by panicking.
    pub fn differences(&self, name: &str, case: impl FnMut(&mut Random)) -> Vec<String> {
        // Another program may take its time.
        let patience = if self.asked { PATIENCE * 12 } else { PATIENCE };
        failures(name, self.seed, self.count, self.most, patience, case)
    }

    /// Tells how it ended: past the test harness, which keeps what a successful test prints, if somebody asked.
    ///
    /// # Panics
    /// When there are differences.
    #[track_caller]
    #[allow(clippy::print_stdout, reason = "the harness keeps it for who wants to see it")]
    pub fn conclude(&self, name: &str, tally: impl fmt::Display, differences: &[String]) {
        let Self { count, seed, .. } = self;
        let line = format!(
            "{name}: {count} cases from WEIR_FUZZ_SEED={seed} on: {tally}, {} differ",
            differences.len()
        );
        if self.asked {
            let _ = writeln!(std::io::stderr(), "{line}");
        } else {
            println!("{line}");
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }
}

/// How many cases had which outcome.
#[derive(Debug, Default)]
pub struct Tally {
    /// Which gave the same.
    pub made: u64,
    /// Which failed with both.
    pub failed: u64,
    /// Which the original did not end in the time and memory that it has.
    pub endless: u64,
    /// Which went over our limits.
    pub limited: u64,
    /// Which hold what differs on purpose.
    pub told: u64,
}

impl Tally {
    /// Counts a case. What one of the two did not end is not compared, nor what is `told`.
    ///
    /// # Panics
    /// When the outcomes are not the same.
    #[track_caller]
    pub fn compare<T: fmt::Debug, E: fmt::Debug>(
        &mut self,
        ours: Option<&Result<T, E>>,
        theirs: Option<&Result<T, E>>,
        told: impl FnOnce(&Result<T, E>, &Result<T, E>) -> bool,
        same: impl FnOnce(&Result<T, E>, &Result<T, E>) -> bool,
    ) {
        let count = match (ours, theirs) {
            (_, None) => &mut self.endless,
            (None, _) => &mut self.limited,
            (Some(ours), Some(theirs)) if told(ours, theirs) => &mut self.told,
            (Some(ours), Some(theirs)) => {
                assert!(
                    same(ours, theirs),
                    "\n  ours:     {ours:?}\n  original: {theirs:?}"
                );
                match theirs {
                    Ok(_) => &mut self.made,
                    Err(_) => &mut self.failed,
                }
            }
        };
        *count += 1;
    }

    /// Which were not compared.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.endless + self.limited + self.told
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            made,
            failed,
            endless,
            limited,
            told,
        } = self;
        write!(
            f,
            "{made} gave the same, {failed} failed in the same way, {} were not compared \
             ({endless} endless for the original, {limited} over our limits, {told} known to differ)",
            self.skipped()
        )
    }
}
