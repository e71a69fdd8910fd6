//! The keys and credentials of a KluctlDeployment.

use std::sync::Arc;

use api::{Fault, Reason, kluctl::KluctlDeployment};
use deployer::{
    GitOrigin, SourceArtifact,
    credentials::{GitSecret, Secrets, kms_role},
    key,
};
use engine::{DecryptionKeys, ExternalAccess, PinnedSources};
use runtime::ObjectKey;

use super::{controller::Controller, source::ProjectSource, spec};

impl Controller {
    /// Reads the keys and the credentials that an object names, from Secrets of its namespace. The credentials of its GitRepository are read when an
    /// included repository needs them.
    pub(super) async fn secrets(
        &self,
        object: &KluctlDeployment,
        source: &ProjectSource,
    ) -> Result<(Option<Arc<DecryptionKeys>>, ExternalAccess), Fault> {
        let (spec, key) = (&object.spec, key(object));
        let secrets = Secrets {
            client: self.client(),
            namespace: &key.namespace,
            retry: spec::retry_interval(spec),
        };
        let names = spec.helm_credentials.iter();
        let names = names.map(|credentials| credentials.secret_ref.name.as_str());
        let mut credentials = secrets.helm_credentials(names).await?;
        let hosts = &self.git_credentials_hosts;
        if let Some((artifact, git)) = source
            .artifact()
            .and_then(|artifact| Some((artifact, artifact.git.as_ref()?)))
        {
            let secret = self.git_secret(object, artifact, git);
            credentials.set_git(&git.url, hosts, Arc::new(secret));
        }
        if let Some(source) = &spec.source
            && let Some(secret) = self.own_git_secret(object, source)
        {
            credentials.set_git(source.url.expose(), hosts, Arc::new(secret));
        }
        let external = ExternalAccess {
            pinned: PinnedSources::default(),
            ..self.external.clone()
        }
        .with_credentials(Arc::new(credentials))
        .with_tenant(&key.namespace);
        Ok((self.decryption_keys(object, &key, &secrets).await?, external))
    }

    /// Returns the Secret of the GitRepository. A Secret of another namespace is read with the identity that deploys: with the rights of the
    /// controller, everyone who may refer to the GitRepository could use its credentials.
    fn git_secret(&self, object: &KluctlDeployment, artifact: &SourceArtifact, git: &GitOrigin) -> GitSecret {
        let (own, source) = (key(object).namespace, &artifact.source.key);
        let default = self.parts.ctx.flags().default_service_account.as_str();
        let account = object.spec.service_account_name.as_deref();
        let account = account.filter(|name| !name.is_empty()).unwrap_or(default);
        let acts_as_other = own != source.namespace && !account.is_empty();
        GitSecret {
            ctx: self.parts.ctx.clone(),
            namespace: source.namespace.clone(),
            name: git.secret.clone(),
            user: acts_as_other.then(|| cluster::access::service_account(&own, account)),
        }
    }

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
        keys.set_addresses(self.external.servers.addresses.clone());
        let own = object.spec.service_account_name.as_deref();
        let default = self.parts.ctx.flags().default_service_account.as_str();
        let clusters = self.clusters();
        let account = decryption.service_account.as_deref();
        let role = kms_role(clusters, &key.namespace, account, own, default).await;
        let role =
            role.map_err(|error| Fault::wait(secrets.retry, Reason::PrepareFailed, error.to_string()))?;
        if let Some(role) = role {
            keys.set_aws_role(role);
        }
        Ok(Some(Arc::new(keys)))
    }
}
