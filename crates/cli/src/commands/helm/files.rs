//! Reads values files and writes manifests.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{ErrorKind, Read, Write as _},
    path::{Component, Path},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use helm::{Options, Rendered};
use tree::{Budget, Limits};

use remote::RemoteFetcher;

use crate::output::print;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{url}: {why}")]
    Url { url: String, why: String },
    #[error("open {path}: {}", go_error(.error))]
    Open { path: String, error: std::io::Error },
    #[error("read {path}: {}", go_error(.error))]
    Read { path: String, error: std::io::Error },
    #[error("{path} is larger than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
}

/// Reads a file, the content of a URL, or stdin for `-`. Errors use Helm's wording.
pub(crate) fn read(path: &str, fetcher: &RemoteFetcher, limits: &Limits) -> Result<Bytes, FileError> {
    if path.trim() == "-" {
        return read_bounded(std::io::stdin().lock(), path, limits);
    }
    let printable = api::redact(path);
    if path.starts_with("https://") || path.starts_with("http://") {
        return kustomize::Fetch::file(fetcher, path, &Budget::new(limits.clone())).map_err(|why| {
            FileError::Url {
                url: printable.to_string(),
                why: why.to_string(),
            }
        });
    }
    let file = File::open(path).map_err(|error| FileError::Open {
        path: printable.to_string(),
        error,
    })?;
    read_bounded(file, &printable, limits)
}

/// Formats an I/O error as Go does.
fn go_error(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory".to_owned(),
        ErrorKind::IsADirectory => "is a directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn read_bounded(source: impl Read, path: &str, limits: &Limits) -> Result<Bytes, FileError> {
    let limit = limits.file_bytes;
    let mut bytes = Vec::new();
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::Read {
            path: path.to_owned(),
            error,
        })?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(Bytes::from(bytes))
}

/// Writes the manifests to files below a directory, one per template, as `helm template --output-dir` does.
pub(crate) fn write(dir: &Path, rendered: &Rendered, options: &Options<'_>) -> Result<()> {
    let crds = rendered.crds.iter().filter(|_| options.include_crds);
    let crds = crds.map(|(path, text)| (path, text));
    let hooks = rendered
        .sorted
        .hooks
        .iter()
        .filter(|hook| !(options.no_hooks || options.skip_tests && hook.is_test()))
        .map(|hook| &hook.manifest);
    let manifests = rendered.sorted.manifests.iter().chain(hooks);
    let mut begun = HashSet::new();
    for (path, text) in crds.chain(manifests.map(|one| (&one.path, &one.text))) {
        append(dir, path, text, begun.insert(path))?;
    }
    print("\n")
}

/// Appends a manifest to the file of its template; the first one truncates the file.
fn append(dir: &Path, path: &str, text: &str, is_first: bool) -> Result<()> {
    let below = Path::new(path);
    ensure!(
        below
            .components()
            .all(|part| matches!(part, Component::Normal(_))),
        "invalid template path {path:?}: cannot be written below {}",
        dir.display()
    );
    let file = dir.join(below);
    let context = || format!("write {}", file.display());
    fs::create_dir_all(file.parent().unwrap_or(dir)).with_context(context)?;
    let mut open = File::options();
    open.create(true).write(true).truncate(is_first).append(!is_first);
    let mut opened = open.open(&file).with_context(context)?;
    write!(opened, "---\n# Source: {path}\n{text}\n").with_context(context)?;
    print(&format!("wrote {}\n", file.display()))
}
