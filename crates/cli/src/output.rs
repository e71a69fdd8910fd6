//! What goes to stdout.

use std::io::{BufWriter, Write};

use anyhow::{Context as _, Result};

/// Prints to stdout; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<()> {
    print_all(&[text])
}

/// Prints texts to stdout as [`print`] does, one behind the other.
pub(crate) fn print_all(texts: &[impl AsRef<str>]) -> Result<()> {
    match write_texts(BufWriter::new(std::io::stdout().lock()), texts) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("write the output")
        }
        _ => Ok(()),
    }
}

/// Writes texts one behind the other.
pub(crate) fn write_texts(mut out: impl Write, texts: &[impl AsRef<str>]) -> std::io::Result<()> {
    for text in texts {
        out.write_all(text.as_ref().as_bytes())?;
    }
    out.flush()
}
