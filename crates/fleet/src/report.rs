//! Blocks of labelled lines, as the original prints them for `trace`.

use crate::Condition;

/// A block about an object: `Label:` and a value on each line, with all values in one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    width: usize,
    text: String,
}

impl Block {
    /// Starts a block whose values begin in a column.
    #[must_use]
    pub const fn new(width: usize) -> Self {
        Self {
            width,
            text: String::new(),
        }
    }

    pub fn add(&mut self, label: &str, value: &str) {
        let label = format!("{label}:");
        let width = self.width;
        self.text.push_str(&format!("{label:<width$}{value}\n"));
    }

    /// Adds a line unless the value is empty.
    pub fn add_some(&mut self, label: &str, value: &str) {
        if !value.is_empty() {
            self.add(label, value);
        }
    }

    /// Adds the time and message of the last reconciliation.
    pub fn add_ready(&mut self, ready: Option<&Condition>, tells_failures: bool) {
        let Some(ready) = ready else {
            self.add("Status", "Unknown");
            return;
        };
        let verb = match tells_failures && ready.status == "False" {
            true => "Last reconciliation failed",
            false => "Last reconciled",
        };
        self.add(
            "Status",
            &format!("{verb} at {}", go_time(&ready.last_transition_time)),
        );
        self.add("Message", &ready.message);
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Returns a time of RFC 3339 in UTC in the layout of a Go program: `2026-01-01 00:00:00 +0000 UTC`.
fn go_time(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string(),
        Err(_) => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_one_column() {
        let mut block = Block::new(10);
        block.add("Name", "a");
        block.add_some("Target", "");
        let ready = Condition {
            status: "False".to_owned(),
            message: "no".to_owned(),
            last_transition_time: "2026-01-01T00:00:00Z".to_owned(),
            ..Condition::default()
        };
        block.add_ready(Some(&ready), true);
        block.add_ready(None, false);
        assert_eq!(
            block.text(),
            "Name:     a\nStatus:   Last reconciliation failed at 2026-01-01 00:00:00 +0000 UTC\nMessage:  no\nStatus:   Unknown\n"
        );
    }
}
