//! Reads the Secrets that a Provider names.

use api::{Secret, notification::Provider};
use kube::{Client, ResourceExt as _};
use runtime::secret::{self, SecretData};

use crate::error::Error;

#[derive(Default)]
pub(super) struct ProviderSecrets {
    pub(super) credentials: Option<ProviderSecret>,
    pub(super) certificates: Option<ProviderSecret>,
    pub(super) proxy: Option<ProviderSecret>,
}

impl ProviderSecrets {
    pub(super) async fn read(client: &Client, provider: &Provider) -> Result<Self, Error> {
        let namespace = provider.namespace().unwrap_or_default();
        let read = async |name: Option<&str>| match name {
            Some(name) => ProviderSecret::read(client, &namespace, name).await.map(Some),
            None => Ok(None),
        };
        let spec = &provider.spec;
        Ok(Self {
            credentials: read(spec.secret_ref.as_ref().map(|secret| secret.name.as_str())).await?,
            certificates: read(spec.cert_secret_ref.as_ref().map(|secret| secret.name.as_str())).await?,
            proxy: read(spec.proxy_secret_ref.as_ref().map(|secret| secret.name.as_str())).await?,
        })
    }
}

pub(super) struct ProviderSecret {
    pub(super) name: String,
    data: SecretData,
}

impl ProviderSecret {
    async fn read(client: &Client, namespace: &str, name: &str) -> Result<Self, Error> {
        if !secret::is_object_name(name) {
            return Err(Error::NoSecret(name.to_owned()));
        }
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
