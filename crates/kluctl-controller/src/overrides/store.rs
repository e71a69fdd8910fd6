//! The Secret and the ConfigMap of a namespace of controllers.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Secret},
};
use kube::{Api, Client, api::PostParams};

use overrides::{CA, CONFIG_MAP, Error, Material, SECRET};

#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error(transparent)]
    Cluster(#[from] kube::Error),
    #[error("the Secret {SECRET} has an {0}: delete it, and a new one is made")]
    Unusable(#[from] Error),
}

/// The Secret and the ConfigMap in a namespace, by which controllers and command lines trust each other.
#[derive(Debug)]
pub(super) struct Store {
    secrets: Api<Secret>,
    maps: Api<ConfigMap>,
}

impl Store {
    pub(super) fn new(client: &Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            maps: Api::namespaced(client.clone(), namespace),
        }
    }

    /// Reads the Secret; `None` if there is none.
    pub(super) async fn read(&self) -> Result<Option<Material>, StoreError> {
        let Some(secret) = self.secrets.get_opt(SECRET).await? else {
            return Ok(None);
        };
        let values = secret.data.unwrap_or_default().into_iter();
        let values = values.map(|(key, value)| (key, value.0)).collect();
        Ok(Some(Material::read(&values)?))
    }

    /// Reads the Secret, creates it if there is none, and publishes the authority for command lines.
    pub(super) async fn read_or_create(&self) -> Result<Material, StoreError> {
        let material = match self.read().await? {
            Some(material) => material,
            None => self.create().await?,
        };
        self.publish(&material.ca).await?;
        Ok(material)
    }

    async fn create(&self) -> Result<Material, StoreError> {
        let material = Material::generate()?;
        let values = material.values().into_iter();
        let values = values.map(|(key, value)| (key.to_owned(), ByteString(value.into_inner())));
        let mut secret = Secret {
            data: Some(values.collect()),
            ..Secret::default()
        };
        secret.metadata.name = Some(SECRET.to_owned());
        self.secrets.create(&PostParams::default(), &secret).await?;
        Ok(material)
    }

    async fn publish(&self, ca: &str) -> Result<(), kube::Error> {
        let mut map = self.maps.get_opt(CONFIG_MAP).await?.unwrap_or_default();
        let published = map.data.as_ref().and_then(|data| data.get(CA));
        if published.is_some_and(|published| published == ca) {
            return Ok(());
        }
        map.data = Some(BTreeMap::from([(CA.to_owned(), ca.to_owned())]));
        if map.metadata.name.is_some() {
            self.maps
                .replace(CONFIG_MAP, &PostParams::default(), &map)
                .await?;
        } else {
            map.metadata.name = Some(CONFIG_MAP.to_owned());
            self.maps.create(&PostParams::default(), &map).await?;
        }
        Ok(())
    }
}
