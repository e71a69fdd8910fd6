//! Credentials for Git servers and registries of clouds, for the identity of the controller or of a service account.

use std::time::Duration;

use api::Secret;
use cloud::{
    Ambient, Cloud, Error, Identity, Workload, WorkloadLogin,
    aws::{self, Ecr, codecommit},
    azure, gcp,
    http::{Client, Settings},
};
use jiff::Timestamp;
use limits::{CacheBounds, CredentialCache};
use net::{AddressPolicy, Proxies, Proxy, Tls};
use oci::Credentials;
use runtime::accounts::{AccountTokens, ServiceAccounts};
use url::Url;

const ANSWER: u64 = 1 << 20;
/// Assumed lifetime of the password of a registry in seconds, whatever the registry says.
const PASSWORD: i64 = 3600;
const GOOGLE_USER: &str = "oauth2accesstoken";

/// The identities of clouds that sources use, with a cache of their credentials.
pub(crate) struct Identities {
    addresses: AddressPolicy,
    ambient: Ambient,
    accounts: ServiceAccounts,
    bounds: CacheBounds,
    tokens: AccountTokens,
    git: CredentialCache<String, GitCredentials>,
    registries: CredentialCache<String, Credentials>,
}

#[derive(Debug, Clone)]
pub(crate) enum GitCredentials {
    Bearer(Secret<String>),
    Basic(aws::Login),
}

#[derive(Debug, Clone)]
pub(crate) struct Login {
    /// Namespace of the object, which cached credentials are counted for.
    pub(crate) namespace: String,
    pub(crate) cloud: Cloud,
    /// Default the identity of the controller.
    pub(crate) workload: Option<WorkloadLogin>,
    /// The proxy for requests to token services; default from the environment.
    pub(crate) proxy: Option<Proxy>,
}

impl Login {
    fn key(&self, server: &str) -> String {
        let proxy = self.proxy.as_ref().map(|proxy| proxy.url.as_str());
        let account = self.workload.as_ref().map(WorkloadLogin::key);
        format!("{:?}", (self.cloud, account, proxy, server))
    }
}

impl Identities {
    pub(crate) fn new(
        addresses: AddressPolicy,
        ambient: Ambient,
        accounts: ServiceAccounts,
        bounds: CacheBounds,
    ) -> Self {
        Self {
            addresses,
            ambient,
            accounts,
            bounds,
            tokens: AccountTokens::new(bounds),
            git: CredentialCache::new(bounds),
            registries: CredentialCache::new(bounds),
        }
    }

    pub(crate) fn of_objects(&self) -> bool {
        self.accounts.of_objects
    }

    /// Returns the service account of objects that name none, if they don't use the identity of the controller.
    pub(crate) fn default_account(&self) -> Option<&str> {
        self.accounts.default.as_deref()
    }

    pub(crate) fn tokens(&self) -> &AccountTokens {
        &self.tokens
    }

    pub(crate) fn bounds(&self) -> CacheBounds {
        self.bounds
    }

    pub(crate) fn ambient(&self) -> &Ambient {
        &self.ambient
    }

    /// Returns the credentials for the repository at a URL. Fails when the cloud has no such URL, or the identity gets no credentials.
    pub(crate) async fn git(
        &self,
        login: &Login,
        url: &Url,
        timeout: Duration,
    ) -> Result<GitCredentials, Error> {
        let (key, now) = (login.key(url.as_str()), Timestamp::now());
        if let Some(cached) = self.git.get(&key, now.as_second()) {
            return Ok(cached);
        }
        let client = self.client(login, Tls::default(), timeout)?;
        let (found, lifetime) = match login.cloud {
            Cloud::Azure if azure::is_devops(url) => {
                let token = self.identity(login).azure(&client, azure::DEVOPS_SCOPE).await?;
                (GitCredentials::Bearer(token.access), seconds(token.expires_in))
            }
            Cloud::Aws if let Some(region) = codecommit::region(url) => {
                let credentials = self.identity(login).aws(&client, region).await?;
                let found = codecommit::login(url, region, &credentials, now);
                (GitCredentials::Basic(found), codecommit::LIFETIME)
            }
            cloud => {
                return Err(Error::Endpoint {
                    url: cloud::http::safe_url(url),
                    why: match cloud {
                        Cloud::Aws => "it is no repository of CodeCommit",
                        Cloud::Azure => "it is no repository of Azure DevOps",
                        Cloud::Gcp => "Google Cloud has no repositories",
                    },
                });
            }
        };
        let ends = now.as_second().saturating_add(lifetime);
        let times = (ends, now.as_second());
        self.git.insert(&login.namespace, key, found.clone(), times);
        Ok(found)
    }

