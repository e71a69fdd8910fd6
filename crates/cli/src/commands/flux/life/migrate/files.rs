//! Rewriting files below the current directory.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    MigrateArgs,
    rewrite::{Change, RELEASES, rewrite},
};
use crate::{files::read_bounded, output, terminal::Terminal, usage::split_list};

const MAX_FILE: u64 = 64 << 20;
const MAX_FILES: usize = 100_000;
const MAX_DEPTH: usize = 64;

/// A file with older versions.
struct Outdated {
    path: PathBuf,
    text: String,
    changes: Vec<Change>,
}

pub(super) fn run(args: &MigrateArgs, path: &Path) -> Result<()> {
    ensure!(
        RELEASES.contains(&args.version.as_str()),
        "version {} is not supported, supported versions are: {}",
        args.version,
        RELEASES.join(", ")
    );
    let root = std::env::current_dir()?.canonicalize()?;
    let path = path
        .canonicalize()
        .with_context(|| format!("find {}", path.display()))?;
    ensure!(
        path.starts_with(&root),
        "{} is not below the current directory: change to its directory first",
        path.display()
    );
    let mut files = Vec::new();
    match path.is_dir() {
        true => collect(&path, &split_list(&args.extensions)?, 0, &mut files)?,
        false => files.push(path),
    }
    let mut outdated = Vec::new();
    for file in files {
        outdated.extend(read(file, &args.version)?);
    }
    let mut report = String::new();
    for file in &outdated {
        let shown = file.path.strip_prefix(&root).unwrap_or(&file.path).display();
        for change in &file.changes {
            let Change { line, kind, from, to } = change;
            report += &format!("{shown}:{line}: {kind} {from} -> {to}\n");
        }
    }
    output::print(&report)?;
    write(args, &outdated)
}

fn write(args: &MigrateArgs, outdated: &[Outdated]) -> Result<()> {
    let terminal = Terminal::new(false, false);
    if outdated.is_empty() {
        terminal.plain("✔ no custom resources found that require migration");
        return Ok(());
    }
    if args.dry_run {
        terminal.plain("✔ dry run: no file was changed");
        return Ok(());
    }
    let question = format!("Rewrite {} files?", outdated.len());
    ensure!(
        args.yes || terminal.ask_or(&question, "--yes"),
        "the rewrite was not confirmed"
    );
    for file in outdated {
        fs::write(&file.path, &file.text).with_context(|| format!("write {}", file.path.display()))?;
    }
    terminal.plain("✔ custom resources migrated successfully");
    Ok(())
}

/// Lists files by the endings of their names. Links are not followed, and directories of Git are left out.
fn collect(dir: &Path, endings: &[String], depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    ensure!(
        depth < MAX_DEPTH,
        "{}: directories are nested too deeply",
        dir.display()
    );
    let entries = fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))?;
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let name = name.to_string_lossy();
        if kind.is_dir() && name != ".git" {
            collect(&entry.path(), endings, depth + 1, files)?;
        } else if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending.as_str())) {
            ensure!(
                files.len() < MAX_FILES,
                "there are more than {MAX_FILES} files: name a smaller directory"
            );
            files.push(entry.path());
        }
    }
    Ok(())
}

fn read(path: PathBuf, release: &str) -> Result<Option<Outdated>> {
    let bytes = read_bounded(&path, MAX_FILE).with_context(|| format!("read {}", path.display()))?;
    // Other files have no manifests.
    let Ok(text) = String::from_utf8(bytes) else {
        return Ok(None);
    };
    let (text, changes) = rewrite(&text, release);
    Ok((!changes.is_empty()).then_some(Outdated { path, text, changes }))
}
