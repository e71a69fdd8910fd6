//! OCI image layouts as tarballs, which container engines and tools of registries read.

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tar::Archive;

use crate::{
    Files,
    digest::sha256,
    image::{INDEX, Manifest},
};

/// End of the names of layouts.
pub(crate) const LAYOUT: &str = ".oci.tar";
const VERSION: &str = "oci-layout";
const ROOT: &str = "index.json";
const BLOBS: &str = "blobs/sha256/";
const TAG: &str = "org.opencontainers.image.ref.name";

/// Returns the tarball of a manifest and everything that it refers to.
pub(crate) fn pack(manifest: &Manifest, tag: &str, time: u64) -> Result<Vec<u8>> {
    let mut descriptor = manifest.root.descriptor();
    if let Some(fields) = descriptor.as_object_mut() {
        fields.insert("annotations".to_owned(), json!({ TAG: tag }));
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor] });
    let mut files = Files::default();
    files.add(VERSION, json!({ "imageLayoutVersion": "1.0.0" }).to_string());
    files.add(ROOT, index.to_string());
    for blob in manifest.blobs.iter().chain([&manifest.root]) {
        files.add(&format!("{BLOBS}{}", blob.hex()), blob.content.as_slice());
    }
    files.tar(time)
}

/// Returns the layouts in a folder, sorted: the name of the program or artifact, and the path.
pub(crate) fn find_all(dir: &Path) -> Result<Vec<(String, PathBuf)>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let file = entry.file_name();
        let name = file.to_str().and_then(|name| name.strip_suffix(LAYOUT));
        if let Some((name, _version)) = name.and_then(|name| name.rsplit_once('_')) {
            found.push((name.to_owned(), entry.path()));
        }
    }
    ensure!(!found.is_empty(), "{} has no files *{LAYOUT}", dir.display());
    found.sort();
    Ok(found)
}

/// An unpacked layout with one manifest or index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub tag: String,
    /// Digest of the manifest or index.
    pub root: String,
    /// Contents by digest.
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Layout {
    pub(crate) fn of(manifest: Manifest, tag: String) -> Self {
        let root = manifest.root.digest();
        let blobs = manifest.blobs.into_iter().chain([manifest.root]);
        Self {
            tag,
            root,
            blobs: blobs.map(|blob| (blob.digest(), blob.content)).collect(),
        }
    }

    /// # Errors
    /// As [`Layout::read`], or if the file can't be read.
    pub fn open(path: &Path) -> Result<Self> {
        let read = fs::read(path).map_err(anyhow::Error::from);
        let layout = read.and_then(|tarball| Self::read(&tarball));
        layout.with_context(|| format!("cannot read {}", path.display()))
    }

    /// # Errors
    /// If it is not a layout with one tagged manifest, or a blob has another digest than its name says.
    pub fn read(tarball: &[u8]) -> Result<Self> {
        let (mut index, mut blobs) = (None, BTreeMap::new());
        for entry in Archive::new(tarball).entries()? {
            let mut entry = entry?;
            let path = String::from_utf8(entry.path_bytes().into_owned()).context("a path is not UTF-8")?;
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if path == ROOT {
                index = Some(content);
            } else if let Some(name) = path.strip_prefix(BLOBS).filter(|name| !name.is_empty()) {
                let digest = sha256(&content);
                ensure!(digest == name, "the blob {name} has the digest {digest}");
                blobs.insert(format!("sha256:{digest}"), content);
            }
        }
        let index: Value = serde_json::from_slice(&index.context("there is no index.json")?)?;
        let only = index
            .pointer("/manifests/0")
            .context("index.json names no manifest")?;
        let tag = only
            .get("annotations")
            .and_then(|annotations| annotations.get(TAG));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            tag: text(tag).context("index.json names no tag")?,
            root: text(only.get("digest")).context("index.json names no digest")?,
            blobs,
        })
    }

    /// # Errors
    /// If there is no such blob.
    pub fn blob(&self, digest: &str) -> Result<&[u8]> {
        let blob = self.blobs.get(digest).map(Vec::as_slice);
        blob.with_context(|| format!("the layout has no blob {digest}"))
    }

    /// Reads a manifest or index.
    ///
    /// # Errors
    /// If there is no such blob, or it is not JSON.
    pub fn json(&self, digest: &str) -> Result<Value> {
        Ok(serde_json::from_slice(self.blob(digest)?)?)
    }
}

/// Returns a list in a manifest or index, which is empty if it is missing.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let text = value.get(key).and_then(Value::as_str);
    text.with_context(|| format!("there is no {key}"))
}
