//! Images, manifests and indexes of OCI. Pure.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::{Architecture, Files, Release, digest::sha256, files};

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const FLUX_CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const FLUX_CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// User and group of the programs, as the manifests of the installation have them.
const USER: u32 = 65532;
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blob {
    pub(crate) media_type: &'static str,
    pub(crate) content: Vec<u8>,
}

impl Blob {
    pub(crate) fn json(media_type: &'static str, value: &Value) -> Self {
        let content = value.to_string().into_bytes();
        Self { media_type, content }
    }

    pub(crate) fn digest(&self) -> String {
        format!("sha256:{}", self.hex())
    }

    pub(crate) fn hex(&self) -> String {
        sha256(&self.content)
    }

    pub(crate) fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.media_type,
            "digest": self.digest(),
            "size": self.content.len(),
        })
    }
}

/// A manifest with everything that it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) root: Blob,
    pub(crate) blobs: Vec<Blob>,
}

/// Returns the image of a program: the program, certificates of public authorities, and its user.
pub(crate) fn program(
    name: &str,
    content: Vec<u8>,
    architecture: Architecture,
    certificates: &[u8],
    release: &Release,
) -> Result<Manifest> {
    let mut root = Files::default();
    root.add(CERTIFICATES, certificates);
    let passwd = format!("root:x:0:0:root:/:/sbin/nologin\nweir:x:{USER}:{USER}:weir:/tmp:/sbin/nologin\n");
    root.add("etc/passwd", passwd);
    root.add("etc/group", format!("root:x:0:\nweir:x:{USER}:\n"));
    root.add_folder("tmp", 0o1777);
    let path = format!("usr/local/bin/{name}");
    root.add_program(&path, content);
    let tar = root.tar(release.time)?;
    let layer = Blob {
        media_type: LAYER,
        content: files::gzip(&tar, release.compression)?,
    };
    let created = created(release)?;
    let config = json!({
        "architecture": architecture.to_string(),
        "os": "linux",
        "created": created,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{path}")],
            "Env": ["PATH=/usr/local/bin", "HOME=/tmp", format!("SSL_CERT_FILE=/{CERTIFICATES}")],
            "WorkingDir": "/",
            "Labels": annotations(name, release, &created),
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&tar))] },
        "history": [{ "created": created, "created_by": "make dist" }],
    });
    let config = Blob::json(CONFIG, &config);
    Ok(manifest(config, layer, &annotations(name, release, &created)))
}

/// Returns an artifact whose only layer is a compressed tarball, in the media types of Flux.
pub(crate) fn artifact(content: &Files, title: &str, release: &Release) -> Result<Manifest> {
    let created = created(release)?;
    let config = json!({ "created": created });
    let layer = Blob {
        media_type: FLUX_CONTENT,
        content: content.tar_gz(release.time)?,
    };
    let annotations = annotations(title, release, &created);
    Ok(manifest(Blob::json(FLUX_CONFIG, &config), layer, &annotations))
}

/// Joins the images of a program for several architectures.
pub(crate) fn index(images: Vec<(Architecture, Manifest)>) -> Manifest {
    let mut blobs = Vec::new();
    let mut descriptors = Vec::new();
    for (architecture, image) in images {
        let mut descriptor = image.root.descriptor();
        if let Some(fields) = descriptor.as_object_mut() {
            let platform = json!({ "architecture": architecture.to_string(), "os": "linux" });
            fields.insert("platform".to_owned(), platform);
        }
        descriptors.push(descriptor);
        blobs.extend(image.blobs);
        blobs.push(image.root);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors });
    let root = Blob::json(INDEX, &index);
    Manifest { root, blobs }
}

pub(crate) fn manifest(config: Blob, layer: Blob, annotations: &Map<String, Value>) -> Manifest {
    let value = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.descriptor(),
        "layers": [layer.descriptor()],
        "annotations": annotations,
    });
    Manifest {
        root: Blob::json(MANIFEST, &value),
        blobs: vec![config, layer],
    }
}

/// Returns annotations, which are labels of images, too.
pub(crate) fn annotations(title: &str, release: &Release, created: &str) -> Map<String, Value> {
    let named = [
        ("created", Some(created)),
        ("licenses", Some("Apache-2.0")),
        ("revision", release.revision.as_deref()),
        ("source", release.source.as_deref()),
        ("title", Some(title)),
        ("version", Some(release.tag())),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    named
        .map(|(name, value)| (format!("org.opencontainers.image.{name}"), value.into()))
        .collect()
}

/// Returns the time of the release as OCI writes it.
pub(crate) fn created(release: &Release) -> Result<String> {
    let seconds = i64::try_from(release.time).ok();
    let time = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    Ok(time
        .context("the time of the release is out of range")?
        .to_string())
}
