//! A source that the tests play: its status, and a server for its artifacts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, OnceLock},
};

use anyhow::{Result, ensure};
use artifact::{
    Algorithm, Error,
    pack::{self, Item, PathKind},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tree::{Budget, TreePath, ignore::Rules};

/// A GitRepository whose status the test writes.
pub(crate) struct OfferedSource {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) name: String,
}

impl OfferedSource {
    /// Offers these files as the newest revision, and returns that.
    pub(crate) async fn offer(&self, files: &[(String, String)]) -> Result<String> {
        let (bytes, digest, _) = tarball(files)?;
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        self.set(json!({ "url": self.serve(bytes), "revision": revision, "digest": digest }))
            .await?;
        Ok(revision)
    }

    /// Offers these files as the newest revision with hashes of their directories, and returns that. The tarball is there if `is_served`.
    pub(crate) async fn offer_with_hashes(
        &self,
        files: &[(String, String)],
        is_served: bool,
    ) -> Result<String> {
        let (bytes, digest, hashes) = tarball(files)?;
        let url = self.serve(bytes);
        if !is_served {
            put(&url, None);
        }
        self.set_with_hashes(json!({ "url": url, "digest": digest }), hashes)
            .await
    }

    /// Offers these files with the hashes of other ones, which hide the change, and with the size of the tarball, and returns the revision.
    pub(crate) async fn offer_with_hashes_of(
        &self,
        others: &[(String, String)],
        files: &[(String, String)],
    ) -> Result<String> {
        let (.., hashes) = tarball(others)?;
        let (bytes, digest, _) = tarball(files)?;
        let size = bytes.len();
        let url = self.serve(bytes);
        self.set_with_hashes(json!({ "url": url, "digest": digest, "size": size }), hashes)
            .await
    }

    /// Sets an artifact with hashes of directories, which are served beside it, and returns its revision.
    async fn set_with_hashes(&self, mut artifact: Value, hashes: Vec<u8>) -> Result<String> {
        let metadata: BTreeMap<_, _> = artifact::hashes::metadata(&hashes).into_iter().collect();
        let url = artifact["url"].as_str().unwrap_or_default();
        put(&artifact::hashes::companion(url), Some(hashes));
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        artifact["metadata"] = json!(metadata);
        artifact["revision"] = json!(revision);
        self.set(artifact).await?;
        Ok(revision)
    }

    /// Offers these files as a server of tests does: in its root, with the checksum and the revision of early releases.
    pub(crate) async fn offer_in_root(&self, files: &[(String, String)]) -> Result<String> {
        let (bytes, digest, _) = tarball(files)?;
        let checksum = digest.trim_start_matches("sha256:");
        let url = format!("{}/{checksum}.tar.gz", server().0);
        put(&url, Some(bytes));
        let revision = format!("main/{checksum}");
        self.set(json!({ "url": url, "revision": revision, "checksum": checksum, "digest": null }))
            .await?;
        Ok(revision)
    }

    /// Offers the stored file of another source as its own, and returns its URL.
    pub(crate) async fn offer_file_of(&self, other: &Self, files: &[(String, String)]) -> Result<String> {
        let (bytes, digest, _) = tarball(files)?;
        let url = other.serve(bytes);
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        self.set(json!({ "url": url, "revision": revision, "digest": digest }))
            .await?;
        Ok(url)
    }

    /// Offers files on another host, at the path where the storage of this source would have them, and returns the URL.
    pub(crate) async fn offer_on(&self, host: &str, files: &[(String, String)]) -> Result<String> {
        let (bytes, digest, _) = tarball(files)?;
        let served = self.serve(bytes);
        let path = served.splitn(4, '/').nth(3).unwrap_or_default();
        let url = format!("http://{host}/{path}");
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        self.set(json!({ "url": url, "revision": revision, "digest": digest }))
            .await?;
        Ok(url)
    }

    /// Serves a file at the path where the storage of this source would.
    fn serve(&self, bytes: Vec<u8>) -> String {
        let namespace = self.api.namespace().unwrap_or_default();
        let kind = match self.api.resource_url().rsplit('/').next() {
            Some("buckets") => "bucket",
            Some("ocirepositories") => "ocirepository",
            _ => "gitrepository",
        };
        serve(&format!("{kind}/{namespace}/{}", self.name), bytes)
    }

