//! Downloading the objects of a bucket into numbered files: names of objects never become names of files.

use std::{
    cell::Cell,
    collections::BTreeSet,
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
};

use api::{Fault, Reason};
use artifact::pack::{IGNORE_FILE, Item, PathKind};
use bucket::{Bucket, Entry};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tree::TreePath;

use super::{BucketRequest, UNPACKED_BYTES, fault, index::Index, layout, listing::Listed};
use crate::temp_files::TempFiles;

const CONCURRENT: usize = 100;

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(super) index: Arc<Index>,
    dir: PathBuf,
    files: Vec<(TreePath, usize)>,
}

/// Number of the file with the content of an item; `None` for directories.
pub(super) type Content = Option<usize>;

impl Snapshot {
    pub(super) fn items(&self) -> Vec<Item<Content>> {
        let dirs: BTreeSet<TreePath> = self
            .files
            .iter()
            .flat_map(|(path, _)| layout::ancestors(path))
            .collect();
        let dirs = dirs.into_iter().map(|path| Item {
            path,
            kind: PathKind::Dir,
            content: None,
        });
        let files = self.files.iter().map(|(path, number)| Item {
            path: path.clone(),
            kind: PathKind::File { executable: false },
            content: Some(*number),
        });
        dirs.chain(files).collect()
    }

    pub(super) fn path(&self, content: &Content) -> Option<PathBuf> {
        content.map(|number| self.dir.join(name_of(number)))
    }
}

fn name_of(number: usize) -> String {
    number.to_string()
}

/// Downloads the listed objects into files. Objects that are gone are left out, and changed ones have their new tag.
pub(super) async fn download(
    request: &BucketRequest,
    listed: &Listed,
    files: &TempFiles,
) -> Result<Snapshot, Fault> {
    let name = &request.settings.name;
    let failed = format!("fetch from bucket '{name}' failed");
    let index = listed.index();
    let paths = layout::paths(index.entries());
    let paths = paths.map_err(|error| refused(&failed, &error.to_string()))?;
    let task = Task {
        bucket: listed.bucket(),
        files,
        failed: &failed,
        left: Cell::new(UNPACKED_BYTES),
    };
    for entry in paths.values() {
        files.expect(entry.size);
    }
    let numbered = paths.into_iter().enumerate();
    let downloads = stream::iter(numbered).map(async |(number, (path, entry))| {
        let etag = task.object(entry, number).await?;
        Ok::<_, Fault>((path, number, entry, etag))
    });
    let done: Vec<_> = downloads.buffer_unordered(CONCURRENT).try_collect().await?;
    let gone: BTreeSet<&str> = done
        .iter()
        .filter(|(_, _, _, etag)| etag.is_none())
        .map(|(_, _, entry, _)| entry.key.as_str())
        .collect();
    if !gone.is_empty() {
        tracing::info!(bucket = name, objects = gone.len(), "indexed objects disappeared");
        // Objects are also missing from a bucket that is gone.
        let asked = listed.bucket().list(&request.prefix, None).await;
        asked.map_err(|error| fault(&failed, &error))?;
    }
    let changed = done
        .iter()
        .any(|(_, _, entry, etag)| etag.as_deref() != Some(&entry.etag));
    let index = match changed {
        false => Arc::clone(index),
        true => Arc::new(renewed(index, &gone, &done)),
    };
    let done = done.into_iter().filter(|(.., etag)| etag.is_some());
    let mut contents: Vec<(TreePath, usize)> = done.map(|(path, number, ..)| (path, number)).collect();
    if let Some(text) = listed.ignore_file() {
        let number = index.len() + gone.len();
        let written = files.create(&name_of(number));
        let written = written.and_then(|mut out| out.write_all(text.as_bytes()));
        written.map_err(|error| disk(&failed, &error))?;
        contents.push((TreePath::root().child(IGNORE_FILE), number));
    }
    Ok(Snapshot {
        index,
        dir: files.path().to_owned(),
        files: contents,
    })
}

type Done<'a> = (TreePath, usize, &'a Entry, Option<String>);

/// Returns the index without the objects that are gone, with the tags of the downloaded ones.
fn renewed(index: &Index, gone: &BTreeSet<&str>, done: &[Done<'_>]) -> Index {
    let remaining = index.entries().iter();
    let mut entries: Vec<Entry> = remaining
        .filter(|entry| !gone.contains(entry.key.as_str()))
        .cloned()
        .collect();
    // Of two entries with the same name, the later one counts.
    entries.extend(done.iter().filter_map(|(_, _, entry, etag)| {
        Some(Entry {
            etag: etag.clone()?,
            ..(*entry).clone()
        })
    }));
    Index::new(entries)
}

struct Task<'a> {
    bucket: &'a Bucket,
    files: &'a TempFiles,
    failed: &'a str,
    /// Bytes that may still be downloaded.
    left: Cell<u64>,
}

impl Task<'_> {
    /// Downloads an object and returns its tag; `None` if it is gone.
    async fn object(&self, entry: &Entry, number: usize) -> Result<Option<String>, Fault> {
        let failed = format!("{}: failed to get '{}' object", self.failed, entry.key);
        let found = self.bucket.get(entry).await;
        let Some(mut object) = found.map_err(|error| fault(&failed, &error))? else {
            return Ok(None);
        };
        let out = self.files.create(&name_of(number));
        let mut out = out.map_err(|error| disk(&failed, &error))?;
        while let Some(chunk) = object.chunk().await.map_err(|error| fault(&failed, &error))? {
            let left = self.left.get().checked_sub(chunk.len() as u64);
            let left = left.ok_or_else(|| {
                let why = format!(
                    "there are more than {UNPACKED_BYTES} bytes in the objects: set spec.prefix, or leave out objects with \
                     spec.ignore"
                );
                refused(&failed, &why)
            })?;
            self.left.set(left);
            out.write_all(&chunk).map_err(|error| disk(&failed, &error))?;
        }
        // A service that names no tag here has the one of the listing.
        let etag = Some(object.etag()).filter(|etag| !etag.is_empty());
        Ok(Some(etag.unwrap_or(&entry.etag).to_owned()))
    }
}

fn refused(failed: &str, why: &str) -> Fault {
    Fault::retry(Reason::BucketOperationFailed, format!("{failed}: {why}"))
}

fn disk(failed: &str, error: &io::Error) -> Fault {
    Fault::retry(Reason::DirectoryCreationFailed, format!("{failed}: {error}"))
}
