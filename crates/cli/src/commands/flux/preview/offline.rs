//! `weir validate --offline`: checks manifests in files by the schemas and rules of the definitions, without a cluster.

mod definitions;
mod metadata;
mod rules;
mod schema;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use tree::Budget;
use yaml::read::Document;

use crate::{
    commands::{kustomize, operation},
    files::{bounded, read_bounded},
    flags::output::{OutputFormat, OutputTarget},
    terminal::{Terminal, printable},
};
use definitions::{Checked, Definitions};
use schema::Invalid;

/// Maximum size of a file, in bytes.
const FILE_BYTES: u64 = 20 << 20;
/// Maximum nesting of directories.
const DEPTH: usize = 64;
/// Maximum number of files.
const FILES: usize = 100_000;

/// The path that stands for the standard input.
const STDIN: &str = "-";

/// The result of a validation.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    valid: usize,
    invalid: usize,
    /// Number of objects of other kinds, which were left out.
    others: usize,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding {
    file: String,
    /// Line of the document; absent if the file can't be parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Number of the document in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<usize>,
    /// Kind, namespace and name.
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    #[serde(flatten)]
    problem: Invalid,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if let Some(document) = self.document {
            write!(f, "document {document}: ")?;
        }
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        fmt::Display::fmt(&self.problem, f)
    }
}

/// Validates files, the files with manifests below directories, and the standard input, and prints the result in all formats.
///
/// # Errors
/// If a path can't be read, or anything is invalid.
pub(crate) fn validate(paths: &[PathBuf], formats: &[OutputTarget], terminal: &Terminal) -> Result<()> {
    ensure!(
        !paths.is_empty(),
        "--offline needs files or directories with manifests, or - for the standard input"
    );
    let mut definitions = Definitions::embedded();
    let mut report = Report::default();
    for path in paths {
        if path.as_os_str() == STDIN {
            let text = bounded(std::io::stdin().lock(), FILE_BYTES).context("the standard input")?;
            report.check("stdin", &text, &mut definitions);
            continue;
        }
        let mut files = Vec::new();
        let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
        match metadata.is_dir() {
            true => manifests(path, DEPTH, &mut files)?,
            false => files.push(path.clone()),
        }
        for file in &files {
            let shown = file.display().to_string();
            let text = read_bounded(file, FILE_BYTES).with_context(|| shown.clone())?;
            report.check(&shown, &text, &mut definitions);
        }
    }
    for output in formats {
        operation::print(output, &report.text(output.format)?)?;
    }
    ensure!(
        report.invalid == 0,
        "{} of {} objects are invalid",
        report.invalid,
        report.invalid + report.valid
    );
    terminal.success(&format!(
        "objects that are valid: {}, of other kinds that were left out: {}",
        report.valid, report.others
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

impl Report {
    /// Checks the documents of a file.
    fn check(&mut self, file: &str, text: &[u8], definitions: &mut Definitions) {
        let documents = match yaml::read::goyaml_all(text, &Budget::new(kustomize::limits())) {
            Ok(documents) => documents,
            Err(error) => {
                self.invalid += 1;
                self.findings.push(Finding {
                    file: file.to_owned(),
                    line: None,
                    document: None,
                    object: None,
                    problem: Invalid {
                        field: String::new(),
                        message: error.to_string(),
                    },
                });
                return;
            }
        };
        for (at, Document { value, position }) in documents.into_iter().enumerate() {
            for object in definitions::items(value.to_json()) {
                let Some(Checked { name, found }) = definitions.check(object) else {
                    self.others += 1;
                    continue;
                };
                match found.is_empty() {
                    true => self.valid += 1,
                    false => self.invalid += 1,
                }
                let found = found.into_iter().map(|problem| Finding {
                    file: file.to_owned(),
                    line: Some(position.line),
                    document: Some(at + 1),
                    object: Some(name.clone()),
                    problem,
                });
                self.findings.extend(found);
            }
        }
    }

    fn text(&self, format: OutputFormat) -> Result<String> {
        let value = || serde_json::to_value(self).map(yaml::Value::from_json);
        Ok(match format {
            OutputFormat::Text => {
                let lines = self.findings.iter();
                lines
                    .map(|finding| format!("{}\n", printable(&finding.to_string())))
                    .collect()
            }
            OutputFormat::Yaml => yaml::print::goyaml(&value()?),
            OutputFormat::Json => operation::json(&value()?),
        })
    }
}
