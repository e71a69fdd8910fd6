//! Accepts flags of a subcommand before its name, as kluctl does.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Moves the name of the subcommand to the front: `weir --project-dir x deploy` becomes `weir deploy --project-dir x`.
///
/// Arguments that don't have this form are returned unchanged.
pub(crate) fn subcommand_first(program: &Command, args: Vec<OsString>) -> Vec<OsString> {
    let is_flag = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    if !args.get(1).is_some_and(is_flag) {
        return args;
    }
    for at in 2..args.len() {
        let (Some(flags), Some(rest)) = (args.get(1..at), args.get(at..)) else {
            break;
        };
        let (names, command) = subcommand(program, rest);
        if names > 0 && are_flags(flags, &command) {
            let (names, rest) = rest.split_at(names);
            let program = args.iter().take(1);
            return program.chain(names).chain(flags).chain(rest).cloned().collect();
        }
    }
    args
}

fn subcommand(program: &Command, words: &[OsString]) -> (usize, Command) {
    let (mut names, mut command) = (0, program.clone());
    for word in words {
        let found = word.to_str().and_then(|word| command.find_subcommand(word));
        let Some(found) = found.cloned() else { break };
        (names, command) = (names + 1, found);
        // Flags may be deferred.
        command.build();
    }
    (names, command)
}

/// Returns true if all words are flags of the command, or their values.
fn are_flags(words: &[OsString], command: &Command) -> bool {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some((flag, has_value)) = word.to_str().and_then(|word| flag(word, command)) else {
            return false;
        };
        let takes_value = flag.get_num_args().is_some_and(|count| count.min_values() > 0);
        if takes_value && !has_value && words.next().is_none() {
            return false;
        }
    }
    true
}

/// Finds the flag that a word sets; true if the word also has its value.
fn flag<'c>(word: &str, command: &'c Command) -> Option<(&'c Arg, bool)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long
            .split_once('=')
            .map_or((long, None), |(name, value)| (name, Some(value)));
        let flag = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
        return Some((flag, value.is_some()));
    }
    let mut letters = word.strip_prefix('-')?.chars();
    let letter = letters.next()?;
    let flag = command
        .get_arguments()
        .find(|arg| arg.get_short() == Some(letter))?;
    Some((flag, !letters.as_str().is_empty()))
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn program() -> Command {
        let deploy = Command::new("deploy").defer(|deploy| {
            deploy
                .arg(Arg::new("target").long("target").short('t'))
                .arg(Arg::new("yes").long("yes").short('y').action(ArgAction::SetTrue))
        });
        let push = Command::new("push").arg(Arg::new("url").long("url"));
        Command::new("weir")
            .subcommand(deploy)
            .subcommand(Command::new("oci").subcommand(push))
    }

    #[test]
    fn flags_before_the_subcommand_are_moved_behind_it() {
        for (line, expected) in [
            ("weir --target x deploy -y", "weir deploy --target x -y"),
            (
                "weir --target=deploy --yes deploy",
                "weir deploy --target=deploy --yes",
            ),
            ("weir -t deploy deploy", "weir deploy -t deploy"),
            ("weir -tx deploy", "weir deploy -tx"),
            ("weir --url x oci push", "weir oci push --url x"),
            ("weir --help deploy", "weir deploy --help"),
            ("weir deploy -y", "weir deploy -y"),
            ("weir --nope x deploy", "weir --nope x deploy"),
            ("weir --target", "weir --target"),
            ("weir --version", "weir --version"),
        ] {
            let args = line.split(' ').map(OsString::from).collect();
            let moved = subcommand_first(&program(), args);
            let moved: Vec<&str> = moved.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(moved.join(" "), expected);
        }
    }
}
