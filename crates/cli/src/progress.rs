//! Tells on a terminal how an operation goes.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use engine::{Event, Progress};
use indicatif::ProgressBar;

use crate::terminal::Terminal;

/// Shows what happens: a line for each item that is worked on.
#[derive(Debug)]
pub(crate) struct Shown {
    terminal: Terminal,
    /// What lives on the terminal, by item; the step and the barrier have names of their own.
    lines: Mutex<HashMap<String, ProgressBar>>,
}

const STEP: &str = "\0step";
const BARRIER: &str = "\0barrier";

impl Shown {
    pub(crate) fn on(terminal: &Terminal) -> Self {
        Self {
            terminal: terminal.clone(),
            lines: Mutex::default(),
        }
    }

    /// Shows a text that stays until it is replaced or taken away.
    fn live(&self, name: &str, text: String) {
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

    fn take(&self, name: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.remove(name) {
            line.finish_and_clear();
        }
    }
}

impl Progress for Shown {
    fn tell(&self, event: &Event<'_>) {
        match event {
            Event::Step(text) => {
                self.terminal.unless_lively(text);
                self.live(STEP, (*text).to_owned());
            }
            Event::ItemStarted { item } => {
                self.take(STEP);
                self.live(item, format!("{item}: Applying"));
            }
            Event::Applied { item, done, of } => {
                self.live(item, format!("{item}: Applied {done} of {of} objects"));
            }
            Event::Waiting { item, what } => {
                let text = format!("{item}: {what}");
                self.terminal.unless_lively(&text);
                self.live(item, text);
            }
            Event::ItemFinished { item, counts } => {
                self.take(item);
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
                self.terminal.unless_lively(&text);
                self.live(BARRIER, text);
            }
            Event::BarrierPassed => self.take(BARRIER),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.drain().for_each(|(_, line)| line.finish_and_clear());
    }
}
