//! One-line summaries of commands and their errors.

use std::fmt::Write as _;

use crate::{Command, Counts, ObjectError};

pub(crate) fn message(command: Command, counts: Counts) -> String {
    let outcome = if counts.errors == 0 { "succeeded" } else { "failed" };
    let mut message = format!("{} {outcome}.", command.as_str());
    for (count, what) in [
        (counts.new, "new objects"),
        (counts.changed, "changed objects"),
        (counts.deleted, "deleted objects"),
        (counts.orphans, "orphan objects"),
        (counts.errors, "errors"),
        (counts.warnings, "warnings"),
    ] {
        if count > 0 {
            let _ = write!(message, " {count} {what}.");
        }
    }
    message
}

/// Returns `... failed with N errors: ...`, with as many errors as are readable in a condition.
pub(crate) fn failure(what: &str, errors: &[ObjectError]) -> Option<String> {
    const MAX_LISTED: usize = 5;
    const LENGTH: usize = 700;
    if errors.is_empty() {
        return None;
    }
    let first: Vec<String> = errors
        .iter()
        .take(MAX_LISTED)
        .map(|error| shorten(&error.to_string(), LENGTH))
        .collect();
    let mut text = format!("{what} failed with {} errors: {}", errors.len(), first.join("; "));
    if errors.len() > MAX_LISTED {
        let _ = write!(text, "; and {} more", errors.len() - MAX_LISTED);
    }
    Some(text)
}

fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_lists_counts_above_zero() {
        let none = Counts::default();
        assert_eq!(message(Command::Deploy, none), "deploy succeeded.");
        assert_eq!(
            message(
                Command::Deploy,
                Counts {
                    new: 2,
                    changed: 1,
                    orphans: 3,
                    warnings: 4,
                    ..none
                }
            ),
            "deploy succeeded. 2 new objects. 1 changed objects. 3 orphan objects. 4 warnings."
        );
        assert_eq!(
            message(Command::Prune, Counts { deleted: 1, ..none }),
            "prune succeeded. 1 deleted objects."
        );
        assert_eq!(
            message(Command::Delete, Counts { errors: 1, ..none }),
            "delete failed. 1 errors."
        );
    }

    #[test]
    fn failures_name_the_first_errors() {
        assert_eq!(failure("deploy", &[]), None);
        let errors: Vec<_> = (0..7).map(|i| ObjectError::general(format!("e{i}"))).collect();
        let text = failure("deploy", &errors).unwrap();
        assert_eq!(
            text,
            "deploy failed with 7 errors: e0; e1; e2; e3; e4; and 2 more"
        );
        let long = failure("deploy", &[ObjectError::general("ä".repeat(5000))]).unwrap();
        assert!(long.chars().count() < 800);
    }
}
