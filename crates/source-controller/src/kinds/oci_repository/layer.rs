//! The layer of an artifact: choice, download, unpacking and packing. Its content may be hostile.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use api::{Fault, Reason, source::OCILayerSelector};
use artifact::{
    fetch::{self, Limits},
    pack::{self, IGNORE_FILE, Item, Packed, PathKind},
    storage::ArtifactWriter,
};
use oci::{Descriptor, Manifest, Registry};
use tree::{Budget, TreePath};

use crate::{
    blocking::Job,
    permits,
    source_kind::{BuildError, PackOptions},
    temp_files::TempFiles,
};

const BYTES: u64 = 1 << 30;
const BLOB: &str = "layer";
const IGNORE_BYTES: u64 = 1 << 20;
const IGNORE_LINES: usize = 5000;
const ANNOTATION_BYTES: usize = 32 << 10;
const ANNOTATIONS: usize = 100;
const MEDIA_TYPE_CHARS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayerRule {
    media_type: Option<String>,
    copy: bool,
}

impl LayerRule {
    pub(super) fn of(selector: Option<&OCILayerSelector>) -> Self {
        let media_type = selector.and_then(|selector| selector.media_type.clone());
        let operation = selector.and_then(|selector| selector.operation.as_deref());
        Self {
            media_type: media_type.filter(|media_type| !media_type.is_empty()),
            copy: operation == Some("copy"),
        }
    }

    fn select<'a>(&self, manifest: &'a Manifest) -> Result<&'a Descriptor, Fault> {
        if manifest.layers.is_empty() {
            return Err(failed("no layers found in artifact"));
        }
        let fits = |layer: &&Descriptor| match &self.media_type {
            Some(media_type) => layer.media_type == *media_type,
            None => true,
        };
        manifest.layers.iter().find(fits).ok_or_else(|| {
            let media_type = self.media_type.as_deref().unwrap_or_default();
            failed(&format!(
                "failed to find layer with media type '{media_type}' in artifact"
            ))
        })
    }
}

/// A downloaded layer. Its files have the lifetime of its directory.
pub(crate) struct Layer {
    pub(super) annotations: BTreeMap<String, String>,
    content: Content,
    not_utf8: Vec<TreePath>,
}

enum Content {
    File(PathBuf),
    /// Its files below this directory.
    Files(PathBuf),
}

fn failed(message: &str) -> Fault {
    Fault::retry(Reason::OCIArtifactLayerOperationFailed, message)
}

fn disk(error: &io::Error) -> Fault {
    let message = format!("failed to use the temporary working directory: {error}");
    Fault::retry(Reason::DirectoryCreationFailed, message)
}

pub(super) async fn download(
    (registry, job): (&Registry, &Job),
    manifest: &Manifest,
    rule: &LayerRule,
    files: &TempFiles,
    prefix: &str,
) -> Result<Layer, Fault> {
    let layer = rule.select(manifest)?;
    files.expect(layer.size);
    if !rule.copy {
        files.expect_unpacked(layer.size, BYTES);
    }
    let blob = files.path().join(BLOB);
    let mut file = files.create(BLOB).map_err(|error| disk(&error))?;
    let downloaded = registry.download(layer, BYTES, &mut file).await;
    downloaded.map_err(|error| match error {
        oci::Error::Disk { source, .. } => disk(&source),
        error => super::fault(prefix, &error),
    })?;
    let (content, not_utf8) = match rule.copy {
        true => (Content::File(blob), Vec::new()),
        false => {
            let root = files.path().join("files");
            let limits = Limits {
                download_bytes: BYTES,
                unpacked_bytes: BYTES,
                skip_links: true,
                ..Limits::default()
            };
            let mut take = |_: &TreePath, bytes| {
                permits::check(job, None)?;
                let taken = files.take(bytes);
                taken.map_err(|why| artifact::Error::Refused(why.to_string()))?;
                Ok(true)
            };
            let unpacked = fetch::unpack_with(&blob, &root, (&limits, &mut take));
            let unpacked = unpacked.map_err(|error| failed(&unextracted(layer, &error)))?;
            files.remove(BLOB).map_err(|error| disk(&error))?;
            (Content::Files(root), unpacked.not_utf8)
        }
    };
    Ok(Layer {
        annotations: bounded(&manifest.annotations),
        content,
        not_utf8,
    })
}

