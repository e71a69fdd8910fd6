//! Reading the references in the spec of a source: Secrets, and a service account with its pull secrets and its token.

use api::{Fault, Reason};
use cloud::Cloud;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use runtime::{
    accounts::NoLogin,
    secret::{self, SecretData},
};

use crate::{
    identity::Identities,
    source_kind::{SecretRole, ServiceAccountData, SourceKind, SourceSecrets},
};

const PULL_SECRETS: usize = 20;

/// Reads everything that an object names, live. Fails when a named Secret or the service account is missing, in the words of the kind.
pub(crate) async fn read<K: SourceKind>(
    client: &Client,
    identities: &Identities,
    namespace: &str,
    object: &K::Object,
) -> Result<SourceSecrets, Fault> {
    let mut read = Vec::new();
    for (role, name) in K::secrets(object) {
        let found = secret::read(client, namespace, name).await;
        read.push((
            role,
            found.map_err(|fault| K::secret_failure(object, role, fault))?,
        ));
    }
    let mut secrets: SourceSecrets = read.into_iter().collect();
    let found = match (
        K::service_account(object),
        default_account::<K>(identities, object),
    ) {
        (Some(name), _) => service_account(client, identities, namespace, name, K::cloud(object)).await,
        (None, Some(name)) => service_account(client, identities, namespace, name, K::cloud(object))
            .await
            .map(ServiceAccountData::without_pull_secrets)
            .map_err(by_default),
        (None, None) => return Ok(secrets),
    };
    let found = found.map_err(|fault| K::secret_failure(object, SecretRole::ServiceAccount, fault))?;
    secrets.service_account = Some(found);
    Ok(secrets)
}

/// Returns the service account that replaces the identity of the controller, if the object uses it.
fn default_account<'a, K: SourceKind>(identities: &'a Identities, object: &K::Object) -> Option<&'a str> {
    let uses_identity = K::cloud(object).is_some() && !K::has_credentials(object);
    identities.default_account().filter(|_| uses_identity)
}

/// Adds to a fault the origin of the name of a service account that the object doesn't name.
fn by_default(mut fault: Fault) -> Fault {
    const WHY: &str = "; it is the --default-service-account of the controller, used because spec.serviceAccountName is not set";
    fault.message.push_str(WHY);
    fault
}

async fn service_account(
    client: &Client,
    identities: &Identities,
    namespace: &str,
    name: &str,
    cloud: Option<Cloud>,
) -> Result<ServiceAccountData, Fault> {
    let failed = |what: &str, why: &str| {
        let message = format!("failed to get {what} '{namespace}/{name}': {why}");
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    if !runtime::names::is_object_name(name) {
        return Err(failed("service account", "it is not a valid name"));
    }
    let api: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let account = api
        .get(name)
        .await
        .map_err(|error| failed("service account", &runtime::client::describe(&error)))?;
    let mut pull_secrets: Vec<SecretData> = Vec::new();
    let named = account.image_pull_secrets.iter().flatten();
    for reference in named.take(PULL_SECRETS) {
        let found = secret::find(client, namespace, &reference.name).await;
        let found = found.map_err(|error| {
            failed(
                "the pull secrets of service account",
                &runtime::client::describe(&error),
            )
        })?;
        pull_secrets.extend(found);
    }
    let workload = match cloud {
        None => None,
        Some(cloud) => {
            let login = identities
                .tokens()
                .login(&api, &account, cloud, identities.ambient());
            let failed = |error: NoLogin| failed(error.what(), &error.to_string());
            Some(login.await.map_err(failed)?)
        }
    };
    Ok(ServiceAccountData {
        pull_secrets,
        workload,
    })
}
