//! The results of commands, as a status has them. Pure.

use results::{CommandResult, ValidateResult};
use yaml::Value;

use super::super::report::CommandDone;

/// Maximum size of a stored result in bytes; a status has three of them.
const RESULT_BYTES: usize = 48 << 10;
/// Maximum number of errors, of warnings and of results in a stored validation.
const VALIDATION_ENTRIES: usize = 50;

pub(super) fn command_done(result: &CommandResult) -> CommandDone {
    CommandDone {
        message: result.message(),
        errors: result.errors.iter().map(ToString::to_string).collect(),
        denied: !result.errors.is_empty() && result.errors.iter().all(|error| error.denied),
        is_idle: false,
        raw: yaml::print::goyaml(&result.to_status(RESULT_BYTES)),
    }
}

pub(super) fn refused(why: String) -> CommandDone {
    CommandDone {
        errors: vec![why],
        ..CommandDone::default()
    }
}

/// Returns the result of a prune without orphans, which needs no request.
pub(super) fn nothing_pruned() -> CommandDone {
    CommandDone {
        message: "prune succeeded.".to_owned(),
        errors: Vec::new(),
        denied: false,
        is_idle: true,
        raw: "command:\n  command: prune\n  initiator: KluctlDeployment\nobjects: []\n".to_owned(),
    }
}

pub(super) fn validate_done(result: &ValidateResult) -> CommandDone {
    let mut errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
    if errors.is_empty() && !result.ready {
        errors.push("not ready".to_owned());
    }
    let mut raw = result.to_status(VALIDATION_ENTRIES);
    if let Value::Map(map) = &mut raw {
        // With its times, no two results would be equal, and each validation would be news.
        map.remove("startTime");
        map.remove("endTime");
    }
    CommandDone {
        message: String::new(),
        errors,
        denied: false,
        is_idle: false,
        raw: yaml::print::goyaml(&raw),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use results::ObjectError;

    use super::*;

    fn validation(ready: bool, errors: &[&str]) -> ValidateResult {
        ValidateResult {
            ready,
            discriminator: None,
            origin: Default::default(),
            start: Timestamp::now(),
            end: Timestamp::now(),
            errors: errors
                .iter()
                .map(|&message| ObjectError::general(message))
                .collect(),
            warnings: Vec::new(),
            results: Vec::new(),
        }
    }

    #[test]
    fn validation_result_has_no_times() {
        let first = validate_done(&validation(true, &[]));
        assert_eq!(first, validate_done(&validation(true, &[])));
        assert!(
            first.errors.is_empty() && first.raw.contains("ready: true") && !first.raw.contains("Time"),
            "{first:?}"
        );
        assert_eq!(validate_done(&validation(false, &[])).errors, ["not ready"]);
        assert_eq!(
            validate_done(&validation(false, &["a is missing"])).errors,
            ["a is missing"]
        );
    }
}
