//! Private keys and credentials that decrypt data keys.

mod age;
mod aws;
mod azure;
mod environment;
mod error;
mod gcp;
mod login;
mod pgp;
mod role;
mod service;
#[cfg(test)]
mod tests;
mod vault;
mod vault_login;

use std::{collections::BTreeMap, sync::Arc};

use ::url::Url;
use api::Secret;
use cloud::{Ambient, http::Client};
use net::AddressPolicy;
use tokio::sync::{Mutex, OnceCell};
use zeroize::Zeroizing;

pub(crate) use self::error::OpenError;
use self::{
    age::Identities, aws::Aws, azure::Azure, gcp::Gcp, login::CloudLogin, pgp::SecretKeys, vault::Vault,
    vault_login::Logins,
};
pub use self::{
    login::CloudAccount,
    role::{AwsRole, RoleError},
    vault_login::{VaultAccount, VaultLogin},
};
use crate::{
    Error,
    attempts::Attempts,
    metadata::{Master, MasterKind},
};

/// Keys that open files. A new set is empty and reads no environment.
#[derive(Debug, Default)]
pub struct Keys {
    age: Identities,
    pgp: SecretKeys,
    aws: Option<Aws>,
    gcp: Option<Gcp>,
    azure: Option<Azure>,
    vault: Option<Vault>,
    /// Account that logs in to Vault without a given token.
    vault_account: Option<Arc<dyn VaultAccount>>,
    vault_logins: Logins,
    /// Identity at clouds that is used for services without given credentials.
    login: Option<Arc<CloudLogin>>,
    /// Environment whose cloud credentials are used for services without given ones.
    ambient: Option<Arc<Ambient>>,
    /// AWS credentials from the environment, by the profile in a key.
    ambient_aws: Mutex<BTreeMap<String, Aws>>,
    /// Role whose credentials are used for AWS without given ones.
    role: Option<Arc<dyn AwsRole>>,
    /// Credentials of the role; `None` without a role.
    role_aws: OnceCell<Option<Aws>>,
    /// Policy of addresses of key services; default the command line's.
    addresses: Option<AddressPolicy>,
    http: OnceCell<Client>,
    notes: Vec<String>,
}

/// Addresses of the key services in tests. The vault of a key still decides the audience of its token.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
struct Endpoints {
    aws: Option<Url>,
    sts: Option<Url>,
    gcp: Option<Url>,
    azure: Option<Url>,
}

impl Keys {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds age identities, one per line; empty lines and comments with `#` are skipped.
    pub fn add_age(&mut self, text: &Secret<String>) -> Result<(), Error> {
        self.age.add(text.expose())
    }

    /// Adds a private SSH key (ed25519 or RSA, without a passphrase) as an age identity.
    pub fn add_ssh(&mut self, text: &Secret<String>) -> Result<(), Error> {
        self.age.add_ssh(text.expose())
    }

    /// Adds OpenPGP private keys, armored or binary, without a passphrase.
    pub fn add_pgp(&mut self, text: &Secret<Vec<u8>>) -> Result<(), Error> {
        self.pgp.add(text.expose())
    }

    pub fn set_aws(&mut self, credentials: cloud::aws::Credentials) {
        self.aws = Some(Aws {
            credentials,
            endpoint: None,
            sts: None,
        });
    }

    /// Uses this role for AWS, unless credentials are given. It is asked when the first file needs it.
    pub fn set_aws_role(&mut self, role: Arc<dyn AwsRole>) {
        self.role = Some(role);
    }

    /// Uses the identities of an account at AWS, Google Cloud and Azure, unless credentials are given. `environment` names the endpoints of
    /// token services; its own identity is not used.
    pub fn set_cloud_account(&mut self, account: Arc<dyn CloudAccount>, environment: Arc<Ambient>) {
        self.login = Some(Arc::new(CloudLogin::new(Some(account), environment)));
    }

    /// Uses the identity of an environment at AWS, Google Cloud and Azure, unless credentials are given. Files don't choose a profile of it.
    pub fn set_cloud_environment(&mut self, environment: Arc<Ambient>) {
        self.login = Some(Arc::new(CloudLogin::new(None, environment)));
    }

    pub fn set_gcp(&mut self, credentials: cloud::gcp::Credentials) {
        self.gcp = Some(Gcp {
            access: gcp::Access::Credentials(credentials),
            endpoint: None,
        });
    }

    pub fn set_azure(&mut self, client: cloud::azure::Client) {
        self.azure = Some(Azure {
            access: azure::Access::Application(client),
            endpoint: None,
        });
    }

    /// Uses this token for Vault; with a `server`, it is sent to that server only.
    pub fn set_vault(&mut self, token: Secret<String>, server: Option<Url>) {
        self.vault = Some(Vault { token, server });
    }

    /// Uses this account for Vault, unless a token is given. It logs in when the first file needs it.
    pub fn set_vault_account(&mut self, account: Arc<dyn VaultAccount>) {
        self.vault_account = Some(account);
    }

    /// Restricts the addresses of key services: the author of a file chooses the address of its Vault.
    pub fn set_addresses(&mut self, addresses: AddressPolicy) {
        self.addresses = Some(addresses);
    }

    #[cfg(test)]
    fn set_endpoints(&mut self, endpoints: &Endpoints) {
        if let Some(aws) = &mut self.aws {
            aws.endpoint.clone_from(&endpoints.aws);
            aws.sts.clone_from(&endpoints.sts);
        }
        if let Some(gcp) = &mut self.gcp {
            gcp.endpoint.clone_from(&endpoints.gcp);
        }
        if let Some(azure) = &mut self.azure {
            azure.endpoint.clone_from(&endpoints.azure);
        }
    }

