//! Large repositories, generated once into the cache. Their contents are random, so that nothing compresses, and the same in each run.

use std::{
    fs,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;

use crate::bench::measure::print;

/// Folder of the cache. Raise the version in its name when the contents change.
const FOLDER: &str = "bench-sources-1";
/// Files of the repository with many of them, and the bytes of each.
const FILES: usize = 20_000;
const FILE_BYTES: usize = 5_000;
/// Commits of the repository with a long history; each replaces one of its files.
const COMMITS: usize = 1024;
const REPLACED: usize = 32;
const REPLACED_BYTES: usize = 1 << 20;
/// The date of the first commit, 2026-01-01.
const FIRST_DATE: usize = 1_767_225_600;

/// Returns the bare repository with 20,000 files of 100 MB in one commit.
pub(super) fn files() -> Result<PathBuf> {
    generate("files", |out| {
        let mut random = Random::new();
        commit(out, 0)?;
        for file in 0..FILES {
            let path = format!("directory-{}/file-{file}", file % 200);
            random.write(out, &path, FILE_BYTES)?;
        }
        Ok(())
    })
}

/// Returns the bare repository with a history of 1 GiB, whose last commit has 32 files of 1 MiB.
pub(super) fn history() -> Result<PathBuf> {
    generate("history", |out| {
        let mut random = Random::new();
        for number in 0..COMMITS {
            commit(out, number)?;
            random.write(out, &format!("file-{}", number % REPLACED), REPLACED_BYTES)?;
        }
        Ok(())
    })
}

/// Begins a commit on main, to which the files behind it belong.
fn commit(out: &mut dyn Write, number: usize) -> Result<()> {
    let date = FIRST_DATE + number * 60;
    writeln!(
        out,
        "commit refs/heads/main\ncommitter Test Kit <testkit@example.com> {date} +0000\ndata 6\ncommit"
    )?;
    Ok(())
}

/// Random contents, the same in each run.
struct Random {
    random: Rng,
    content: Vec<u8>,
}

impl Random {
    fn new() -> Self {
        Self {
            random: Rng::with_seed(16),
            content: Vec::new(),
        }
    }

    /// Writes a file with random bytes into the current commit.
    fn write(&mut self, out: &mut dyn Write, path: &str, bytes: usize) -> Result<()> {
        self.content.resize(bytes, 0);
        self.random.fill(&mut self.content);
        writeln!(out, "M 100644 inline {path}\ndata {bytes}")?;
        out.write_all(&self.content)?;
        writeln!(out)?;
        Ok(())
    }
}

/// Finds a repository in the cache, or makes it: `write` writes the input of `git fast-import`.
fn generate(name: &str, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<PathBuf> {
    let cache = testkit::cache_dir()?.join(FOLDER);
    let done = cache.join(format!("{name}.git"));
    if done.exists() {
        return Ok(done);
    }
    print(&format!("generating {} (once)", done.display()));
    fs::create_dir_all(&cache)?;
    let work = tempfile::Builder::new()
        .prefix("generating-")
        .tempdir_in(&cache)?;
    run(git(work.path()).args(["init", "--quiet", "--bare", "--initial-branch=main"]))?;
    let mut import = git(work.path())
        // Nothing compresses, and no file is like another.
        .args(["-c", "core.compression=0", "fast-import", "--quiet", "--depth=0"])
        .stdin(Stdio::piped())
        .spawn()
        .context("can't run git")?;
    let mut out = BufWriter::with_capacity(1 << 20, import.stdin.take().context("no standard input")?);
    write(&mut out)?;
    out.flush()?;
    drop(out);
    ensure!(import.wait()?.success(), "git fast-import failed");
    run(git(work.path()).args(["config", "uploadpack.allowReachableSHA1InWant", "true"]))?;
    fs::rename(work.keep(), &done)?;
    Ok(done)
}

/// Reads all packs of a repository, so that the one who reads them first doesn't wait for the disk.
pub(super) fn warm(repository: &Path) -> Result<()> {
    for file in fs::read_dir(repository.join("objects/pack"))? {
        std::io::copy(&mut fs::File::open(file?.path())?, &mut std::io::sink())?;
    }
    Ok(())
}

/// Returns a git command that obeys no settings of this machine or user.
fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().context("can't run git")?;
    ensure!(status.success(), "{command:?} failed");
    Ok(())
}
