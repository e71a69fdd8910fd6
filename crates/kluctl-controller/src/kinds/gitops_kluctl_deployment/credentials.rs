//! Reads the Secrets of an object: credentials of its sources, and keys for its files. Live, each once a pass.

use std::sync::Arc;

use api::kluctl::gitops::KluctlDeployment;
use deployer::credentials::SecretCache;
use engine::{DecryptionKeys, ExternalAccess};
use kube::{Client, ResourceExt as _};
use remote::SecretCredentials;

use super::prepare_error::PrepareError;

/// Maximum number of entries of all lists of credentials.
const MOST: usize = 200;

pub(super) async fn external(
    client: &Client,
    object: &KluctlDeployment,
    external: &ExternalAccess,
) -> Result<ExternalAccess, PrepareError> {
    let lists = object.spec.credentials.clone().unwrap_or_default();
    if lists.git.len() + lists.oci.len() + lists.helm.len() > MOST {
        return Err(PrepareError::ManyCredentials(MOST));
    }
    let mut secrets = secrets(client, object);
    let git = lists.git.iter().map(|one| {
        (
            one.host.as_str(),
            one.path.as_deref(),
            one.secret_ref.name.as_str(),
        )
    });
    let oci = lists.oci.iter().map(|one| {
        (
            one.registry.as_str(),
            one.repository.as_deref(),
            one.secret_ref.name.as_str(),
        )
    });
    let helm = lists.helm.iter().map(|one| {
        (
            one.host.as_str(),
            one.path.as_deref(),
            one.secret_ref.name.as_str(),
        )
    });
    let credentials = SecretCredentials {
        git: secrets.credentials(git).await?,
        oci: secrets.credentials(oci).await?,
        helm: secrets.credentials(helm).await?,
        loopback: Some(external.servers.addresses.clone()),
    };
    let external = external.clone().with_credentials(Arc::new(credentials));
    Ok(external.with_tenant(&object.namespace().unwrap_or_default()))
}

pub(super) async fn decryption(
    client: &Client,
    object: &KluctlDeployment,
    external: &ExternalAccess,
) -> Result<Option<DecryptionKeys>, PrepareError> {
    let Some(decryption) = &object.spec.decryption else {
        return Ok(None);
    };
    let secret = decryption.secret_ref.as_ref().map(|secret| secret.name.as_str());
    let mut keys = secrets(client, object).decryption_keys(secret).await?;
    keys.set_addresses(external.servers.addresses.clone());
    Ok(Some(keys))
}

fn secrets(client: &Client, object: &KluctlDeployment) -> SecretCache {
    SecretCache::new(client, &object.namespace().unwrap_or_default())
}