/// Describes a layer that can't be unpacked, with its media type.
fn unextracted(layer: &Descriptor, error: &artifact::Error) -> String {
    let message = format!("failed to extract layer contents from artifact: {error}");
    if !matches!(error, artifact::Error::Malformed(_)) {
        return message;
    }
    let media_type: String = layer.media_type.chars().take(MEDIA_TYPE_CHARS).collect();
    let message = format!("{message}: the layer has the media type '{media_type}'");
    match media_type.contains("tar") {
        true => message,
        false => format!(
            "{message}; choose another one by spec.layerSelector.mediaType, or set spec.layerSelector.operation to 'copy'"
        ),
    }
}

/// Returns the annotations that fit into a status, in the order of their keys.
fn bounded(annotations: &[(String, String)]) -> BTreeMap<String, String> {
    let mut left = ANNOTATION_BYTES;
    let mut selected = BTreeMap::new();
    for (key, value) in annotations.iter().take(ANNOTATIONS) {
        let Some(rest) = left.checked_sub(key.len() + value.len()) else {
            continue;
        };
        left = rest;
        selected.insert(key.clone(), value.clone());
    }
    selected
}

pub(super) fn pack(
    layer: &Layer,
    options: &PackOptions,
    out: &mut ArtifactWriter<'_>,
) -> Result<Packed, BuildError> {
    let budget = &options.budget;
    let root = match &layer.content {
        Content::File(file) => {
            let file = File::open(file).map_err(|error| disk(&error))?;
            return Ok(pack::copy(file, options.algorithm, BYTES, out)?);
        }
        Content::Files(root) => root,
    };
    let mut items = files(root, budget)?;
    items.extend(layer.not_utf8.iter().map(|path| Item {
        path: path.clone(),
        kind: PathKind::NotUtf8,
        content: (),
    }));
    let ignore = options.ignore.as_deref();
    let rules = pack::rules(ignore_files(root, &items, ignore)?, ignore);
    let items = options.planned(pack::plan(items, &rules, budget)?);
    let open = |item: &Item<()>| {
        budget.check()?;
        let opened = File::open(root.join(item.path.as_str()));
        let sized = opened.and_then(|file| Ok((file.metadata()?.len(), file)));
        sized.map_err(|error| BuildError::Fault(disk(&error)))
    };
    pack::pack_streams(&items, open, options.algorithm, BYTES, out)
}

/// Returns all paths below an unpacked directory: directories and regular files.
fn files(root: &Path, budget: &Budget) -> Result<Vec<Item<()>>, BuildError> {
    let mut found = Vec::new();
    let mut open = vec![TreePath::root()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(root.join(dir.as_str())).map_err(|error| disk(&error))? {
            budget.check()?;
            let entry = entry.map_err(|error| disk(&error))?;
            let metadata = entry.metadata().map_err(|error| disk(&error))?;
            let name = entry.file_name();
            let path = dir.child(&name.to_string_lossy());
            let kind = if metadata.is_dir() {
                open.push(path.clone());
                PathKind::Dir
            } else {
                let executable = metadata.permissions().mode() & 0o111 != 0;
                PathKind::File { executable }
            };
            found.push(Item {
                path,
                kind,
                content: (),
            });
        }
    }
    Ok(found)
}

fn ignore_files(
    root: &Path,
    items: &[Item<()>],
    spec: Option<&str>,
) -> Result<Vec<(TreePath, String)>, BuildError> {
    let invalid = |why: &str| {
        let message = format!("failed to load source ignore patterns from repository: {why}");
        Fault::retry(Reason::SourceIgnoreError, message)
    };
    let mut files = Vec::new();
    let (mut bytes, mut lines) = (0, spec.map_or(0, |spec| spec.lines().count()));
    for item in items {
        let is_file = matches!(item.kind, PathKind::File { .. }) && item.path.name() == IGNORE_FILE;
        let Some(dir) = item.path.parent().filter(|_| is_file) else {
            continue;
        };
        let path = root.join(item.path.as_str());
        let size = path.metadata().map_err(|error| disk(&error))?.len();
        bytes += size;
        if bytes > IGNORE_BYTES {
            return Err(invalid(&format!("there are more than {IGNORE_BYTES} bytes of them")).into());
        }
        let text = std::fs::read(path).map_err(|error| disk(&error))?;
        let text = String::from_utf8(text).map_err(|_| invalid(&format!("'{}' is not UTF-8", item.path)))?;
        lines += text.lines().count();
        files.push((dir, text));
    }
    if lines > IGNORE_LINES {
        return Err(invalid(&format!("there are more than {IGNORE_LINES} lines of them")).into());
    }
    if files
        .iter()
        .map(|(_, text)| text.as_str())
        .chain(spec)
        .any(pack::has_long_rule)
    {
        let most = pack::MAX_RULE_BYTES;
        return Err(invalid(&format!("a line has more than {most} bytes")).into());
    }
    Ok(files)
}
