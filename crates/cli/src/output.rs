//! What goes to stdout.

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use kluctl::Rendered;
use tree::{Tree, TreePath};

/// What is wrong, and why. Many an error says its cause itself.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words.push_str(": ");
            words.push_str(&cause);
        }
    }
    words
}

/// Prints to stdout; a reader that has seen enough is no failure.
pub(crate) fn print(text: &str) -> Result<()> {
    print_all(&[text])
}

/// Prints into a file, or to stdout as [`print`] does.
pub(crate) fn print_to(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(file) => fs::write(file, text).with_context(|| format!("write {}", file.display())),
        None => print(text),
    }
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

/// Writes the rendered files of a project into a directory; without one, into a new temporary one, if that is wanted.
pub(crate) fn write_files(
    rendered: &Rendered,
    dir: Option<&Path>,
    anywhere: bool,
) -> Result<Option<PathBuf>> {
    let (Some(files), Some(dir)) = (&rendered.files, place(dir, anywhere)?) else {
        return Ok(None);
    };
    write_tree(&**files, &TreePath::root(), &dir)?;
    Ok(Some(dir))
}

fn place(dir: Option<&Path>, anywhere: bool) -> Result<Option<PathBuf>> {
    match dir {
        Some(dir) => Ok(Some(dir.to_path_buf())),
        None if anywhere => {
            let made = tempfile::Builder::new().prefix("weir-rendered-").tempdir();
            Ok(Some(made.context("make a temporary directory")?.keep()))
        }
        None => Ok(None),
    }
}

fn write_tree(tree: &dyn Tree, dir: &TreePath, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("make {}", to.display()))?;
    for entry in tree.list(dir)? {
        let (from, to) = (dir.child(&entry.name), to.join(&entry.name));
        if entry.is_dir {
            write_tree(tree, &from, &to)?;
        } else {
            fs::write(&to, tree.read(&from)?).with_context(|| format!("write {}", to.display()))?;
        }
    }
    Ok(())
}

/// How many columns the terminal has that stdout goes to.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("no end").context("a: no end").context("b").context("c");
        assert_eq!(words(&error), "c: b: a: no end");
    }
}
