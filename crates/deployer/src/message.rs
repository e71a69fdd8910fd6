//! The messages of conditions and events. Pure.

use std::{fmt::Write as _, time::Duration};

use api::GoDuration;

/// Maximum length of a message of a KluctlDeployment in bytes; the original cuts there, too.
pub const MESSAGE_BYTES: usize = 20_000;
/// Maximum number of errors or dependencies that a message quotes; the others are counted.
const QUOTED: usize = 3;
/// Maximum length of a quoted error in bytes.
const QUOTED_BYTES: usize = 1_000;

/// Formats the event of a failed command: `deploy failed. <errors>`
#[must_use]
pub fn command_failed(command: &str, errors: &[String]) -> String {
    limit(format!("{command} failed. {}", quote(errors)), MESSAGE_BYTES)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// The command: `deploy`, `prune`, `validate`.
    pub name: &'static str,
    /// Errors of the command; empty if it succeeded.
    pub errors: &'a [String],
}

/// Formats the message of Ready: `deploy: ok, prune: ok, validate: failed: <errors>`
#[must_use]
pub fn summary(parts: &[Part<'_>]) -> String {
    let text = parts
        .iter()
        .map(|part| {
            if part.errors.is_empty() {
                format!("{}: ok", part.name)
            } else {
                format!("{}: failed: {}", part.name, quote(part.errors))
            }
        })
        .collect::<Vec<_>>()
        .join(", ");
    limit(text, MESSAGE_BYTES)
}

/// Joins the first errors, and counts the others.
#[must_use]
pub fn quote(errors: &[String]) -> String {
    let mut text = errors
        .iter()
        .take(QUOTED)
        .map(|error| limit(error.clone(), QUOTED_BYTES))
        .collect::<Vec<_>>()
        .join("; ");
    if errors.len() > QUOTED {
        let _ = write!(text, " (and {} more errors)", errors.len() - QUOTED);
    }
    text
}

/// Formats the event at the end of a pass that changed something.
#[must_use]
pub fn finished(took: Duration, next: Duration) -> String {
    let millis = u64::try_from(next.as_millis()).unwrap_or(u64::MAX);
    let next = Duration::from_secs(millis.saturating_add(500) / 1000);
    // In nanoseconds, two passes hardly ever take the same time, so their Events are not taken for one that repeats.
    format!(
        "Reconciliation finished in {}, next run in {}",
        GoDuration::from(took),
        GoDuration::from(next)
    )
}

/// Formats the event of an object whose dependencies are not ready: the text of the original, and the reasons.
#[must_use]
pub fn dependencies(retry: Duration, reasons: &str) -> String {
    let retry = GoDuration::from(retry);
    limit(
        format!("Dependencies do not meet ready condition, retrying in {retry}: {reasons}"),
        MESSAGE_BYTES,
    )
}

/// Joins the reasons to wait for dependencies: the first three, and the number of the others.
#[must_use]
pub fn waits(reasons: &[String]) -> String {
    let first = reasons.iter().take(QUOTED);
    let first: Vec<String> = first.map(|reason| limit(reason.clone(), QUOTED_BYTES)).collect();
    match reasons.len().saturating_sub(QUOTED) {
        // One reason is the message of the original.
        0 => first.join("; "),
        more => format!("{} and {more} more", first.join("; ")),
    }
}

/// Cuts a message that is too long at the boundary of a character.
#[must_use]
pub fn limit(mut message: String, bytes: usize) -> String {
    if message.len() > bytes {
        let end = (0..=bytes)
            .rev()
            .find(|at| message.is_char_boundary(*at))
            .unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(n: usize) -> Vec<String> {
        (1..=n).map(|i| format!("error {i}")).collect()
    }

    #[test]
    fn command_failed_quotes_the_error() {
        assert_eq!(command_failed("deploy", &errors(1)), "deploy failed. error 1");
    }

    #[test]
    fn summary_names_each_command_and_quotes_errors() {
        let ok = |name| Part { name, errors: &[] };
        assert_eq!(summary(&[ok("deploy")]), "deploy: ok");
        assert_eq!(
            summary(&[ok("deploy"), ok("prune"), ok("validate")]),
            "deploy: ok, prune: ok, validate: ok"
        );
        assert_eq!(
            summary(&[Part {
                name: "deploy",
                errors: &errors(1)
            }]),
            "deploy: failed: error 1"
        );
        assert_eq!(
            summary(&[
                ok("deploy"),
                Part {
                    name: "validate",
                    errors: &errors(5)
                }
            ]),
            "deploy: ok, validate: failed: error 1; error 2; error 3 (and 2 more errors)"
        );
    }

    #[test]
    fn limit_cuts_at_a_character() {
        assert_eq!(limit("äöü".to_owned(), 3), "ä...");
        assert_eq!(limit("äöü".to_owned(), 6), "äöü");
        let long = vec!["x".repeat(100_000); 9];
        assert!(
            summary(&[Part {
                name: "deploy",
                errors: &long
            }])
            .len()
                < MESSAGE_BYTES
        );
    }

    #[test]
    fn durations_are_printed_as_go_does() {
        assert_eq!(
            finished(Duration::from_nanos(1_234_567_891), Duration::from_millis(59_986)),
            "Reconciliation finished in 1.234567891s, next run in 1m0s"
        );
        assert_eq!(
            dependencies(Duration::from_secs(30), "dependency 'apps/a' is not ready"),
            "Dependencies do not meet ready condition, retrying in 30s: dependency 'apps/a' is not ready"
        );
    }

    #[test]
    fn reasons_to_wait_are_three_and_a_count() {
        let reasons =
            |count: usize| -> Vec<String> { (0..count).map(|number| format!("no {number}")).collect() };
        assert_eq!(waits(&reasons(1)), "no 0");
        assert_eq!(waits(&reasons(3)), "no 0; no 1; no 2");
        assert_eq!(waits(&reasons(5)), "no 0; no 1; no 2 and 2 more");
    }
}