    /// Offers files whose digest is another one than the status says.
    pub(crate) async fn offer_altered(&self, files: &[(String, String)]) -> Result<String> {
        let (bytes, ..) = tarball(files)?;
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        let digest = format!("sha256:{:064x}", 7);
        self.set(json!({ "url": self.serve(bytes), "revision": revision, "digest": digest }))
            .await?;
        Ok(revision)
    }

    /// Offers a newest revision whose file is not there, as after a loss of the storage, and returns that.
    pub(crate) async fn offer_lost(&self) -> Result<String> {
        let (_, digest, _) = tarball(&[])?;
        let url = self.serve(Vec::new());
        let lost = url.replace(".tar.gz", "-lost.tar.gz");
        let revision = format!("main@sha1:{:040x}", fastrand::u128(..));
        self.set(json!({ "url": lost, "revision": revision, "digest": digest }))
            .await?;
        Ok(revision)
    }

    async fn set(&self, artifact: Value) -> Result<()> {
        let mut artifact = artifact;
        artifact["path"] = json!("gitrepository/artifact.tar.gz");
        artifact["lastUpdateTime"] = json!("2026-01-01T00:00:00Z");
        self.patch(json!({ "artifact": artifact })).await
    }

    /// Takes the artifact away.
    pub(crate) async fn clear(&self) -> Result<()> {
        self.patch(json!({ "artifact": null })).await
    }

    async fn patch(&self, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        let object = self
            .api
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await?;
        ensure!(object.name_any() == self.name);
        Ok(())
    }
}

/// Packs files, and returns the tarball, its digest, and the hashes of its directories.
fn tarball(files: &[(String, String)]) -> Result<(Vec<u8>, String, Vec<u8>)> {
    let mut items: BTreeMap<TreePath, Item<Option<String>>> = BTreeMap::new();
    for (path, content) in files {
        let path = TreePath::parse(path)?;
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root()) {
            items.insert(
                dir.clone(),
                Item {
                    path: dir.clone(),
                    kind: PathKind::Dir,
                    content: None,
                },
            );
            parent = dir.parent();
        }
        let kind = PathKind::File { executable: false };
        items.insert(
            path.clone(),
            Item {
                path,
                kind,
                content: Some(content.clone()),
            },
        );
    }
    let items = pack::plan(items.into_values().collect(), &Rules::new(), &Budget::default())?.items;
    let mut out = Vec::new();
    let read = |item: &Item<Option<String>>, buffer: &mut Vec<u8>| -> Result<(), Error> {
        buffer.extend_from_slice(item.content.as_deref().unwrap_or_default().as_bytes());
        Ok(())
    };
    let packed = pack::pack(&items, read, Algorithm::Sha256, 16 << 20, &mut out)?;
    Ok((out, packed.digest.to_string(), packed.hashes))
}

type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Serves a file under a new URL below `directory`.
fn serve(directory: &str, bytes: Vec<u8>) -> String {
    let (origin, _) = server();
    let url = format!("{origin}/{directory}/{:x}.tar.gz", fastrand::u128(..));
    put(&url, Some(bytes));
    url
}

/// Serves a file under a URL of the server, or none any more.
fn put(url: &str, bytes: Option<Vec<u8>>) {
    let (origin, files) = server();
    let path = url.trim_start_matches(origin.as_str()).to_owned();
    let mut files = files.lock().expect("no panic");
    match bytes {
        Some(bytes) => files.insert(path, bytes),
        None => files.remove(&path),
    };
}

/// Returns the origin and the files of a server, which runs on a thread of its own.
fn server() -> &'static (String, Files) {
    static SERVER: OnceLock<(String, Files)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let files = Files::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        listener.set_nonblocking(true).expect("nonblocking");
        let served = Arc::clone(&files);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let router = axum::Router::new().fallback(move |uri: axum::http::Uri| async move {
                    let found = served.lock().expect("no panic").get(uri.path()).cloned();
                    found.ok_or(axum::http::StatusCode::NOT_FOUND)
                });
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                axum::serve(listener, router).await.expect("it serves");
            });
        });
        (origin, files)
    })
}
