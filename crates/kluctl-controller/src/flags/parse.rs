//! Parses the command line: `kluctl-controller FLAGS`, and `kluctl-controller controller run FLAGS` as the original is started.

use std::{collections::BTreeMap, ffi::OsString};

use clap::{Arg, Command, CommandFactory, FromArgMatches, parser::ValueSource};

use crate::Cli;

/// Flags of the original that are other names of our own, each with the ID of ours.
pub const ALIASES: &[(&str, &str)] = &[
    ("metrics-bind-address", "metrics_addr"),
    ("health-probe-bind-address", "health_addr"),
    ("leader-elect", "enable_leader_election"),
    ("concurrency", "concurrent"),
    ("controller-namespace", "runtime_namespace"),
];

/// The other flags of the original's `controller run`, all of which have an environment variable, too.
const ORIGINAL: &[&str] = &[
    "kubeconfig",
    "context",
    "namespace",
    "controller-name",
    "source-override-bind-address",
    "default-service-account",
    "dry-run",
    "command-result-namespace",
    "write-command-result",
    "force-write-command-result",
    "keep-command-results-count",
    "keep-validate-results-count",
    "debug",
    "no-update-check",
    "use-system-python",
    "gops-agent",
    "gops-agent-addr",
    "cpu-profile",
];

/// Parses the arguments of a process, the name of the program first. Flags of the original that are not among them are read from
/// `environment`, where `KLUCTL_CONTROLLER_NAME` stands for `--controller-name`.
///
/// # Errors
/// Fails when a flag is unknown, invalid, given twice (also by two names), or conflicts with another one.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: &BTreeMap<String, String>,
) -> Result<Cli, clap::Error> {
    let (is_original, args) = without_words(args.into_iter().collect());
    let program = command(is_original);
    let given = program.clone().try_get_matches_from(&args)?;
    let is_given = |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut all = args;
    for arg in program.get_arguments().filter(|arg| !is_given(arg)) {
        let value = original_name(arg).and_then(|name| Some((name, environment.get(&variable(name))?)));
        if let Some((name, value)) = value.filter(|(_, value)| !value.is_empty()) {
            all.push(format!("--{name}={value}").into());
        }
    }
    let mut program = program;
    let matches = program.try_get_matches_from_mut(all)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Returns the command with the names that the original has for flags, and its port of probes if it is started like the original.
fn command(is_original: bool) -> Command {
    let command = ALIASES.iter().fold(Cli::command(), |command, (alias, id)| {
        command.mut_arg(id, |arg| arg.visible_alias(*alias))
    });
    match is_original {
        true => command.mut_arg("health_addr", |arg| arg.default_value(":8081")),
        false => command,
    }
}

/// Removes the leading words `controller run`, or `run`; true if there are any.
fn without_words(args: Vec<OsString>) -> (bool, Vec<OsString>) {
    let starts = |words: &[&str]| args.get(1..=words.len()).is_some_and(|start| start == words);
    let words = match (starts(&["controller", "run"]), starts(&["run"])) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    };
    let args = args
        .into_iter()
        .enumerate()
        .filter(|(at, _)| *at == 0 || *at > words)
        .map(|(_, arg)| arg)
        .collect();
    (words > 0, args)
}

/// Returns the name that a flag has in the original, if it has one.
fn original_name(arg: &Arg) -> Option<&'static str> {
    let id = arg.get_id().as_str();
    let alias = ALIASES
        .iter()
        .find(|(_, other)| *other == id)
        .map(|(alias, _)| *alias);
    alias.or_else(|| {
        ORIGINAL
            .iter()
            .find(|name| arg.get_long() == Some(*name))
            .copied()
    })
}

fn variable(flag: &str) -> String {
    format!("KLUCTL_{}", flag.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use runtime::flags::LogLevel;

    use super::*;

    fn parsed(line: &str, environment: &[(&str, &str)]) -> Result<Cli, clap::Error> {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let args = line.split_whitespace().map(OsString::from);
        parse(
            [OsString::from("kluctl-controller")].into_iter().chain(args),
            &environment.collect(),
        )
    }

    #[test]
    fn command_line_of_the_original_parses() {
        let flags = "--kubeconfig k --context c --namespace ns --controller-name x --command-result-namespace y \
                     --metrics-bind-address 0 --health-probe-bind-address 0 --source-override-bind-address 0";
        for words in ["controller run", "run", ""] {
            let cli = parsed(&format!("{words} {flags}"), &[]).unwrap();
            let common = cli.common();
            assert_eq!((&*common.metrics_addr, &*common.health_addr), ("0", "0"));
            assert_eq!(common.watch_namespace(), Some("ns"));
            assert_eq!(common.connection.kubeconfig.as_deref(), Some("k".as_ref()));
            assert_eq!(common.connection.context.as_deref(), Some("c"));
            assert_eq!(cli.own.results.command_result_namespace, "y");
            assert_eq!(crate::spec(&cli).name, "x");
            assert_eq!(cli.own.idle(), []);
        }
        let all = "--controller-namespace s --leader-elect --concurrency 7 --default-service-account d --dry-run --debug \
                   --write-command-result=false --force-write-command-result --keep-command-results-count 1 \
                   --keep-validate-results-count 0 --no-update-check --use-system-python --gops-agent \
                   --gops-agent-addr :1 --cpu-profile f --source-override-bind-address :8082";
        let cli = parsed(all, &[]).unwrap();
        let common = cli.common();
        assert_eq!(common.log_level, LogLevel::Debug);
        assert_eq!((common.concurrent, &*common.runtime_namespace), (Some(7), "s"));
        assert!(common.enable_leader_election && cli.own.dry_run);
        assert_eq!(
            (
                cli.own.results.keep().commands,
                cli.own.results.keep().validations
            ),
            (1, 0)
        );
        assert!(cli.own.results.stores(true) && crate::spec(&cli).name == "flux-kluctl-controller");
        assert_eq!(cli.own.idle().len(), 5);
    }

    #[test]
    fn two_names_of_one_flag_conflict() {
        for line in [
            "--metrics-addr=:1 --metrics-bind-address=:2",
            "--concurrent=1 --concurrency=2",
            "--namespace=a --watch-all-namespaces",
            "--debug --log-level=info",
            "--nonsense",
            "controller",
            "controller walk",
            "--controller-name=",
        ] {
            assert!(parsed(line, &[]).is_err(), "{line}");
        }
    }

    #[test]
    fn environment_stands_behind_the_command_line() {
        let environment = [
            ("KLUCTL_METRICS_BIND_ADDRESS", ":1"),
            ("KLUCTL_LEADER_ELECT", "true"),
            ("KLUCTL_NAMESPACE", "env"),
            ("KLUCTL_CONTEXT", ""),
            ("KLUCTL_LOG_ENCODING", "console"),
        ];
        let cli = parsed("run --metrics-addr :2 --namespace ns", &environment).unwrap();
        let common = cli.common();
        assert_eq!(
            (&*common.metrics_addr, common.watch_namespace()),
            (":2", Some("ns"))
        );
        assert!(common.enable_leader_election && common.connection.context.is_none());
        let cli = parsed("", &environment).unwrap();
        assert_eq!(
            (&*cli.common().metrics_addr, cli.common().watch_namespace()),
            (":1", Some("env"))
        );
        assert_eq!(
            (&*common.health_addr, &*cli.common().health_addr),
            (":8081", ":9440")
        );
        assert!(parsed("", &[("KLUCTL_CONCURRENCY", "0")]).is_err());
    }
}
