//! Reports usage errors, and parses flag values in the formats of Go programs.

use std::{io::Write as _, process::ExitCode};

use anyhow::{Result, ensure};

use clap::{
    Arg, ArgAction,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Flags of the original program that weir doesn't support, each group with the reason.
///
/// Unsupported flags are refused by name, never ignored.
pub(crate) type UnsupportedFlags = &'static [(&'static [&'static str], &'static str)];

/// Prints help to stdout, and usage errors to stderr: the refusal of an unsupported command, if it is one. An unknown subcommand is
/// answered with the known ones.
pub(crate) fn report(
    error: &clap::Error,
    subcommands: &[String],
    unsupported_command: Option<String>,
    unsupported: UnsupportedFlags,
) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let refusal = unsupported_command.or_else(|| unsupported_flag(error, unsupported));
    let text = match refusal {
        Some(text) => text,
        None if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::FAILURE;
        }
        None if error.kind() == ErrorKind::InvalidSubcommand && !subcommands.is_empty() => {
            let text = error.render().to_string();
            format!("{}\n\nKnown words: {}", text.trim_end(), subcommands.join(", "))
        }
        None => error.render().to_string(),
    };
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let _ = writeln!(std::io::stderr(), "Error: {}", text.trim_end());
    ExitCode::FAILURE
}

fn unsupported_flag(error: &clap::Error, unsupported: UnsupportedFlags) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    refusal(flag, unsupported)
}

/// Returns the message of a flag that is not supported; `None` if it isn't among those.
pub(crate) fn refusal(flag: &str, unsupported: UnsupportedFlags) -> Option<String> {
    let (_, why) = unsupported.iter().find(|(flags, _)| flags.contains(&flag))?;
    Some(format!("{flag} is not supported: {why}"))
}

/// Lets a boolean flag take `=true` and `=false`, as Go programs do.
pub(crate) fn boolean_flag(flag: Arg) -> Arg {
    if !matches!(flag.get_action(), ArgAction::SetTrue) {
        return flag;
    }
    flag.action(ArgAction::Set)
        .value_parser(parse_bool)
        .value_name("BOOL")
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
}

/// Parses a boolean as Go's `strconv.ParseBool` does.
pub(crate) fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false"),
    }
}

/// Splits comma-separated flag values as Go programs do (CSV: double quotes protect commas, `""` is a quote inside of them). Fails
/// at an unterminated quote.
pub(crate) fn split_list(texts: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for text in texts.iter().filter(|text| !text.is_empty()) {
        let (mut one, mut quoted) = (String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if quoted && chars.next_if_eq(&'"').is_some() => one.push('"'),
                '"' if quoted || one.is_empty() => quoted = !quoted,
                ',' if !quoted => all.push(std::mem::take(&mut one)),
                c => one.push(c),
            }
        }
        ensure!(!quoted, "{:?}: unterminated quote", api::redact(text));
        all.push(one);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_parsed_as_in_go() {
        assert_eq!((parse_bool("T"), parse_bool("0")), (Ok(true), Ok(false)));
        assert!(parse_bool("yes").is_err());
    }

    #[test]
    fn quotes_protect_commas_in_lists() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a,b", &["a", "b"]),
            ("a,", &["a", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("a\"b", &["a\"b"]),
        ] {
            assert_eq!(split_list(&[text.to_owned()]).unwrap(), expected, "{text}");
        }
        assert!(split_list(&["\"a".to_owned()]).is_err());
    }
}
