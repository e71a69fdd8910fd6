//! What is said about arguments that can't be understood.

use std::{io::Write as _, process::ExitCode};

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags that kustomize has and this program hasn't, and why. None is accepted and then ignored.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &[
            "--enable-helm",
            "--helm-command",
            "--helm-kube-version",
            "--helm-api-versions",
            "--helm-debug",
        ],
        "Helm charts are not inflated yet; render the chart with helm and name its output under resources",
    ),
    (
        &[
            "--enable-alpha-plugins",
            "--enable-exec",
            "--network",
            "--network-name",
            "--mount",
            "--env",
            "-e",
            "--as-current-user",
        ],
        "no programs or containers are run, only the built-in generators and transformers",
    ),
    (&["--stack-trace"], "there are no stack traces to print"),
];

/// Prints help to stdout, and everything else as an error.
pub(crate) fn tell(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = match refusal(error) {
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

fn refusal(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let (_, why) = REFUSED.iter().find(|(flags, _)| flags.contains(&flag.as_str()))?;
    Some(format!("{flag} is not supported: {why}"))
}
