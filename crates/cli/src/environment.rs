//! Default values of flags from environment variables and kluctl's config file: `KLUCTL_TARGET=prod` means `--target=prod`.
//!
//! Precedence: command line, environment, file. The values of repeatable flags are combined, in the order file, environment,
//! command line.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Arg, ArgAction, Command};
use tree::Budget;
use yaml::Value;

use crate::files::read_text;

const PREFIX: &str = "KLUCTL_";
const MAX_FILE: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct FlagDefaults {
    environment: BTreeMap<String, String>,
    file: BTreeMap<String, Vec<String>>,
}

impl FlagDefaults {
    /// Reads the environment of this process and the config file (`~/.kluctl/config.yaml`, then `/etc/kluctl/config.yaml`).
    pub(crate) fn read() -> Result<Self> {
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kluctl/config.yaml"));
        let system = PathBuf::from("/etc/kluctl/config.yaml");
        let file = home.into_iter().chain([system]).find(|file| file.is_file());
        Ok(Self {
            environment,
            file: file.map(|file| read_file(&file)).transpose()?.unwrap_or_default(),
        })
    }

    /// Inserts the defaults of wanted flags after the name of the subcommand, so that flags of the command line override them.
    pub(crate) fn insert(
        &self,
        program: &Command,
        args: Vec<OsString>,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<OsString> {
        let Some((at, command)) = leaf(program, &args) else {
            return args;
        };
        let mut with = args;
        // Its flags may be deferred.
        let mut command = command.clone();
        command.build();
        let defaults: Vec<OsString> = command
            .get_arguments()
            .filter(|arg| arg.get_long().is_some_and(&is_wanted))
            .flat_map(|arg| self.defaults_of(arg))
            .map(OsString::from)
            .collect();
        with.splice(at..at, defaults);
        with
    }

    /// Returns the defaults of a flag as arguments.
    fn defaults_of(&self, arg: &Arg) -> Vec<String> {
        let Some(long) = arg.get_long().filter(|long| !is_credential(long)) else {
            return Vec::new();
        };
        if matches!(arg.get_action(), ArgAction::Help | ArgAction::Version) {
            return Vec::new();
        }
        let name = format!("{PREFIX}{}", long.to_uppercase().replace('-', "_"));
        let mut values = self.file.get(long).cloned().unwrap_or_default();
        let alone = self.environment.get(&name).cloned();
        if matches!(arg.get_action(), ArgAction::Append) {
            values.extend(alone);
            values.extend(self.numbered(&name));
        } else if let Some(value) = alone {
            values = vec![value];
        }
        let words = values.into_iter().map(|value| format!("--{long}={value}"));
        words.collect()
    }

    /// Returns the values of `NAME_0`, `NAME_1` and so on, in numeric order.
    fn numbered(&self, name: &str) -> Vec<String> {
        let mut found: Vec<(u32, &String)> = self
            .environment
            .range(format!("{name}_")..)
            .take_while(|(other, _)| other.starts_with(name))
            .filter_map(|(other, value)| {
                let number = other.strip_prefix(name)?.strip_prefix('_')?;
                Some((number.parse().ok()?, value))
            })
            .collect();
        found.sort_by_key(|(number, _)| *number);
        found.into_iter().map(|(_, value)| value.clone()).collect()
    }
}

/// Returns true for credential flags, which have environment variables of their own.
fn is_credential(long: &str) -> bool {
    ["git-", "helm-", "registry-"]
        .iter()
        .any(|prefix| long.starts_with(prefix))
        && long != "git-cache-update-interval"
}

/// Finds the subcommand in the arguments, and returns it with the index after its name.
fn leaf<'a>(program: &'a Command, args: &[OsString]) -> Option<(usize, &'a Command)> {
    let mut found = None;
    let mut command = program;
    for (at, arg) in args.iter().enumerate().skip(1) {
        let Some(word) = arg.to_str() else { break };
        if word.starts_with('-') {
            // The next word may be the value of a flag.
            if found.is_some() && !command.is_subcommand_required_set() {
                break;
            }
            continue;
        }
        let Some(next) = command.find_subcommand(word) else {
            break;
        };
        command = next;
        found = Some((at + 1, command));
    }
    found.filter(|(_, command)| !command.has_subcommands() || !command.is_subcommand_required_set())
}

