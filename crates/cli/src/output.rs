//! What goes to stdout.

use std::io::Write as _;

use anyhow::{Context as _, Result};

/// Prints to stdout; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("write the output")
        }
        _ => Ok(()),
    }
}
