//! `weir validate --offline`: checks manifests in files by the schemas and rules of the definitions, without a cluster.

mod definitions;
mod rules;
mod schema;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use tree::Budget;
use yaml::read::Document;

use crate::{
    commands::kustomize,
    files::read_bounded,
    output,
    terminal::{Terminal, printable},
};
use definitions::{Checked, Definitions};

/// Maximum size of a file, in bytes.
const FILE_BYTES: u64 = 20 << 20;
/// Maximum nesting of directories.
const DEPTH: usize = 64;
/// Maximum number of files.
const FILES: usize = 100_000;

/// The counts of a validation.
#[derive(Debug, Default)]
struct Counts {
    valid: usize,
    invalid: usize,
    others: usize,
}

/// Validates files, and the files with manifests below directories.
///
/// # Errors
/// If a path can't be read, or anything is invalid.
pub(crate) fn validate(paths: &[PathBuf], terminal: &Terminal) -> Result<()> {
    ensure!(
        !paths.is_empty(),
        "--offline needs files or directories with manifests"
    );
    let mut files = Vec::new();
    for path in paths {
        let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
        match metadata.is_dir() {
            true => manifests(path, DEPTH, &mut files)?,
            false => files.push(path.clone()),
        }
    }
    let mut definitions = Definitions::embedded();
    let (mut counts, mut lines) = (Counts::default(), Vec::new());
    for file in &files {
        check(file, &mut definitions, &mut counts, &mut lines)?;
    }
    let lines: Vec<String> = lines.iter().map(|line| printable(line)).collect();
    output::print_all(&lines)?;
    ensure!(
        counts.invalid == 0,
        "{} of {} objects are invalid",
        counts.invalid,
        counts.invalid + counts.valid
    );
    terminal.success(&format!(
        "{} valid objects, {} of other kinds were left out",
        counts.valid, counts.others
    ));
    Ok(())
}

/// Collects the files with manifests below a directory, in the order of their names. Hidden directories and links to directories are left out.
fn manifests(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let shown = dir.display();
    ensure!(depth > 0, "{shown}: the directories are nested too deeply");
    let entries = fs::read_dir(dir).with_context(|| shown.to_string())?;
    let mut entries: Vec<_> = entries
        .collect::<Result<_, _>>()
        .with_context(|| shown.to_string())?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if kind.is_dir() && !is_hidden {
            manifests(&path, depth - 1, files)?;
        } else if !kind.is_dir() && path.is_file() && has_manifests(&path) {
            ensure!(files.len() < FILES, "{shown}: more than {FILES} files");
            files.push(path);
        }
    }
    Ok(())
}

fn has_manifests(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

/// Checks the documents of a file, and adds a line for each finding.
fn check(
    file: &Path,
    definitions: &mut Definitions,
    counts: &mut Counts,
    lines: &mut Vec<String>,
) -> Result<()> {
    let shown = file.display();
    let text = read_bounded(file, FILE_BYTES).with_context(|| shown.to_string())?;
    let documents = match yaml::read::goyaml_all(&text, &Budget::new(kustomize::limits())) {
        Ok(documents) => documents,
        Err(error) => {
            counts.invalid += 1;
            lines.push(format!("{shown}: {error}\n"));
            return Ok(());
        }
    };
    for (at, Document { value, position }) in documents.into_iter().enumerate() {
        for object in definitions::items(value.to_json()) {
            let Some(Checked { name, found }) = definitions.check(object) else {
                counts.others += 1;
                continue;
            };
            match found.is_empty() {
                true => counts.valid += 1,
                false => counts.invalid += 1,
            }
            let line = position.line;
            let found = found
                .iter()
                .map(|one| format!("{shown}:{line}: document {}: {name}: {one}\n", at + 1));
            lines.extend(found);
        }
    }
    Ok(())
}