fn read_file(file: &std::path::Path) -> Result<BTreeMap<String, Vec<String>>> {
    let display = file.display();
    let text = read_text(file, MAX_FILE).with_context(|| format!("read {display}"))?;
    let document = yaml::read::goyaml(&text, &Budget::default()).with_context(|| display.to_string())?;
    let scalar = |value: &Value| match value {
        Value::Map(_) | Value::Seq(_) => {
            bail!("{display}: the value of a flag must be a string, number, boolean, or a list of these")
        }
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => Ok(yaml::print::json(other)),
    };
    match &document.value {
        Value::Null => Ok(BTreeMap::new()),
        Value::Map(map) => map
            .iter()
            .map(|(flag, value)| {
                let values = match value {
                    Value::Seq(values) => values.iter().map(scalar).collect::<Result<_>>()?,
                    value => vec![scalar(value)?],
                };
                Ok((flag.to_owned(), values))
            })
            .collect(),
        _ => bail!("{display}: expected a map of flags"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        let deploy = Command::new("deploy").defer(|deploy| {
            deploy
                .arg(Arg::new("target").long("target"))
                .arg(Arg::new("arg").long("arg").action(ArgAction::Append))
                .arg(Arg::new("unwanted").long("unwanted"))
                .arg(Arg::new("pw").long("git-password").action(ArgAction::Append))
        });
        Command::new("weir")
            .arg(Arg::new("debug").long("debug").action(ArgAction::SetTrue))
            .subcommand(deploy)
            .subcommand(
                Command::new("delete")
                    .arg(Arg::new("target").long("target"))
                    .subcommand(Command::new("bucket")),
            )
            .subcommand(
                Command::new("kustomize")
                    .subcommand_required(true)
                    .subcommand(Command::new("build")),
            )
    }

    fn inserted(line: &str) -> String {
        let pairs = [
            ("KLUCTL_TARGET", "env"),
            ("KLUCTL_ARG", "a=1"),
            ("KLUCTL_ARG_10", "c=3"),
            ("KLUCTL_ARG_2", "b=2"),
            ("KLUCTL_ARGS_FROM_FILE", "x"),
            ("KLUCTL_GIT_PASSWORD", "secret"),
            ("KLUCTL_HELP", "true"),
            ("KLUCTL_UNWANTED", "x"),
        ];
        let defaults = FlagDefaults {
            environment: pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            file: [("target", vec!["file"]), ("arg", vec!["z=0"])]
                .map(|(flag, values)| (flag.to_owned(), values.into_iter().map(str::to_owned).collect()))
                .into(),
        };
        let args = line.split(' ').map(OsString::from).collect();
        let with = defaults.insert(&program(), args, |flag| flag != "unwanted");
        with.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn defaults_are_inserted_before_flags_of_the_command_line() {
        assert_eq!(
            inserted("weir --debug deploy --target x"),
            "weir --debug deploy --target=env --arg=z=0 --arg=a=1 --arg=b=2 --arg=c=3 --target x"
        );
    }

    #[test]
    fn command_with_optional_subcommands_gets_its_own_defaults() {
        assert_eq!(inserted("weir delete"), "weir delete --target=env");
        assert_eq!(inserted("weir delete bucket x"), "weir delete bucket x");
        assert_eq!(
            inserted("weir delete --target bucket"),
            "weir delete --target=env --target bucket"
        );
    }

    #[test]
    fn commands_without_kluctl_flags_get_no_defaults() {
        for line in [
            "weir",
            "weir kustomize",
            "weir kustomize build .",
            "weir --version",
            "weir nothing",
        ] {
            assert_eq!(inserted(line), line);
        }
    }
}
