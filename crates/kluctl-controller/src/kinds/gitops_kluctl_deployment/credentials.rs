//! Reads the Secrets of an object: credentials of its sources, and keys for its files. Live, each once a pass.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use api::{Secret, kluctl::gitops::KluctlDeployment};
use deployer::objects;
use engine::{DecryptionKeys, ExternalAccess};
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::{Api, Client, ResourceExt as _};
use remote::{CredentialEntry, SecretCredentials};
use runtime::client::describe;

use super::build::PrepareError;

/// Maximum number of entries of all lists of credentials.
const MOST: usize = 200;

type Values = BTreeMap<String, Secret<Vec<u8>>>;

/// The Secrets that a pass has read.
struct Secrets {
    api: Api<SecretObject>,
    read: HashMap<String, Values>,
}

impl Secrets {
    fn new(client: &Client, object: &KluctlDeployment) -> Self {
        Self {
            api: Api::namespaced(client.clone(), &object.namespace().unwrap_or_default()),
            read: HashMap::new(),
        }
    }

    async fn get(&mut self, name: &str) -> Result<Values, PrepareError> {
        if let Some(values) = self.read.get(name) {
            return Ok(values.clone());
        }
        let failed = |why: String| PrepareError::Secret {
            name: name.to_owned(),
            why,
        };
        let found = objects::found(self.api.get(name).await).map_err(|error| failed(describe(&error)))?;
        let secret = found.ok_or_else(|| failed(format!("secrets \"{name}\" not found")))?;
        let data = secret.data.unwrap_or_default().into_iter();
        let values: Values = data.map(|(key, value)| (key, Secret::new(value.0))).collect();
        self.read.insert(name.to_owned(), values.clone());
        Ok(values)
    }

    async fn entries<'a>(
        &mut self,
        list: impl Iterator<Item = (&'a str, Option<&'a str>, &'a str)>,
    ) -> Result<Vec<CredentialEntry>, PrepareError> {
        let mut entries = Vec::new();
        for (host, path, secret) in list {
            entries.push(CredentialEntry {
                host: host.to_owned(),
                path: path.map(str::to_owned),
                values: self.get(secret).await?,
            });
        }
        Ok(entries)
    }
}

pub(super) async fn external(
    client: &Client,
    object: &KluctlDeployment,
    external: &ExternalAccess,
) -> Result<ExternalAccess, PrepareError> {
    let lists = object.spec.credentials.clone().unwrap_or_default();
    if lists.git.len() + lists.oci.len() + lists.helm.len() > MOST {
        return Err(PrepareError::ManyCredentials(MOST));
    }
    let mut secrets = Secrets::new(client, object);
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
        git: secrets.entries(git).await?,
        oci: secrets.entries(oci).await?,
        helm: secrets.entries(helm).await?,
        loopback: Some(external.servers.addresses.clone()),
    };
    Ok(external.clone().with_credentials(Arc::new(credentials)))
}

pub(super) async fn decryption(
    client: &Client,
    object: &KluctlDeployment,
    external: &ExternalAccess,
) -> Result<Option<DecryptionKeys>, PrepareError> {
    let Some(decryption) = &object.spec.decryption else {
        return Ok(None);
    };
    let mut keys = DecryptionKeys::new();
    keys.set_addresses(external.servers.addresses.clone());
    let secret = decryption.secret_ref.as_ref().map(|secret| secret.name.as_str());
    if let Some(name) = secret.filter(|name| !name.is_empty()) {
        for (key, value) in &Secrets::new(client, object).get(name).await? {
            keys.add_entry(key, value.expose())
                .map_err(|error| PrepareError::Secret {
                    name: name.to_owned(),
                    why: format!("{key}: {error}"),
                })?;
        }
    }
    Ok(Some(keys))
}
