//! Narration: what is being done, whether it was observed, and how long it took.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    time::{Duration, Instant},
};

use anyhow::Result;

/// One line of the closing table.
#[derive(Debug, Clone)]
struct Line {
    step: String,
    observed: std::result::Result<String, String>,
    took: Duration,
}

/// Tells a story step by step and keeps the score.
#[derive(Debug)]
pub struct Stage {
    started: Instant,
    lines: Vec<Line>,
    colour: bool,
    silent: bool,
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

impl Stage {
    /// An empty stage.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            lines: Vec::new(),
            colour: std::io::stdout().is_terminal(),
            silent: false,
        }
    }

    /// A stage that only keeps the score, for tests: what they print beside their result confuses.
    #[must_use]
    pub fn silent() -> Self {
        Self {
            colour: false,
            silent: true,
            ..Self::new()
        }
    }

    /// Says something that is not a step.
    pub fn say(&self, text: &str) {
        if self.silent {
            return;
        }
        let mut out = std::io::stdout().lock();
        // A closed pipe ends the story for the reader, not for the scenario.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// Plays a step: announces it, awaits it, and notes what was observed. A failed step is noted and returned as an error.
    ///
    /// # Errors
    /// When the step fails.
    pub async fn step<F>(&mut self, title: &str, play: F) -> Result<()>
    where
        F: Future<Output = Result<String>>,
    {
        self.say(&format!("\n-> {title}"));
        let begin = Instant::now();
        let result = play.await;
        let took = begin.elapsed();
        let observed = match &result {
            Ok(seen) => Ok(seen.clone()),
            Err(error) => Err(format!("{error:#}")),
        };
        match &observed {
            Ok(seen) => self.say(&format!("   {} {seen} ({})", self.mark(true), seconds(took))),
            Err(error) => self.say(&format!("   {} {error} ({})", self.mark(false), seconds(took))),
        }
        self.lines.push(Line {
            step: title.to_owned(),
            observed,
            took,
        });
        result.map(|_| ())
    }

    fn mark(&self, good: bool) -> &'static str {
        match (self.colour, good) {
            (true, true) => "\u{1b}[32mok\u{1b}[0m",
            (true, false) => "\u{1b}[31mFAILED\u{1b}[0m",
            (false, true) => "ok",
            (false, false) => "FAILED",
        }
    }

    /// Whether every step so far was observed.
    #[must_use]
    pub fn all_observed(&self) -> bool {
        self.lines.iter().all(|line| line.observed.is_ok())
    }

    /// The closing table.
    #[must_use]
    pub fn table(&self) -> String {
        let width = self
            .lines
            .iter()
            .map(|line| line.step.chars().count())
            .max()
            .unwrap_or(0);
        let mut table = String::from("\n");
        for line in &self.lines {
            let (mark, seen) = match &line.observed {
                Ok(seen) => (self.mark(true), seen),
                Err(error) => (self.mark(false), error),
            };
            let seen = seen.lines().next().unwrap_or_default();
            let _ = writeln!(
                table,
                "  {:<width$}  {:>8}  {mark}  {seen}",
                line.step,
                seconds(line.took)
            );
        }
        let good = self.lines.iter().filter(|line| line.observed.is_ok()).count();
        let total = self.lines.len();
        let _ = writeln!(
            table,
            "\n  {good} of {total} steps observed in {}",
            seconds(self.started.elapsed())
        );
        table
    }
}

/// Seconds with one decimal place.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failed_step_is_returned_and_shown() {
        let mut stage = Stage::silent();
        stage
            .step("works", async { Ok("seen".to_owned()) })
            .await
            .expect("works");
        stage
            .step("breaks", async { anyhow::bail!("not seen") })
            .await
            .expect_err("breaks");
        assert!(!stage.all_observed());
        assert!(
            stage.table().contains("1 of 2 steps observed"),
            "{}",
            stage.table()
        );
        assert!(stage.table().contains("not seen"));
    }
}
