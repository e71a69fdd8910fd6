//! What is said about arguments that can't be understood.

use std::{io::Write as _, process::ExitCode};

use anyhow::{Result, ensure};

use clap::{
    Arg, ArgAction,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// Flags that a program has and its command here hasn't, and why. None is accepted and then ignored.
pub(crate) type Refused = &'static [(&'static [&'static str], &'static str)];

/// Prints help to stdout, and everything else as an error.
pub(crate) fn tell(error: &clap::Error, refused: Refused) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = match refusal(error, refused) {
        Some(text) => text,
        None if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return ExitCode::FAILURE;
        }
        None => error.render().to_string(),
    };
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let _ = writeln!(std::io::stderr(), "Error: {}", text.trim_end());
    ExitCode::FAILURE
}

fn refusal(error: &clap::Error, refused: Refused) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let (_, why) = refused.iter().find(|(flags, _)| flags.contains(&flag.as_str()))?;
    Some(format!("{flag} is not supported: {why}"))
}

/// Lets a flag be written as `--flag=true` and `--flag=false`, too, as programs in Go have it.
pub(crate) fn boolean(flag: Arg) -> Arg {
    if !matches!(flag.get_action(), ArgAction::SetTrue) {
        return flag;
    }
    flag.action(ArgAction::Set)
        .value_parser(switch)
        .value_name("BOOL")
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
}

/// The words that Go has for true and false.
fn switch(text: &str) -> Result<bool, &'static str> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it is true or false"),
    }
}

/// What flags with comma separated values say, in the form that programs in Go take: quotes hold commas together, and are
/// doubled inside of others.
pub(crate) fn list(texts: &[String]) -> Result<Vec<String>> {
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
        ensure!(!quoted, "{:?}: a quote has no end", api::redact(text));
        all.push(one);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_written_as_in_go() {
        assert_eq!((switch("T"), switch("0")), (Ok(true), Ok(false)));
        assert!(switch("yes").is_err());
    }

    #[test]
    fn quotes_hold_commas() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a,b", &["a", "b"]),
            ("a,", &["a", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("a\"b", &["a\"b"]),
        ] {
            assert_eq!(list(&[text.to_owned()]).unwrap(), expected, "{text}");
        }
        assert!(list(&["\"a".to_owned()]).is_err());
    }
}
