//! Files of OCI artifacts.

use bytes::Bytes;
use oci::{Access, Limits as OciLimits, Reference, Registry, Wanted};
use tempfile::TempDir;
use tree::{Disk, Entry, Limits, NodeKind, Tree, TreeError, TreePath};

use crate::{Error, FetchedFiles, ScopedCache, ServerAccess};

pub struct Layer {
    pub digest: String,
    pub manifest: String,
    pub annotations: Vec<(String, String)>,
    pub files: LayerFiles,
}

pub enum LayerFiles {
    /// They were pulled before, and the manifest names the layer again.
    Cached(FetchedFiles),
    Pulled(Bytes),
}

#[must_use]
pub fn name(url: &str, tag: Option<&str>, digest: Option<&str>) -> String {
    let tag = tag.map(|tag| format!(":{tag}")).unwrap_or_default();
    let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
    format!("{url}{tag}{digest}")
}

/// Returns the digest in the [`name`] of an artifact; `None` if a registry has to be asked for it.
pub fn digest_in(name: &str) -> Result<Option<String>, oci::Error> {
    Ok(match Reference::parse(name)?.wanted() {
        Wanted::Digest(digest) => Some(digest.to_string()),
        _ => None,
    })
}

pub async fn digest(servers: &ServerAccess, name: &str, access: Access) -> Result<String, oci::Error> {
    let client = servers.oci_client(access)?;
    let registry = Registry::new(&client, Reference::parse(name)?);
    let digest = registry.digest(&registry.reference().wanted()).await?;
    Ok(digest.to_string())
}

/// Returns the first layer of an artifact with this [`name`]. Its manifest is read even if the layer is cached.
pub async fn layer(
    servers: &ServerAccess,
    name: &str,
    access: Access,
    cache: Option<&ScopedCache>,
) -> Result<Layer, oci::Error> {
    let client = servers.oci_client(access)?;
    let registry = Registry::new(&client, Reference::parse(name)?);
    let manifest = registry.manifest(&registry.reference().wanted()).await?;
    let layer = manifest.layers.first().ok_or_else(|| oci::Error::Malformed {
        url: registry.reference().to_string(),
        why: "the artifact has no layer".to_owned(),
    })?;
    let digest = layer.digest.to_string();
    let files = match cache.and_then(|cache| cache.get(&digest)) {
        Some(files) => LayerFiles::Cached(files),
        None => LayerFiles::Pulled(registry.blob(layer, OciLimits::default().archive_bytes).await?),
    };
    Ok(Layer {
        digest,
        manifest: manifest.digest.to_string(),
        annotations: manifest.annotations.clone(),
        files,
    })
}

pub fn unpack(bytes: &Bytes, limits: &Limits, unpacking: &artifact::FetchLimits) -> Result<Unpacked, Error> {
    let disk = |error: std::io::Error| Error::Artifact(format!("no temporary directory: {error}"));
    let dir = tempfile::Builder::new().prefix("weir-").tempdir().map_err(disk)?;
    let (packed, root) = (dir.path().join("layer"), dir.path().join("files"));
    std::fs::write(&packed, bytes).map_err(disk)?;
    let words = |error: artifact::Error| Error::Artifact(format!("the artifact can't be unpacked: {error}"));
    let bytes = artifact::unpack(&packed, &root, unpacking).map_err(words)?;
    std::fs::remove_file(&packed).map_err(disk)?;
    let disk = Disk::open(&root, limits).map_err(|error| Error::Artifact(error.to_string()))?;
    Ok(Unpacked {
        disk,
        bytes,
        _dir: dir,
    })
}

/// The unpacked files of an artifact, removed when dropped.
pub struct Unpacked {
    disk: Disk,
    bytes: u64,
    _dir: TempDir,
}

impl Unpacked {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Tree for Unpacked {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        self.disk.read(path)
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        self.disk.list(dir)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        self.disk.kind(path)
    }

    fn resolve(&self, path: &TreePath) -> Result<Option<TreePath>, TreeError> {
        self.disk.resolve(path)
    }
}
