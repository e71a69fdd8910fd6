//! Status messages and prompts on stderr.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    time::Duration,
};

use anstream::ColorChoice;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Prints status messages on stderr: live status lines on a terminal, plain lines elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    interactive: bool,
    bars: MultiProgress,
}

/// A step that takes a while, shown with a spinner on a terminal.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    terminal: &'a Terminal,
    bar: Option<ProgressBar>,
    text: String,
    is_over: bool,
}

const RED: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const YELLOW: anstyle::Style = anstyle::AnsiColor::Yellow.on_default();
const GREEN: anstyle::Style = anstyle::AnsiColor::Green.on_default();

impl Terminal {
    pub(crate) fn new(no_color: bool, debug: bool) -> Self {
        if no_color {
            ColorChoice::Never.write_global();
        }
        let interactive = std::io::stderr().is_terminal() && !debug && std::env::var_os("CI").is_none();
        Self {
            interactive,
            bars: MultiProgress::new(),
        }
    }

    pub(crate) fn start(&self, text: impl Into<String>) -> Step<'_> {
        let text = text.into();
        self.info(&text);
        let bar = self.spinner(&text);
        Step {
            terminal: self,
            bar,
            text,
            is_over: false,
        }
    }

    /// Adds a status line with a spinner; `None` if stderr is not interactive.
    pub(crate) fn spinner(&self, text: &str) -> Option<ProgressBar> {
        if !self.interactive {
            return None;
        }
        let bar = self
            .bars
            .add(ProgressBar::new_spinner().with_message(text.to_owned()));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Some(bar)
    }

    /// Prints an informational line if stderr is not interactive.
    pub(crate) fn info(&self, text: &str) {
        if !self.interactive {
            self.line(GREEN, "i", text);
        }
    }

    pub(crate) fn success(&self, text: &str) {
        self.line(GREEN, "✓", text);
    }

    pub(crate) fn warning(&self, text: &str) {
        self.line(YELLOW, "⚠", text);
    }

    pub(crate) fn failure(&self, text: &str) {
        self.line(RED, "✗", text);
    }

    pub(crate) fn plain(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{text}");
        });
    }

    fn line(&self, style: anstyle::Style, sign: &str, text: &str) {
        self.plain(&format!("{style}{sign}{style:#} {text}"));
    }

    /// Asks a yes/no question. End of input, or stdin without a terminal, means no.
    pub(crate) fn ask(&self, question: &str) -> bool {
        self.ask_or(question, "--yes")
    }

    /// Asks as [`Terminal::ask`] does, for commands whose flag that skips the question has another name.
    pub(crate) fn ask_or(&self, question: &str, flag: &str) -> bool {
        if !std::io::stdin().is_terminal() {
            self.warning(&format!(
                "Failed prompting for '{question}': stdin is not a terminal; use {flag} to skip the confirmation"
            ));
            return false;
        }
        let question = format!("{question} (y/N)");
        self.prompt(&question, parse_answer).unwrap_or(false)
    }

    /// Asks until `parse` accepts the answer. `None` at the end of the input, or if stdin is not a terminal.
    pub(crate) fn choose<T>(&self, question: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        if !std::io::stdin().is_terminal() {
            self.warning(&format!(
                "Failed prompting for '{question}': stdin is not a terminal; use --yes for all, or --name for one of them"
            ));
            return None;
        }
        self.prompt(question, parse)
    }

    fn prompt<T>(&self, question: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.bars.suspend(|| {
            loop {
                let mut err = std::io::stderr();
                let _ = write!(err, "{question} ");
                let _ = err.flush();
                let mut answer = String::new();
                match std::io::stdin().lock().read_line(&mut answer) {
                    Ok(0) | Err(_) => return None,
                    Ok(_) => {}
                }
                if let Some(answer) = parse(&answer) {
                    return Some(answer);
                }
            }
        })
    }
}

/// Replaces control characters, with which foreign strings could change the display of the terminal.
pub(crate) fn printable(text: &str) -> String {
    let replaced = |c: char| {
        if c.is_control() && c != '\n' && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(replaced).collect()
}

impl engine::FetchStatus for Terminal {
    fn show(&self, message: &str) {
        self.info(message);
    }

    fn warn(&self, warning: &str) {
        self.warning(warning);
    }
}

/// Parses the answer to a yes/no question; `None` if it is neither.
fn parse_answer(answer: &str) -> Option<bool> {
    match answer.trim() {
        "y" | "Y" | "yes" | "Yes" | "YES" => Some(true),
        "" | "n" | "N" | "no" | "No" | "NO" => Some(false),
        _ => None,
    }
}

impl Step<'_> {
    pub(crate) fn done(mut self) {
        self.end();
        if self.bar.is_some() {
            self.terminal.success(&self.text);
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
            if self.bar.is_some() {
                self.terminal.failure(&self.text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_yes_no_or_unknown() {
        for (answer, expected) in [
            ("y\n", Some(true)),
            ("YES\n", Some(true)),
            ("\n", Some(false)),
            ("no", Some(false)),
            ("perhaps\n", None),
            ("yEs\n", None),
        ] {
            assert_eq!(parse_answer(answer), expected, "{answer:?}");
        }
    }
}
