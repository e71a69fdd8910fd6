//! Reads the Secrets that a Provider names.

use api::{LocalObjectReference, Secret, notification::Provider};
use kube::{Client, ResourceExt as _};
use runtime::secret::{self, SecretData};

use crate::{
    error::Error,
    served::{excerpt, is_name},
};

#[derive(Default)]
pub(super) struct ProviderSecrets {
    pub(super) credentials: Option<ProviderSecret>,
    pub(super) certificates: Option<ProviderSecret>,
    pub(super) proxy: Option<ProviderSecret>,
}

impl ProviderSecrets {
    pub(super) async fn read(client: &Client, provider: &Provider) -> Result<Self, Error> {
        let namespace = provider.namespace().unwrap_or_default();
        let spec = &provider.spec;
        let references = [
            ("spec.secretRef.name", &spec.secret_ref),
            ("spec.certSecretRef.name", &spec.cert_secret_ref),
            ("spec.proxySecretRef.name", &spec.proxy_secret_ref),
        ];
        // Before any request.
        for (field, reference) in references {
            check_name(field, reference.as_ref())?;
        }
        let read = async |reference: &Option<LocalObjectReference>| match reference {
            Some(reference) => {
                let secret = ProviderSecret::read(client, &namespace, &reference.name);
                secret.await.map(Some)
            }
            None => Ok(None),
        };
        Ok(Self {
            credentials: read(&spec.secret_ref).await?,
            certificates: read(&spec.cert_secret_ref).await?,
            proxy: read(&spec.proxy_secret_ref).await?,
        })
    }

    /// Returns the number of bytes of all Secrets.
    pub(super) fn size(&self) -> usize {
        let all = [&self.credentials, &self.certificates, &self.proxy];
        let entries = all.into_iter().flatten().flat_map(|secret| secret.data.entries());
        entries.map(|(_, bytes)| bytes.len()).sum()
    }
}

/// Refuses a reference whose name could lead to another object.
fn check_name(field: &'static str, reference: Option<&LocalObjectReference>) -> Result<(), Error> {
    let Some(reference) = reference.filter(|reference| !is_name(&reference.name)) else {
        return Ok(());
    };
    Err(Error::BadName {
        field,
        name: excerpt(&reference.name),
    })
}

pub(super) struct ProviderSecret {
    pub(super) name: String,
    data: SecretData,
}

impl ProviderSecret {
    async fn read(client: &Client, namespace: &str, name: &str) -> Result<Self, Error> {
        match secret::get(client, namespace, name).await {
            Ok(data) => Ok(Self {
                name: name.to_owned(),
                data,
            }),
            Err(kube::Error::Api(status)) if status.code == 404 => Err(Error::NoSecret(name.to_owned())),
            Err(kube::Error::Api(status)) => {
                Err(Error::UnreadableSecret(name.to_owned(), status.reason.clone()))
            }
            Err(_) => Err(Error::UnreadableSecret(
                name.to_owned(),
                "the API server cannot be reached".to_owned(),
            )),
        }
    }

    #[cfg(test)]
    pub(super) fn of(name: &str, pairs: &[(&str, &str)]) -> Self {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        Self {
            name: name.to_owned(),
            data: SecretData::of(name, &pairs),
        }
    }

    pub(super) fn bad(&self, key: &'static str, why: &'static str) -> Error {
        Error::BadSecret {
            secret: self.name.clone(),
            key,
            why,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.data.bytes(&[key]).is_some()
    }

    /// Returns a key as a string without surrounding whitespace; `None` if it is missing or empty.
    pub(super) fn text(&self, key: &'static str) -> Result<Option<Secret<String>>, Error> {
        let Some(bytes) = self.data.bytes(&[key]) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|_| self.bad(key, "it is not UTF-8 text"))?
            .trim();
        Ok((!text.is_empty()).then(|| Secret::new(text.to_owned())))
    }

    pub(super) fn bytes(&self, key: &str, legacy: &str) -> Option<Vec<u8>> {
        let found = self.data.bytes(&[key, legacy]);
        found.filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn names_that_lead_elsewhere_are_refused_before_any_request() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Nothing listens there: a request would be another error.
        let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(config).unwrap();
        let long = "a".repeat(254);
        for field in ["secretRef", "certSecretRef", "proxySecretRef"] {
            for name in [
                "../../victim/secrets/git",
                "..",
                "",
                "a/b",
                "a%2Fb",
                "a?x=y",
                &long,
            ] {
                let provider = serde_json::from_value(json!({
                    "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
                    "metadata": {"name": "p", "namespace": "ns"}, "spec": {"type": "generic", field: {"name": name}},
                }));
                let refused = ProviderSecrets::read(&client, &provider.unwrap())
                    .await
                    .err()
                    .unwrap();
                assert!(
                    matches!(refused, Error::BadName { .. }),
                    "{field} {name}: {refused}"
                );
                assert!(
                    refused.to_string().starts_with(&format!("spec.{field}.name: ")),
                    "{refused}"
                );
            }
        }
    }
}
