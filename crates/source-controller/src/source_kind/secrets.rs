//! The Secrets and the identity that a source uses.

use std::collections::HashMap;

use api::LocalObjectReference;
use cloud::Cloud;
use kube::api::ObjectMeta;
use net::Proxy;
use runtime::secret::SecretData;

use super::object::SourceObject;
use crate::identity::Login;

/// The identity by which a source is read without a Secret; by default none. Pure.
pub(crate) trait Identity: SourceObject {
    /// Returns the service account whose pull secrets or token are used.
    fn service_account(_: &Self::Object) -> Option<&str> {
        None
    }

    /// Returns the cloud whose identity is used, by [`Identity::service_account`] if there is one; `None` if the provider is not a cloud.
    fn cloud(_: &Self::Object) -> Option<Cloud> {
        None
    }

    /// Returns true if a Secret of the object replaces the identity of a cloud.
    fn has_credentials(_: &Self::Object) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SecretRole {
    Credentials,
    /// Address of a proxy, and its credentials.
    Proxy,
    /// CA bundle and client certificate for the source.
    Certificates,
    TokenService,
    /// CA bundle and client certificate for a token service.
    TokenServiceCertificates,
    TrustedKeys,
    TrustedRoot,
    /// The service account, its pull secrets and its token.
    ServiceAccount,
}

pub(crate) type Named<'a> = Vec<(SecretRole, &'a str)>;

/// Returns the references that are set.
pub(crate) fn named<'a>(
    references: impl IntoIterator<Item = (SecretRole, Option<&'a LocalObjectReference>)>,
) -> Named<'a> {
    let set = references.into_iter();
    set.filter_map(|(role, reference)| Some((role, reference?.name.as_str())))
        .collect()
}

/// The contents of the Secrets that the spec of an object names.
#[derive(Default)]
pub(crate) struct SourceSecrets {
    roles: HashMap<SecretRole, SecretData>,
    /// The service account of [`Identity::service_account`].
    pub(crate) service_account: Option<ServiceAccountData>,
}

impl SourceSecrets {
    #[must_use]
    pub(crate) fn get(&self, role: SecretRole) -> Option<&SecretData> {
        self.roles.get(&role)
    }

    /// Returns the identity of a cloud for an object: the service account, or else the controller.
    pub(crate) fn login(&self, of: &ObjectMeta, cloud: Cloud, proxy: Option<Proxy>) -> Login {
        let account = self.service_account.as_ref();
        Login {
            namespace: of.namespace.clone().unwrap_or_default(),
            cloud,
            workload: account.and_then(|account| account.workload.clone()),
            proxy,
        }
    }
}

impl FromIterator<(SecretRole, SecretData)> for SourceSecrets {
    fn from_iter<T: IntoIterator<Item = (SecretRole, SecretData)>>(secrets: T) -> Self {
        Self {
            roles: secrets.into_iter().collect(),
            service_account: None,
        }
    }
}

#[derive(Default)]
pub(crate) struct ServiceAccountData {
    /// Its pull secrets, in their order, without missing ones.
    pub(crate) pull_secrets: Vec<SecretData>,
    /// Its identity of [`Identity::cloud`].
    pub(crate) workload: Option<cloud::WorkloadLogin>,
}

impl ServiceAccountData {
    pub(crate) fn without_pull_secrets(self) -> Self {
        Self {
            pull_secrets: Vec::new(),
            ..self
        }
    }
}
