//! Prints the steps of a scenario with their results and times.

use std::{
    fmt::Write as _,
    io::{IsTerminal, Write as _},
    time::{Duration, Instant},
};

use anyhow::Result;

#[derive(Debug, Clone)]
struct Line {
    step: String,
    observed: std::result::Result<String, String>,
    took: Duration,
}

#[derive(Debug)]
pub struct Report {
    started: Instant,
    lines: Vec<Line>,
    colour: bool,
    silent: bool,
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl Report {
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            lines: Vec::new(),
            colour: std::io::stdout().is_terminal(),
            silent: false,
        }
    }

    #[must_use]
    pub fn silent() -> Self {
        Self {
            colour: false,
            silent: true,
            ..Self::new()
        }
    }

    pub fn print(&self, text: &str) {
        if self.silent {
            return;
        }
        let mut out = std::io::stdout().lock();
        // A closed pipe must not end the scenario.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// Runs a step: prints its title, awaits it, and records its result, a description of the observed state.
    pub async fn step<F>(&mut self, title: &str, play: F) -> Result<()>
    where
        F: Future<Output = Result<String>>,
    {
        self.print(&format!("\n-> {title}"));
        let begin = Instant::now();
        let result = play.await;
        let took = begin.elapsed();
        let observed = match &result {
            Ok(seen) => Ok(seen.clone()),
            Err(error) => Err(format!("{error:#}")),
        };
        match &observed {
            Ok(seen) => self.print(&format!("   {} {seen} ({})", self.mark(true), seconds(took))),
            Err(error) => self.print(&format!("   {} {error} ({})", self.mark(false), seconds(took))),
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

    #[must_use]
    pub fn all_passed(&self) -> bool {
        self.lines.iter().all(|line| line.observed.is_ok())
    }

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
        for line in &self.lines {
            if let Err(error) = line.observed.as_ref().map_err(|error| error.trim_end())
                && error.contains('\n')
            {
                let _ = writeln!(table, "\n  {}:\n{error}", line.step);
            }
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

#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn step_returns_and_records_an_error() {
        let mut report = Report::silent();
        report
            .step("works", async { Ok("seen".to_owned()) })
            .await
            .expect("works");
        report
            .step("breaks", async {
                anyhow::bail!("not seen; it last said:\nport taken")
            })
            .await
            .expect_err("breaks");
        assert!(!report.all_passed());
        assert!(
            report.table().contains("1 of 2 steps observed"),
            "{}",
            report.table()
        );
        assert!(
            report
                .table()
                .contains("breaks:\nnot seen; it last said:\nport taken"),
            "{}",
            report.table()
        );
    }
}
