//! The keys and credentials of a KluctlDeployment.

use std::sync::Arc;

use api::{Fault, Reason, kluctl::KluctlDeployment};
use engine::{DecryptionKeys, ExternalAccess, ServiceAccountRole};
use runtime::ObjectKey;

use super::{Controller, consumer::key, spec};
use crate::credentials::Secrets;

impl Controller {
    /// Reads the keys and the credentials that an object names, from Secrets of its namespace.
    pub(super) async fn secrets(
        &self,
        object: &KluctlDeployment,
    ) -> Result<(Option<Arc<DecryptionKeys>>, ExternalAccess), Fault> {
        let (spec, key) = (&object.spec, key(object));
        let secrets = Secrets {
            client: self.client(),
            namespace: &key.namespace,
            retry: spec::retry_interval(spec),
        };
        let names = spec.helm_credentials.iter();
        let names = names.map(|credentials| credentials.secret_ref.name.as_str());
        let external = ExternalAccess {
            credentials: Some(secrets.helm_credentials(names).await?),
            ..self.external.clone()
        };
        Ok((self.decryption_keys(object, &key, &secrets).await?, external))
    }

    /// Returns the keys of SOPS; `None` without `spec.decryption`.
    async fn decryption_keys(
        &self,
        object: &KluctlDeployment,
        key: &ObjectKey,
        secrets: &Secrets<'_>,
    ) -> Result<Option<Arc<DecryptionKeys>>, Fault> {
        let Some(decryption) = &object.spec.decryption else {
            return Ok(None);
        };
        let secret = decryption.secret_ref.as_ref();
        let mut keys = secrets
            .decryption_keys(secret.map(|secret| secret.name.as_str()))
            .await?;
        keys.set_addresses(self.external.addresses.clone());
        let own = object.spec.service_account_name.as_deref();
        let default = self.ctx.flags().default_service_account.as_str();
        let accounts = [decryption.service_account.as_deref(), own, Some(default)];
        if let Some(account) = accounts.into_iter().flatten().find(|name| !name.is_empty()) {
            // In the cluster of the Secrets, with the identity that deploys: it needs the right to request a token.
            let clusters = self.references.clusters();
            let home = clusters
                .of(&key.namespace, None, own)
                .await
                .map_err(|error| Fault::wait(secrets.retry, Reason::PrepareFailed, error.to_string()))?;
            keys.set_aws_role(Arc::new(ServiceAccountRole {
                cluster: home.cluster,
                namespace: key.namespace.clone(),
                name: account.to_owned(),
            }));
        }
        Ok(Some(Arc::new(keys)))
    }
}
