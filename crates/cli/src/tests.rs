//! The help of all commands.

use clap::{ArgMatches, Command, CommandFactory as _, error::ErrorKind};

use super::Cli;

/// Calls `visit` for each command without subcommands, with the words that lead to it.
fn leaves(command: &Command, words: &[&str], visit: &mut impl FnMut(&[&str], &Command)) {
    let mut subcommands = command
        .get_subcommands()
        .filter(|subcommand| subcommand.get_name() != "help")
        .peekable();
    if subcommands.peek().is_none() {
        visit(words, command);
    }
    for subcommand in subcommands {
        leaves(subcommand, &[words, &[subcommand.get_name()]].concat(), visit);
    }
}

/// Splits a line as a shell does, without variables: quotes protect spaces. Ends at a redirection.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote, mut is_word) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => (quote, is_word) = (Some(c), true),
            (c, Some(open)) if c == open => quote = None,
            ('>' | '|' | ')', None) if !is_word => break,
            (' ' | ')', None) => {
                all.extend(is_word.then(|| std::mem::take(&mut word)));
                is_word = false;
            }
            (c, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    all.extend(is_word.then_some(word));
    all
}

/// Returns the command lines of the examples in a help text.
fn examples(help: &str) -> Vec<Vec<String>> {
    let Some((_, examples)) = help.split_once("Examples:\n") else {
        return Vec::new();
    };
    let joined = examples.replace("\\\n", " ");
    let lines = joined
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    let lines = lines.filter_map(|line| line.find("weir ").and_then(|start| line.get(start..)));
    lines.map(words).collect()
}

/// Returns the words of the chosen command.
fn chosen(matches: &ArgMatches) -> Vec<String> {
    let (mut chosen, mut matches) = (Vec::new(), matches);
    while let Some((word, inner)) = matches.subcommand() {
        chosen.push(word.to_owned());
        matches = inner;
    }
    chosen
}

#[test]
fn all_commands_have_examples_that_are_understood() {
    let mut program = Cli::command();
    program.build();
    let mut all = Vec::new();
    leaves(&program, &[], &mut |words, command| {
        let help = command.get_after_help().map(ToString::to_string);
        all.push((words.join(" "), examples(&help.unwrap_or_default())));
    });
    assert!(all.len() > 150, "{} commands", all.len());
    for (command, examples) in all {
        assert!(!examples.is_empty(), "weir {command} has no examples");
        let mut are_own = false;
        for line in examples {
            let parsed = Cli::command().try_get_matches_from(&line);
            let matches = match parsed {
                Ok(matches) => matches,
                // The files of examples are the user's.
                Err(error)
                    if error.kind() == ErrorKind::ValueValidation
                        && error.to_string().contains(" does not exist") =>
                {
                    are_own |= command.starts_with(&line[1]);
                    continue;
                }
                Err(error) => panic!("weir {command}: {}: {error}", line.join(" ")),
            };
            are_own |= chosen(&matches).first().map(String::as_str) == command.split(' ').next();
        }
        assert!(
            are_own,
            "weir {command}: the examples are those of other commands"
        );
    }
}

#[test]
fn unknown_word_is_answered_with_the_known_ones() {
    let args: Vec<std::ffi::OsString> = ["weir", "tree", "nothing"].map(Into::into).to_vec();
    let Err(super::ParseError::Usage(error, known)) = super::parse(args) else {
        panic!("it is understood");
    };
    assert_eq!(error.kind(), ErrorKind::InvalidSubcommand);
    assert_eq!(
        known,
        ["helmrelease", "kluctldeployment", "kustomization", "artifact"]
    );
}
