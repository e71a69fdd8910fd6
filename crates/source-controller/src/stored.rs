//! The stored artifact of an object: [`check`] changes nothing; [`remove_corrupt`] and [`tidy`] carry out a plan.

use std::time::SystemTime;

use api::{Fault, Reason};
use artifact::{
    Digest, Key, Storage,
    storage::{Current, Verdict},
};

use crate::plan::StoredArtifact;

/// Returns the file and digest of the artifact of a status; `None` if it belongs to another object.
pub(crate) fn current(key: &Key, artifact: &api::Artifact) -> Option<Current> {
    let file = artifact.path.strip_prefix(&format!("{}/", key.dir()))?;
    Some(Current {
        file: file.to_owned(),
        digest: artifact.digest.clone().unwrap_or_default(),
    })
}

/// Compares the storage with the artifact in the status. Fails when the storage can't be read.
pub(crate) fn check(
    storage: &Storage,
    key: &Key,
    artifact: Option<api::Artifact>,
) -> Result<StoredArtifact, Fault> {
    let Some(artifact) = artifact else {
        return Ok(StoredArtifact::None);
    };
    let current = current(key, &artifact);
    let current = current.and_then(|current| Some((Digest::parse(&current.digest).ok()?, current.file)));
    let Some((digest, file)) = current else {
        return Ok(StoredArtifact::Missing);
    };
    Ok(
        match storage
            .verify(&artifact.path, &digest)
            .map_err(|error| failed(&error))?
        {
            Verdict::Good => StoredArtifact::Good { artifact, file },
            Verdict::Missing => StoredArtifact::Missing,
            Verdict::Corrupt { found } => StoredArtifact::Corrupt {
                path: artifact.path,
                wanted: digest.to_string(),
                found: found.to_string(),
            },
        },
    )
}

pub(crate) fn remove_corrupt(storage: &Storage, key: &Key, stored: &StoredArtifact) {
    if let StoredArtifact::Corrupt { path, wanted, found } = stored {
        let file = path.rsplit('/').next().unwrap_or(path);
        storage.remove_file(key, file);
        tracing::error!(path, wanted, found, "removed a corrupt artifact");
    }
}

/// Restores the alias of a good artifact and removes superseded ones. Fails when the storage can't be written.
pub(crate) fn tidy(storage: &Storage, key: &Key, file: &str) -> Result<(), Fault> {
    storage.ensure_alias(key, file).map_err(|error| failed(&error))?;
    match storage.collect(key, file, SystemTime::now()) {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, "removed superseded artifacts"),
        Err(error) => tracing::warn!(%error, "failed to remove superseded artifacts"),
    }
    Ok(())
}

fn failed(error: &artifact::Error) -> Fault {
    Fault::retry(
        Reason::StorageOperationFailed,
        format!("failed to look at the storage: {error}"),
    )
}
