//! Shows the progress of an operation on stderr.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use engine::{Event, Progress};
use indicatif::ProgressBar;

use crate::terminal::Terminal;

/// Progress display with one status line per deployment item.
#[derive(Debug)]
pub(crate) struct ProgressLines {
    terminal: Terminal,
    /// Status lines by item name; `STEP` and `BARRIER` are the keys of the other two.
    lines: Mutex<HashMap<String, ProgressBar>>,
}

const STEP: &str = "\0step";
const BARRIER: &str = "\0barrier";

impl ProgressLines {
    pub(crate) fn on(terminal: &Terminal) -> Self {
        Self {
            terminal: terminal.clone(),
            lines: Mutex::default(),
        }
    }

    /// Shows a status line, or replaces its message.
    fn show(&self, name: &str, text: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.get(name) {
            Some(line) => line.set_message(text),
            None => {
                if let Some(line) = self.terminal.spinner(&text) {
                    lines.insert(name.to_owned(), line);
                }
            }
        }
    }

    fn remove(&self, name: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.remove(name) {
            line.finish_and_clear();
        }
    }
}

impl Progress for ProgressLines {
    fn tell(&self, event: &Event<'_>) {
        match event {
            Event::Step(text) => {
                self.terminal.info(text);
                self.show(STEP, (*text).to_owned());
            }
            Event::ItemStarted { item } => {
                self.remove(STEP);
                self.show(item, format!("{item}: Applying"));
            }
            Event::Applied { item, done, of } => {
                self.show(item, format!("{item}: Applied {done} of {of} objects"));
            }
            Event::Waiting { item, what } => {
                let text = format!("{item}: {what}");
                self.terminal.info(&text);
                self.show(item, text);
            }
            Event::ItemFinished { item, counts } => {
                self.remove(item);
                let text = format!("{item}: {counts}");
                match (counts.errors, counts.warnings) {
                    (0, 0) => self.terminal.success(&text),
                    (0, _) => self.terminal.warning(&text),
                    _ => self.terminal.failure(&text),
                }
            }
            Event::Barrier { message } => {
                let text = match message {
                    Some(message) => format!("Waiting on barrier: {message}"),
                    None => "Waiting on barrier...".to_owned(),
                };
                self.terminal.info(&text);
                self.show(BARRIER, text);
            }
            Event::BarrierPassed => self.remove(BARRIER),
        }
    }
}

impl Drop for ProgressLines {
    fn drop(&mut self) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.drain().for_each(|(_, line)| line.finish_and_clear());
    }
}
