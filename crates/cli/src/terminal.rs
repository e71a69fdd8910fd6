//! What is said on stderr while a command works, and what is asked.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    time::Duration,
};

use anstream::ColorChoice;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Says on stderr what happens: lines that live on a terminal, and plain ones elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Terminal {
    lively: bool,
    bars: MultiProgress,
}

/// Something that takes a while.
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
    /// The one of this process.
    pub(crate) fn new(no_color: bool, debug: bool) -> Self {
        if no_color {
            ColorChoice::Never.write_global();
        }
        let lively = std::io::stderr().is_terminal() && !debug && std::env::var_os("CI").is_none();
        Self {
            lively,
            bars: MultiProgress::new(),
        }
    }

    /// Begins something.
    pub(crate) fn start(&self, text: impl Into<String>) -> Step<'_> {
        let text = text.into();
        self.unless_lively(&text);
        let bar = self.spinner(&text);
        Step {
            terminal: self,
            bar,
            text,
            is_over: false,
        }
    }

    /// A line that lives until it is finished; none where nothing lives.
    pub(crate) fn spinner(&self, text: &str) -> Option<ProgressBar> {
        if !self.lively {
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

    /// Says something where nothing lives.
    pub(crate) fn unless_lively(&self, text: &str) {
        if !self.lively {
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

    /// Prints text above what lives.
    pub(crate) fn plain(&self, text: &str) {
        self.bars.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{text}");
        });
    }

    fn line(&self, style: anstyle::Style, sign: &str, text: &str) {
        self.plain(&format!("{style}{sign}{style:#} {text}"));
    }

    /// Asks a question; nobody there, or no answer, means no.
    pub(crate) fn ask(&self, question: &str) -> bool {
        if !std::io::stdin().is_terminal() {
            self.warning(&format!(
                "Failed prompting for '{question}': there is no terminal to ask at; --yes answers in advance"
            ));
            return false;
        }
        self.bars.suspend(|| {
            loop {
                let mut err = std::io::stderr();
                let _ = write!(err, "{question} (y/N) ");
                let _ = err.flush();
                let mut answer = String::new();
                match std::io::stdin().lock().read_line(&mut answer) {
                    Ok(0) | Err(_) => return false,
                    Ok(_) => {}
                }
                if let Some(answer) = understood(&answer) {
                    return answer;
                }
            }
        })
    }
}

/// Yes or no; `None` for anything else.
fn understood(answer: &str) -> Option<bool> {
    match answer.trim() {
        "y" | "Y" | "yes" | "Yes" | "YES" => Some(true),
        "" | "n" | "N" | "no" | "No" | "NO" => Some(false),
        _ => None,
    }
}

impl Step<'_> {
    /// Ends well.
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
    fn answers() {
        for (answer, expected) in [
            ("y\n", Some(true)),
            ("YES\n", Some(true)),
            ("\n", Some(false)),
            ("no", Some(false)),
            ("perhaps\n", None),
            ("yEs\n", None),
        ] {
            assert_eq!(understood(answer), expected, "{answer:?}");
        }
    }
}
