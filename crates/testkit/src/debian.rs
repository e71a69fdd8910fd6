//! Programs from Debian packages, unpacked once into the cache. Nothing is installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{gobuild::cache_dir, progress::say};

/// Finds unpacked packages in a folder of the cache, or fetches them with apt and unpacks them.
pub(crate) fn packages(folder: &str, names: &[&str]) -> Result<PathBuf> {
    let cache = cache_dir()?.join(folder);
    let done = cache.join(names.join("+"));
    if done.exists() {
        return Ok(done);
    }
    fs::create_dir_all(&cache)?;
    let lock = fs::File::create(cache.join("lock"))?;
    lock.lock()?;
    if done.exists() {
        return Ok(done);
    }
    say(format_args!("fetching the Debian packages {}", names.join(", ")));
    let work = tempfile::Builder::new().prefix("unpacking-").tempdir_in(&cache)?;
    let (debs, files) = (work.path().join("debs"), work.path().join("files"));
    fs::create_dir(&debs)?;
    fs::create_dir(&files)?;
    run(Command::new("apt-get")
        .arg("download")
        .args(names)
        .current_dir(&debs))
    .with_context(|| format!("can't fetch the Debian packages {}", names.join(", ")))?;
    for deb in fs::read_dir(&debs)?.flatten() {
        run(Command::new("dpkg-deb").arg("-x").arg(deb.path()).arg(&files))?;
    }
    fs::rename(&files, &done)?;
    Ok(done)
}

pub(crate) fn find(dir: &Path, name: &str) -> Result<PathBuf> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir)?.flatten() {
            if entry.file_name() == name {
                return Ok(entry.path());
            }
            if entry.file_type()?.is_dir() {
                dirs.push(entry.path());
            }
        }
    }
    anyhow::bail!("there is no {name} in {}", dir.display())
}

/// Runs a program; the error holds its output.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("can't run {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", said.trim_end());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
