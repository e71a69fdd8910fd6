//! Commands with a subcommand for each kind, built from the table of kinds.

use clap::{
    ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, builder::Resettable, error::ErrorKind,
};
use fleet::{Family, Kind, kind};

/// A command with a subcommand for each kind.
pub(crate) trait KindCommand {
    /// The flags of each subcommand.
    type Args: Args;

    /// True if the command lists objects: its words are plurals.
    const LISTS: bool;

    fn accepts(kind: &Kind) -> bool;

    fn about(kind: &Kind) -> String;

    /// Returns the description of the subcommand `all`, for all kinds or the kinds of a family; `None` if there is none.
    fn about_all(_family: Option<Family>) -> Option<String> {
        None
    }

    /// Returns the examples of a subcommand by its words, such as `source git`; `None` if all subcommands share them.
    fn examples(_words: &str) -> Option<String> {
        None
    }
}

/// Returns true for the words of kinds and families.
pub(crate) fn is_word(word: &str) -> bool {
    let is_family = |family: Family| [family.word(), family.plural_word()].contains(&word);
    Family::ALL.into_iter().any(is_family)
        || kind::ALL
            .into_iter()
            .any(|kind| kind.family.is_none() && kind.words().any(|own| own == word))
}

/// The subcommand of a [`KindCommand`] that a user chose.
pub(crate) struct ByKind<C: KindCommand> {
    /// The kinds of its word, in the order of the table: several if they have one name, or for `all`.
    pub(crate) kinds: Vec<&'static Kind>,
    pub(crate) is_all: bool,
    pub(crate) args: Box<C::Args>,
}

const ALL: &str = "all";

impl<C: KindCommand> ByKind<C> {
    fn kinds(family: Option<Family>) -> impl Iterator<Item = &'static Kind> {
        kind::ALL
            .into_iter()
            .filter(move |kind| kind.family == family && C::accepts(kind))
    }

    fn augment(command: Command) -> Command {
        let command = command
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(C::about_all(None).map(|about| Self::all(None, about)))
            .subcommands(Self::leaves(None));
        let families = Family::ALL
            .into_iter()
            .filter(|family| Self::kinds(Some(*family)).next().is_some());
        command.subcommands(families.map(Self::family))
    }

    fn family(family: Family) -> Command {
        let (word, alias) = Self::family_words(family);
        let about = match family {
            Family::Source => "Kinds of sources",
            Family::Image => "Kinds of the image automation",
            Family::Artifact => "Kinds that make artifacts of others",
        };
        Command::new(word)
            .alias(alias)
            .about(about)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(C::about_all(Some(family)).map(|about| Self::all(Some(family), about)))
            .subcommands(Self::leaves(Some(family)))
    }

    /// Returns the word of a family, and the hidden one.
    fn family_words(family: Family) -> (&'static str, &'static str) {
        match C::LISTS {
            true => (family.plural_word(), family.word()),
            false => (family.word(), family.plural_word()),
        }
    }

    fn leaf(family: Option<Family>, word: &'static str, about: String) -> Command {
        let words = match family {
            Some(family) => format!("{} {word}", Self::family_words(family).0),
            None => word.to_owned(),
        };
        let leaf = Command::new(word).about(about);
        let leaf = match C::examples(&words) {
            Some(examples) => leaf.after_help(examples),
            None => leaf,
        };
        leaf.defer(described::<C::Args>)
    }

    fn all(family: Option<Family>, about: String) -> Command {
        Self::leaf(family, ALL, about)
    }

    fn leaves(family: Option<Family>) -> Vec<Command> {
        let mut leaves: Vec<Command> = Vec::new();
        for kind in Self::kinds(family) {
            let word = if C::LISTS { kind.plural_word } else { kind.word };
            if leaves.iter().any(|leaf| leaf.get_name() == word) {
                continue;
            }
            let hidden = [kind.word, kind.plural_word]
                .into_iter()
                .filter(|other| *other != word);
            let leaf = Self::leaf(family, word, C::about(kind))
                .aliases(hidden)
                .visible_aliases(kind.aliases);
            leaves.push(leaf);
        }
        leaves.sort_by(|a, b| a.get_name().cmp(b.get_name()));
        leaves
    }

    /// Returns the kinds of a subcommand; `None` if there is no such subcommand.
    fn chosen(family: Option<Family>, word: &str) -> Vec<&'static Kind> {
        Self::kinds(family)
            .filter(|kind| word == ALL || kind.words().any(|own| own == word))
            .collect()
    }
}

