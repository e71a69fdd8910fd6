//! Prints progress for people.

use std::io::Write as _;

/// Prints a line to standard error.
pub fn say(line: impl std::fmt::Display) {
    // Nobody listening is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{line}");
}
