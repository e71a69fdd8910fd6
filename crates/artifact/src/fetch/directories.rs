//! Downloads of hashes of directories, shared between consumers that compare the same artifacts.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use api::Artifact;
use net::read_body;
use parking_lot::Mutex;
use reqwest::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use super::client::StorageClient;
use crate::hashes::{DirectoryHashes, MAX_BYTES, METADATA, companion};

const MAX_ARTIFACTS: usize = 8;
/// Maximum number of directories whose hashes are cached, besides the newest artifact's.
const MAX_DIRECTORIES: usize = 50_000;
/// Timeout of a download, after which the artifact itself is downloaded.
const TIMEOUT: Duration = Duration::from_secs(10);

type Cell = Arc<OnceCell<Arc<DirectoryHashes>>>;

/// Hashes of the artifacts that were compared last, by their own SHA-256; the newest is the last.
#[derive(Debug, Default)]
pub(super) struct HashesCache(Mutex<VecDeque<(String, Cell)>>);

impl HashesCache {
    fn cell(&self, sha256: &str) -> Cell {
        let mut cached = self.0.lock();
        if let Some((_, cell)) = cached.iter().find(|(name, _)| name == sha256) {
            return Arc::clone(cell);
        }
        let mut left = MAX_DIRECTORIES;
        let newest_first = cached.iter().rev().take(MAX_ARTIFACTS - 1);
        let fits = newest_first.take_while(|(_, cell)| {
            let directories = cell.get().map_or(0, |hashes| hashes.len());
            left.checked_sub(directories)
                .inspect(|&rest| left = rest)
                .is_some()
        });
        let surplus = cached.len() - fits.count();
        cached.drain(..surplus);
        let cell = Cell::default();
        cached.push_back((sha256.to_owned(), Arc::clone(&cell)));
        cell
    }

    pub(super) async fn get(
        &self,
        artifact: &Artifact,
        client: &StorageClient,
    ) -> Option<Arc<DirectoryHashes>> {
        let sha256 = artifact.metadata.get(METADATA)?.strip_prefix("sha256:")?;
        let cell = self.cell(sha256);
        let download = || async {
            let download = download(client, &artifact.url, sha256);
            let hashes = tokio::time::timeout(TIMEOUT, download).await.ok().flatten();
            hashes.ok_or(())
        };
        cell.get_or_try_init(download).await.ok().cloned()
    }
}

async fn download(client: &StorageClient, url: &str, sha256: &str) -> Option<Arc<DirectoryHashes>> {
    let url = client.url(&companion(url)).ok()?;
    let request = client.request(&url).await.ok()?;
    let mut response = client.send(request).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let text = read_body(&mut response, MAX_BYTES as u64).await.ok()?;
    let wanted = sha256.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let is_wanted = hex::encode(Sha256::digest(&text)) == wanted;
        DirectoryHashes::parse(&text).filter(|_| is_wanted)
    });
    read.await.ok().flatten().map(Arc::new)
}