/// Adds the flags to a subcommand and keeps its description.
fn described<A: Args>(command: Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    A::augment_args(command).about(about)
}

impl<C: KindCommand> FromArgMatches for ByKind<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(ErrorKind::MissingSubcommand);
        let (word, matches) = matches.subcommand().ok_or_else(missing)?;
        let family = Family::ALL
            .into_iter()
            .find(|family| [family.word(), family.plural_word()].contains(&word));
        let (word, matches) = match family {
            Some(_) => matches.subcommand().ok_or_else(missing)?,
            None => (word, matches),
        };
        let kinds = match (family, word) {
            (None, ALL) => kind::ALL.into_iter().filter(|kind| C::accepts(kind)).collect(),
            _ => Self::chosen(family, word),
        };
        Ok(Self {
            kinds,
            is_all: word == ALL,
            args: Box::new(C::Args::from_arg_matches(matches)?),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<C: KindCommand> Subcommand for ByKind<C> {
    fn augment_subcommands(command: Command) -> Command {
        Self::augment(command)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Self::augment(Command::new("")).find_subcommand(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Args)]
    struct Name {
        name: Option<String>,
    }

    struct List;

    impl KindCommand for List {
        type Args = Name;
        const LISTS: bool = true;

        fn accepts(kind: &Kind) -> bool {
            kind.family != Some(Family::Image)
        }

        fn about(kind: &Kind) -> String {
            kind.noun.to_owned()
        }

        fn about_all(_family: Option<Family>) -> Option<String> {
            Some("All".to_owned())
        }
    }

    fn parsed(line: &str) -> Result<ByKind<List>, Error> {
        let program = ByKind::<List>::augment_subcommands(Command::new("list"));
        let matches = program.try_get_matches_from(line.split(' '))?;
        ByKind::from_arg_matches(&matches)
    }

    #[test]
    fn words_of_kinds_and_families_are_known() {
        for (word, expected) in [
            ("ks", true),
            ("source", true),
            ("images", true),
            ("git", false),
            ("--yes", false),
        ] {
            assert_eq!(is_word(word), expected, "{word}");
        }
    }

    #[test]
    fn words_and_aliases_choose_kinds() {
        for (line, kinds) in [
            ("list ks", &["Kustomization"][..]),
            ("list kustomization x", &["Kustomization"]),
            ("list sources git", &["GitRepository"]),
            ("list source git", &["GitRepository"]),
            (
                "list kluctldeployments",
                &["KluctlDeployment", "KluctlDeployment"],
            ),
        ] {
            let chosen = parsed(line).unwrap();
            let names: Vec<&str> = chosen.kinds.iter().map(|kind| kind.kind).collect();
            assert_eq!((&*names, chosen.is_all), (kinds, false), "{line}");
        }
        assert_eq!(parsed("list ks x").unwrap().args.name.as_deref(), Some("x"));
    }

    #[test]
    fn all_chooses_the_kinds_of_a_command_or_family() {
        assert_eq!(parsed("list all").unwrap().kinds.len(), kind::ALL.len() - 3);
        let sources = parsed("list sources all").unwrap();
        assert!(sources.is_all && sources.kinds.len() == 6);
        assert!(parsed("list images all").is_err() && parsed("list").is_err());
    }
}
