//! Commands whose flags are only made once they are asked for.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, builder::Resettable};

/// The flags of a command. All commands together have hundreds, and one call needs those of one.
#[derive(Debug)]
pub(crate) struct Later<T>(Box<T>);

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args_for_update))
    }
}

/// A command with its flags. What the list of commands says about it stays.
fn described(command: Command, augment: fn(Command) -> Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    let long = Resettable::from(command.get_long_about().cloned());
    augment(command).about(about).long_about(long)
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(Box::new(T::from_arg_matches(matches)?)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
