//! The programs of a release.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{Architecture, Header, crate_list, crates::Crates};

/// Name of the command line program.
pub(crate) const WEIR: &str = "weir";
/// Linkers write the headers that tell where a program runs to its beginning.
const HEADERS: u64 = 64 << 10;

/// The programs for an architecture, in one folder.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) architecture: Architecture,
    folder: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) content: Vec<u8>,
}

impl Programs {
    /// Finds the programs in a folder, which are for one architecture.
    fn find(folder: &Path, allow_dynamic: bool) -> Result<Self> {
        let mut found = None;
        for name in names() {
            let path = folder.join(name);
            let header = Header::read(&start(&path)?)
                .with_context(|| format!("{} can't be released", path.display()))?;
            ensure!(
                header.is_static || allow_dynamic,
                "{} needs a dynamic loader, which images from scratch don't have: build it for a musl target",
                path.display()
            );
            match found {
                Some(other) if other != header.architecture => {
                    bail!(
                        "{} has programs for {other} and {}",
                        folder.display(),
                        header.architecture
                    )
                }
                _ => found = Some(header.architecture),
            }
        }
        Ok(Self {
            architecture: found.context("there are no programs")?,
            folder: folder.to_owned(),
        })
    }

    /// Finds the programs for several architectures, and sorts them.
    pub(crate) fn find_all(folders: &[PathBuf], allow_dynamic: bool) -> Result<Vec<Self>> {
        ensure!(!folders.is_empty(), "name a folder with programs");
        let found = folders.iter().map(|folder| Self::find(folder, allow_dynamic));
        let mut all: Vec<Self> = found.collect::<Result<_>>()?;
        all.sort_by_key(|programs| programs.architecture);
        for pair in all.windows(2) {
            if let [a, b] = pair
                && a.architecture == b.architecture
            {
                let (a, b) = (a.folder.display(), b.folder.display());
                bail!("the programs in {a} and {b} are for the same architecture");
            }
        }
        Ok(all)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads one program, so that not all are in memory, and embeds the list of its crates.
    pub(crate) fn program(&self, name: &'static str, crates: &Crates) -> Result<Program> {
        let path = self.path(name);
        let content = crate_list::embed(read(&path)?, &crates.parts(name)?)
            .with_context(|| format!("cannot embed the list of crates in {}", path.display()))?;
        Ok(Program { name, content })
    }
}

/// Lists the programs of a release.
pub(crate) fn names() -> Vec<&'static str> {
    let mut names = install::available();
    names.push(WEIR);
    names
}

/// Reads the part of a program that has its headers.
fn start(path: &Path) -> Result<Vec<u8>> {
    let file = fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut start = Vec::new();
    file.take(HEADERS).read_to_end(&mut start)?;
    Ok(start)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
