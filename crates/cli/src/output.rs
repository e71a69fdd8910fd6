//! Writes results to stdout and files.

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use kluctl::Rendered;
use tree::{Tree, TreePath};

/// Formats an error with its causes, and leaves out causes that a message already ends with.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints to stdout. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    print_all(&[text])
}

/// Writes to a file, or to stdout if there is none.
pub(crate) fn print_to(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(file) => fs::write(file, text).with_context(|| format!("write {}", file.display())),
        None => print(text),
    }
}

/// Writes to several files, where `-` means stdout; to stdout if there are none.
pub(crate) fn print_to_all(files: &[PathBuf], text: &str) -> Result<()> {
    if files.is_empty() {
        return print(text);
    }
    files.iter().try_for_each(|file| match file.as_os_str() == "-" {
        true => print(text),
        false => print_to(Some(file), text),
    })
}

/// Prints several strings to stdout. A closed pipe is not an error.
pub(crate) fn print_all(texts: &[impl AsRef<str>]) -> Result<()> {
    match write_texts(BufWriter::new(std::io::stdout().lock()), texts) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("write the output")
        }
        _ => Ok(()),
    }
}

pub(crate) fn write_texts(mut out: impl Write, texts: &[impl AsRef<str>]) -> std::io::Result<()> {
    for text in texts {
        out.write_all(text.as_ref().as_bytes())?;
    }
    out.flush()
}

/// Writes the rendered files of a project to a directory, and returns it.
///
/// If `dir` is `None`, the files go to a new temporary directory if `use_temporary`, otherwise nowhere.
pub(crate) fn write_files(
    rendered: &Rendered,
    dir: Option<&Path>,
    use_temporary: bool,
) -> Result<Option<PathBuf>> {
    let (Some(files), Some(dir)) = (&rendered.files, output_dir(dir, use_temporary)?) else {
        return Ok(None);
    };
    write_tree(&**files, &TreePath::root(), &dir)?;
    Ok(Some(dir))
}

fn output_dir(dir: Option<&Path>, use_temporary: bool) -> Result<Option<PathBuf>> {
    match dir {
        Some(dir) => Ok(Some(dir.to_path_buf())),
        None if use_temporary => {
            let made = tempfile::Builder::new().prefix("weir-rendered-").tempdir();
            Ok(Some(made.context("create a temporary directory")?.keep()))
        }
        None => Ok(None),
    }
}

fn write_tree(tree: &dyn Tree, dir: &TreePath, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("create {}", to.display()))?;
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

/// Returns the number of columns of the terminal that stdout is connected to.
pub(crate) fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn error_chain_leaves_out_repeated_causes() {
        let error = anyhow!("no end").context("a: no end").context("b").context("c");
        assert_eq!(error_chain(&error), "c: b: a: no end");
    }
}
