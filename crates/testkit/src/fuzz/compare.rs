//! Compares the results of two programs for random input.

use std::{env, fmt, io::Write as _, time::SystemTime};

use super::{Random, SHRINK_TIME, failures};

/// The number of random cases to compare, and their first seed, from `WEIR_FUZZ_SEED`, `WEIR_FUZZ_DIFFERENCES` and a
/// variable of the comparison's own. Without that variable, few cases are compared, always the same.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// True if the variable sets the number of cases.
    pub asked: bool,
    pub count: u64,
    pub seed: u64,
    /// Number of differences after which the comparison ends.
    most: usize,
}

impl Comparison {
    /// Reads the variable; without it, there are `few` cases, always the same.
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

    /// Returns the differences, each made as small as possible. A case fails by panicking.
    pub fn differences(&self, name: &str, case: impl FnMut(&mut Random)) -> Vec<String> {
        // Another program may take its time.
        let shrink_time = if self.asked { SHRINK_TIME * 12 } else { SHRINK_TIME };
        failures(name, self.seed, self.count, self.most, shrink_time, case)
    }

    /// Prints the result: to standard error if the variable is set, since the test harness hides the output of passing tests.
    ///
    /// # Panics
    /// Panics if there are differences.
    #[track_caller]
    #[allow(clippy::print_stdout, reason = "the harness captures it")]
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

#[derive(Debug, Default)]
pub struct Tally {
    /// Cases with equal results.
    pub made: u64,
    /// Cases that failed with both programs.
    pub failed: u64,
    /// Cases that exceeded time or memory of the original program.
    pub endless: u64,
    /// Cases that exceeded our limits.
    pub limited: u64,
    /// Cases with an intended difference.
    pub intended: u64,
}

impl Tally {
    /// Counts a case. A case that one of the two did not end is not compared, nor is one with an `intended` difference.
    ///
    /// # Panics
    ///
    /// Panics if the outcomes are not the same.
    #[track_caller]
    pub fn compare<T: fmt::Debug, E: fmt::Debug>(
        &mut self,
        ours: Option<&Result<T, E>>,
        theirs: Option<&Result<T, E>>,
        intended: impl FnOnce(&Result<T, E>, &Result<T, E>) -> bool,
        same: impl FnOnce(&Result<T, E>, &Result<T, E>) -> bool,
    ) {
        let count = match (ours, theirs) {
            (_, None) => &mut self.endless,
            (None, _) => &mut self.limited,
            (Some(ours), Some(theirs)) if intended(ours, theirs) => &mut self.intended,
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

    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.endless + self.limited + self.intended
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            made,
            failed,
            endless,
            limited,
            intended,
        } = self;
        write!(
            f,
            "{made} gave the same, {failed} failed in the same way, {} were not compared \
             ({endless} endless for the original, {limited} over our limits, {intended} known to differ)",
            self.skipped()
        )
    }
}
