//! Shows the progress of an operation on stderr.

use std::{collections::HashMap, time::Duration};

use engine::{Event, Progress};
use indicatif::ProgressBar;
use parking_lot::Mutex;
use tokio::task::AbortHandle;

use crate::terminal::Terminal;

/// Progress display with one status line per deployment item.
#[derive(Debug)]
pub(crate) struct ProgressLines {
    terminal: Terminal,
    /// Status lines by item name; `STEP` and `BARRIER` are the keys of the other two.
    lines: Mutex<HashMap<String, ProgressBar>>,
    /// Tasks that repeat the awaited object of an item.
    reminders: Mutex<HashMap<String, AbortHandle>>,
}

/// Interval of the messages about an object that is still not ready.
const REMINDER_INTERVAL: Duration = Duration::from_secs(10);

/// Time until the first of these messages, so that a wait of ten seconds has one.
const FIRST_REMINDER: Duration = Duration::from_secs(5);

const STEP: &str = "\0step";
const BARRIER: &str = "\0barrier";

impl ProgressLines {
    pub(crate) fn on(terminal: &Terminal) -> Self {
        Self {
            terminal: terminal.clone(),
            lines: Mutex::default(),
            reminders: Mutex::default(),
        }
    }

    /// Shows a status line, or replaces its message.
    fn show(&self, name: &str, text: String) {
        let mut lines = self.lines.lock();
        match lines.get(name) {
            Some(line) => line.set_message(text),
            None => {
                if let Some(line) = self.terminal.spinner(&text) {
                    lines.insert(name.to_owned(), line);
                }
            }
        }
    }

    /// Starts to repeat the awaited object of an item, until [`ProgressLines::stop_reminding`].
    fn remind(&self, item: &str, what: &str) {
        let (Some(reference), Ok(runtime)) = (awaited(what), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (terminal, reference, item_name) = (self.terminal.clone(), reference.to_owned(), item.to_owned());
        let task = runtime.spawn(async move {
            let mut elapsed = Duration::ZERO;
            loop {
                let next = next_reminder(elapsed);
                tokio::time::sleep(next.saturating_sub(elapsed)).await;
                elapsed = next;
                terminal.info(&format!("{item_name}: {}", still_waiting(&reference, elapsed)));
            }
        });
        let mut reminders = self.reminders.lock();
        reminders.insert(item.to_owned(), task.abort_handle());
    }

    fn stop_reminding(&self, item: &str) {
        let mut reminders = self.reminders.lock();
        if let Some(task) = reminders.remove(item) {
            task.abort();
        }
    }

    fn remove(&self, name: &str) {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.remove(name) {
            line.finish_and_clear();
        }
    }
}

/// Returns the time of the next reminder: after 5 seconds, then every 10 seconds.
fn next_reminder(elapsed: Duration) -> Duration {
    match elapsed {
        Duration::ZERO => FIRST_REMINDER,
        FIRST_REMINDER => REMINDER_INTERVAL,
        _ => elapsed + REMINDER_INTERVAL,
    }
}

/// Returns the object of a message such as `Waiting for shop/Deployment/web to get ready...`.
fn awaited(what: &str) -> Option<&str> {
    what.strip_prefix("Waiting for ")?
        .strip_suffix(" to get ready...")
}

/// Formats the message about an object that is still not ready, in kluctl's words.
fn still_waiting(reference: &str, elapsed: Duration) -> String {
    format!(
        "Still waiting for {reference} to get ready... ({}s elapsed)",
        elapsed.as_secs()
    )
}

impl Progress for ProgressLines {
    fn tell(&self, event: &Event<'_>) {
        if let Event::Applied { item, .. } | Event::Waiting { item, .. } | Event::ItemFinished { item, .. } =
            event
        {
            self.stop_reminding(item);
        }
        match event {
            Event::Step(text) => {
                self.terminal.info(text);
                self.show(STEP, (*text).to_owned());
            }
            Event::Warning(text) => self.terminal.warning(text),
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
                self.remind(item, what);
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
        let mut reminders = self.reminders.lock();
        reminders.drain().for_each(|(_, task)| task.abort());
        drop(reminders);
        let mut lines = self.lines.lock();
        lines.drain().for_each(|(_, line)| line.finish_and_clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_have_the_words_of_kluctl() {
        let reference = awaited("Waiting for n/Deployment/web to get ready...").unwrap();
        assert_eq!(
            still_waiting(reference, REMINDER_INTERVAL * 2),
            "Still waiting for n/Deployment/web to get ready... (20s elapsed)"
        );
        assert_eq!(awaited("Waiting for others"), None);
        let mut times = vec![next_reminder(Duration::ZERO)];
        while times.len() < 4 {
            times.extend(times.last().map(|time| next_reminder(*time)));
        }
        let seconds: Vec<u64> = times.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [5, 10, 20, 30]);
    }
}
