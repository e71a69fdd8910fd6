//! Subcommands whose flags are built only when the subcommand is used.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, builder::Resettable};

/// Flags of a subcommand, built on first use.
///
/// All subcommands together have hundreds of flags, and an invocation needs a few of them: building all would dominate the runtime
/// of a short command.
#[derive(Debug)]
pub(crate) struct Deferred<T>(Box<T>);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args_for_update))
    }
}

/// Adds the flags to a subcommand and keeps its description.
fn described(command: Command, augment: fn(Command) -> Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    augment(command).about(about)
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(Box::new(T::from_arg_matches(matches)?)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
