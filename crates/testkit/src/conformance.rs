//! Recordings of the originals. They are no part of the project: tests look for them in `$CONFORMANCE_DIR` (by default
//! `../shared/conformance` beside the workspace), and it is said when they are absent.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The recordings of one suite.
#[derive(Debug)]
pub struct Recordings {
    dir: PathBuf,
    elsewhere: bool,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Recordings {
    /// Those in a directory below that of all recordings; `None`, and a line that says so, when they are absent.
    #[must_use]
    #[allow(
        clippy::print_stdout,
        reason = "the harness of tests captures what is printed"
    )]
    pub fn find(below: &str) -> Option<Self> {
        let other = std::env::var_os("CONFORMANCE_DIR").filter(|dir| !dir.is_empty());
        let elsewhere = other.is_some();
        let base = other.map_or_else(|| workspace().join("../shared/conformance"), PathBuf::from);
        let dir = base.join(below);
        if !dir.is_dir() {
            println!("\n{} is absent: its cases are not run", dir.display());
            return None;
        }
        Some(Self { dir, elsewhere })
    }

    /// Where they are.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The folders and files in it, sorted.
    ///
    /// # Errors
    /// When it can't be listed.
    pub fn entries(&self) -> io::Result<Vec<PathBuf>> {
        let mut entries = fs::read_dir(&self.dir)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<Vec<_>>>()?;
        entries.sort();
        Ok(entries)
    }

    /// Whether they are others than the default ones; those are only counted.
    #[must_use]
    pub fn are_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Writes what failed into `target/conformance/NAME-failures.txt`, a line each, and says where that is.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn report(&self, name: &str, failures: &[String]) -> io::Result<PathBuf> {
        let dir = workspace().join("target/conformance");
        fs::create_dir_all(&dir)?;
        let file = dir.join(format!("{name}-failures.txt"));
        let lines = failures
            .iter()
            .map(|line| format!("{}\n", line.replace('\n', " | ")));
        fs::write(&file, lines.collect::<String>())?;
        Ok(file)
    }
}