    /// Adds an entry of a Secret by its name: `*.agekey`, `*.asc`, `sops.vault-token`, `sops.aws-kms`, `sops.azure-kv` or
    /// `sops.gcp-kms`. Returns false for any other name.
    ///
    /// # Errors
    /// Fails when it cannot be used.
    pub fn add_entry(&mut self, name: &str, value: &[u8]) -> Result<bool, Error> {
        let text = || {
            let text = str::from_utf8(value).map(str::to_owned);
            text.map_err(|_| Error::key("an entry of a Secret", format!("`{name}` is no UTF-8")))
        };
        match name {
            _ if name.ends_with(".asc") => self.pgp.add(value)?,
            _ if name.ends_with(".agekey") => self.age.add(&Zeroizing::new(text()?))?,
            "sops.vault-token" => self.set_vault(Secret::new(text()?.trim().to_owned()), None),
            "sops.aws-kms" => self.set_aws(aws::parse(&Zeroizing::new(text()?))?),
            "sops.azure-kv" => self.set_azure(azure::parse(value)?),
            "sops.gcp-kms" => self.set_gcp(gcp_credentials("sops.gcp-kms", value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    #[cfg(test)]
    pub(crate) async fn open(&self, master: &Master) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        self.open_within(master, &mut Attempts::new(&tree::Budget::default()))
            .await
    }

    /// Opens a data key. Work with keys that need no network is charged to `attempts`.
    pub(crate) async fn open_within(
        &self,
        master: &Master,
        attempts: &mut Attempts<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let enc = master.enc.trim();
        match &master.kind {
            MasterKind::Age { .. } => self.age.open(&master.enc, attempts),
            MasterKind::Pgp { .. } => self.pgp.open(&master.enc, attempts),
            kind @ MasterKind::Aws { .. } => {
                let http = self.http().await?;
                self.aws(http, kind).await?.open(http, kind, enc).await
            }
            MasterKind::Gcp { resource } => {
                let http = self.http().await?;
                self.gcp()?.open(http, resource, enc).await
            }
            MasterKind::Azure { vault, name, version } => {
                let http = self.http().await?;
                self.azure()?.open(http, (vault, name, version), enc).await
            }
            MasterKind::Vault {
                address,
                engine,
                name,
            } => {
                let vault = self.vault(address).await?;
                vault.open(self.http().await?, (address, engine, name), enc).await
            }
            MasterKind::Huawei { .. } => {
                Err(OpenError::Unsupported("keys of Huawei Cloud are not supported"))
            }
        }
    }

    /// Returns the given token, or one of the account for this server.
    async fn vault(&self, address: &str) -> Result<Vault, OpenError> {
        match (&self.vault, &self.vault_account) {
            (Some(vault), _) => Ok(vault.clone()),
            (None, Some(account)) => {
                let http = self.http().await?;
                self.vault_logins.at(http, account.as_ref(), address).await
            }
            (None, None) => missing("Vault"),
        }
    }

    /// Returns the given AWS credentials, the role's, or the environment's. Each is looked up once.
    async fn aws(&self, http: &Client, kind: &MasterKind) -> Result<Aws, OpenError> {
        if let Some(given) = &self.aws {
            return Ok(given.clone());
        }
        let MasterKind::Aws { arn, profile, .. } = kind else {
            return missing("AWS");
        };
        if let Some(login) = &self.login {
            return login.aws(http, arn).await;
        }
        if let Some(role) = &self.role {
            let ambient = self.ambient.as_deref();
            let find = async || Aws::of_role(role.as_ref(), ambient, http, arn).await;
            if let Some(found) = self.role_aws.get_or_try_init(find).await? {
                return Ok(found.clone());
            }
        }
        let Some(ambient) = &self.ambient else {
            return missing("AWS");
        };
        let mut known = self.ambient_aws.lock().await;
        if let Some(found) = known.get(profile) {
            return Ok(found.clone());
        }
        let found = Aws::find(ambient, http, profile).await?;
        known.insert(profile.clone(), found.clone());
        Ok(found)
    }

    fn gcp(&self) -> Result<Gcp, OpenError> {
        if let Some(given) = &self.gcp {
            return Ok(given.clone());
        }
        let access = match (&self.login, &self.ambient) {
            (Some(login), _) => gcp::Access::Login(Arc::clone(login)),
            (None, Some(ambient)) => gcp::Access::Ambient(Arc::clone(ambient)),
            (None, None) => return missing("Google Cloud"),
        };
        Ok(Gcp {
            access,
            endpoint: None,
        })
    }

    fn azure(&self) -> Result<Azure, OpenError> {
        if let Some(given) = &self.azure {
            return Ok(given.clone());
        }
        let access = match (&self.login, &self.ambient) {
            (Some(login), _) => azure::Access::Login(Arc::clone(login)),
            (None, Some(ambient)) => azure::Access::Ambient(Arc::clone(ambient)),
            (None, None) => return missing("Azure"),
        };
        Ok(Azure {
            access,
            endpoint: None,
        })
    }

    async fn http(&self) -> Result<&Client, OpenError> {
        let addresses = self.addresses.clone();
        let make = async || service::client(addresses.unwrap_or_else(AddressPolicy::command_line));
        self.http.get_or_try_init(make).await
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn missing<T>(service: &'static str) -> Result<T, OpenError> {
    Err(OpenError::NoCredentials(service))
}

fn gcp_credentials(what: &'static str, text: &[u8]) -> Result<cloud::gcp::Credentials, Error> {
    cloud::gcp::Credentials::parse(text).map_err(|error| Error::key(what, error.to_string()))
}
