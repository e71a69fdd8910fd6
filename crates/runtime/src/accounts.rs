//! ServiceAccounts as identities of clouds, and their tokens.

use api::Secret;
use cloud::{Ambient, Cloud, WorkloadIdentity, WorkloadLogin};
use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, ResourceExt as _, api::PostParams};
use limits::{CacheBounds, CredentialCache};

use crate::names::is_object_name;

/// Feature gate for objects that name service accounts.
pub const OBJECT_IDENTITIES: &str = "ObjectLevelWorkloadIdentity";
const TOKEN_SECONDS: i64 = 3600;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceAccounts {
    pub of_objects: bool,
    /// Service account of objects that name none; default the identity of the controller.
    pub default: Option<String>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDefaultAccount {
    #[error(
        "--default-service-account has no effect while the feature gate {OBJECT_IDENTITIES} is off: add \
         --feature-gates={OBJECT_IDENTITIES}=true, or remove the flag"
    )]
    Gate,
    #[error("--default-service-account={0:?} is not the name of a service account")]
    Name(String),
}

impl ServiceAccounts {
    /// Reads the value of `--default-service-account`, which may be empty. Fails when a default service account is set while objects may
    /// name none, because they would use the identity of the controller.
    pub fn new(of_objects: bool, default: &str) -> Result<Self, InvalidDefaultAccount> {
        match default {
            "" => {}
            _ if !of_objects => return Err(InvalidDefaultAccount::Gate),
            name if !is_object_name(name) => return Err(InvalidDefaultAccount::Name(name.to_owned())),
            _ => {}
        }
        Ok(Self {
            of_objects,
            default: Some(default.to_owned()).filter(|name| !name.is_empty()),
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NoLogin {
    #[error("{0}")]
    Identity(cloud::Error),
    #[error("{}", crate::client::describe(.0))]
    Token(kube::Error),
}

impl NoLogin {
    /// Returns the missing part, for messages that name the service account after it.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match self {
            Self::Identity(_) => "the identity of service account",
            Self::Token(_) => "a token of service account",
        }
    }
}

pub struct AccountTokens(CredentialCache<String, Secret<String>>);

impl AccountTokens {
    #[must_use]
    pub fn new(bounds: CacheBounds) -> Self {
        Self(CredentialCache::new(bounds))
    }

    /// Returns the identity of a service account for a cloud, with a token of the account.
    pub async fn login(
        &self,
        api: &Api<ServiceAccount>,
        account: &ServiceAccount,
        cloud: Cloud,
        ambient: &Ambient,
    ) -> Result<WorkloadLogin, NoLogin> {
        let identity = WorkloadIdentity::read(cloud, account.annotations(), ambient)
            .await
            .map_err(NoLogin::Identity)?;
        let namespace = account.namespace().unwrap_or_default();
        let name = account.name_any();
        // An account that was made again has other tokens.
        let uid = account.uid().unwrap_or_default();
        let key = format!("{:?}", (&namespace, &name, uid, identity.audience()));
        let now = Timestamp::now().as_second();
        let token = match self.0.get(&key, now) {
            Some(token) => token,
            None => {
                let created = create_token(api, &name, vec![identity.audience().to_owned()])
                    .await
                    .map_err(NoLogin::Token)?;
                let times = (created.ends, now);
                self.0.insert(&namespace, key, created.token.clone(), times);
                created.token
            }
        };
        Ok(WorkloadLogin::new(
            &format!("{namespace}/{name}"),
            identity,
            token,
        ))
    }
}

/// A token that was just created.
#[derive(Debug)]
pub struct NewToken {
    pub token: Secret<String>,
    /// End in seconds of Unix.
    pub ends: i64,
}

/// Creates a token of a service account that is valid for an hour, or as long as the API server allows.
///
/// # Errors
/// If the account is missing, or the controller may not create tokens of it.
pub async fn create_token(
    api: &Api<ServiceAccount>,
    name: &str,
    audiences: Vec<String>,
) -> Result<NewToken, kube::Error> {
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences,
            expiration_seconds: Some(TOKEN_SECONDS),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = api
        .create_token_request(name, &PostParams::default(), &request)
        .await?;
    Ok(match answer.status {
        Some(status) => NewToken {
            token: Secret::new(status.token),
            ends: status.expiration_timestamp.0.as_second(),
        },
        None => NewToken {
            token: Secret::default(),
            ends: 0,
        },
    })
}