    pub(crate) fn forget_git(&self, login: &Login, url: &Url) {
        self.git.remove(&login.key(url.as_str()));
    }

    /// Returns the credentials for a registry, which is asked with `tls` if it exchanges tokens itself. Fails when the cloud has no such
    /// registry, or the identity gets no credentials.
    pub(crate) async fn registry(
        &self,
        login: &Login,
        host: &str,
        tls: Tls,
        timeout: Duration,
    ) -> Result<Credentials, Error> {
        let (key, now) = (login.key(host), Timestamp::now().as_second());
        if let Some(cached) = self.registries.get(&key, now) {
            return Ok(cached);
        }
        let client = self.client(login, Tls::default(), timeout)?;
        let (found, lifetime) = match login.cloud {
            Cloud::Aws if let Some(ecr) = Ecr::parse(host) => {
                let credentials = self.identity(login).aws(&client, &ecr.region).await?;
                let password = ecr.login(&client, &credentials, self.ambient.aws_ecr()?).await?;
                (basic(password.username, password.password), PASSWORD)
            }
            Cloud::Azure if let Some(scope) = azure::registry_scope(host) => {
                let token = self.identity(login).azure(&client, scope).await?;
                let client = self.client(login, tls, timeout)?;
                let token = azure::registry_token(&client, host, &token).await?;
                (Credentials::Identity(token), PASSWORD)
            }
            Cloud::Gcp if gcp::is_registry(host) => {
                let token = self.identity(login).gcp(&client).await?;
                let password = basic(GOOGLE_USER.to_owned(), token.access);
                (password, seconds(token.expires_in))
            }
            cloud => {
                return Err(Error::Endpoint {
                    url: host.to_owned(),
                    why: match cloud {
                        Cloud::Aws => "it is no registry of AWS",
                        Cloud::Azure => "it is no registry of Azure",
                        Cloud::Gcp => "it is no registry of Google Cloud",
                    },
                });
            }
        };
        let times = (now.saturating_add(lifetime), now);
        self.registries
            .insert(&login.namespace, key, found.clone(), times);
        Ok(found)
    }

    pub(crate) fn forget_registry(&self, login: &Login, host: &str) {
        self.registries.remove(&login.key(host));
    }

    fn client(&self, login: &Login, tls: Tls, timeout: Duration) -> Result<Client, Error> {
        Client::new(Settings {
            addresses: self.addresses.clone(),
            answer_bytes: ANSWER,
            timeout,
            tls,
            proxies: login.proxy.clone().map_or(Proxies::Environment, Proxies::Only),
            ..Settings::default()
        })
    }

    fn identity<'a>(&'a self, login: &'a Login) -> Identity<'a> {
        Identity {
            ambient: &self.ambient,
            workload: login.workload(),
        }
    }
}

impl Login {
    fn workload(&self) -> Option<&Workload> {
        self.workload.as_ref().map(WorkloadLogin::workload)
    }
}

fn basic(username: String, password: Secret<String>) -> Credentials {
    Credentials::Basic { username, password }
}

fn seconds(lifetime: u64) -> i64 {
    i64::try_from(lifetime).unwrap_or_default()
}
