//! Prints progress for people.

use std::io::Write as _;

pub fn say(line: impl std::fmt::Display) {
    // A closed standard error must not end the program.
    let _ = writeln!(std::io::stderr(), "{line}");
}
