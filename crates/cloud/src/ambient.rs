//! Credentials for cloud services from the environment, files and the machine.

mod aws;
mod instance;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use api::Secret;

pub use self::aws::TrustedToken;
use crate::{
    Error, Token, azure, gcp,
    http::{Client, address, safe_url},
};

const MAX_FILE_BYTES: u64 = 1 << 20;

/// Variables of an environment and the files that they name; each is read when it is needed.
#[derive(Clone, Default)]
pub struct Ambient {
    variables: HashMap<String, String>,
    instance: bool,
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ambient")
    }
}

impl Ambient {
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            instance: false,
        }
    }

    /// Allows the machine's metadata service, as the last source of credentials.
    #[must_use]
    pub fn with_instance(self) -> Self {
        Self {
            instance: true,
            ..self
        }
    }

    /// Replaces the environment's endpoint for the STS of AWS, if `endpoint` is set.
    #[must_use]
    pub fn with_aws_sts(mut self, endpoint: Option<&url::Url>) -> Self {
        if let Some(endpoint) = endpoint {
            let name = "AWS_ENDPOINT_URL_STS".to_owned();
            self.variables.insert(name, endpoint.to_string());
        }
        self
    }

    /// Replaces the environment's client ID of an Azure application or managed identity, if `client_id` is set.
    #[must_use]
    pub fn with_azure_client(mut self, client_id: Option<&str>) -> Self {
        if let Some(client_id) = client_id {
            let name = "AZURE_CLIENT_ID".to_owned();
            self.variables.insert(name, client_id.to_owned());
        }
        self
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// Reads the file that a variable names; `None` if it names none.
    pub(crate) fn file(&self, variable: &str) -> Result<Option<String>, Error> {
        self.get(variable).map(|path| read(Path::new(path))).transpose()
    }

    #[must_use]
    pub fn home(&self, below: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.get("HOME")?).join(below))
    }

    /// Returns the token for a Vault server: `VAULT_TOKEN`, which is only for `VAULT_ADDR` if that is set; `at` may come from
    /// an untrusted project.
    ///
    /// # Errors
    /// Fails when the token is missing or for another server, or an address is invalid.
    pub fn vault(&self, at: &str) -> Result<Secret<String>, Error> {
        let own = self.get("VAULT_ADDR").map(address).transpose()?;
        let url = address(at)?;
        if own.is_some_and(|own| own.origin() != url.origin()) {
            return Err(Error::Address {
                url: safe_url(&url),
                why: "VAULT_ADDR names another server, and the token is sent to that alone".to_owned(),
            });
        }
        let token = self.get("VAULT_TOKEN").map(|token| Secret::new(token.to_owned()));
        token.ok_or(Error::NoCredentials {
            service: "Vault",
            hint: "set VAULT_TOKEN",
        })
    }

    /// Returns a token for Google Cloud, from the first of: the file of `GOOGLE_APPLICATION_CREDENTIALS`, the file of
    /// `gcloud`, the machine.
    pub async fn gcp(&self, client: &Client) -> Result<Token, Error> {
        let named = self.get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let usual = || {
            self.home(".config/gcloud/application_default_credentials.json")
                .filter(|file| file.is_file())
        };
        if let Some(file) = named.or_else(usual) {
            let credentials = gcp::Credentials::parse(read(&file)?.as_bytes())?;
            return credentials.token(client).await;
        }
        self.gcp_instance().await?.ok_or(Error::NoCredentials {
            service: "Google Cloud",
            hint: "set GOOGLE_APPLICATION_CREDENTIALS to a file with a key, or log in with gcloud",
        })
    }

    /// Returns a token for Google Cloud as sops finds it, from the first of: `GOOGLE_CREDENTIALS`, which is a file or its
    /// content, `GOOGLE_OAUTH_ACCESS_TOKEN`, then the sources of [`Self::gcp`].
    pub async fn gcp_for_sops(&self, client: &Client) -> Result<Token, Error> {
        match (
            self.get("GOOGLE_CREDENTIALS"),
            self.get("GOOGLE_OAUTH_ACCESS_TOKEN"),
        ) {
            (Some(given), _) => {
                let credentials = if given.trim_start().starts_with('{') {
                    gcp::Credentials::parse(given.as_bytes())?
                } else {
                    gcp::Credentials::parse(read(Path::new(given))?.as_bytes())?
                };
                credentials.token(client).await
            }
            (None, Some(token)) => Ok(Token {
                access: Secret::new(token.to_owned()),
                expires_in: 0,
            }),
            (None, None) => self.gcp(client).await,
        }
    }

    /// Returns a token for Azure: for the application of `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and its proof, or for the
    /// machine's managed identity. `id` is the ID of the assertion of an application with a certificate.
    pub async fn azure(&self, client: &Client, scope: &str, id: &str) -> Result<Token, Error> {
        let variable = |name: &str| self.get(name).map(str::to_owned);
        let read = |file: &str| {
            read(Path::new(file))
                .map(Secret::new)
                .map_err(|error| error.to_string())
        };
        if let Some(application) = azure::Client::of_variables(variable, read)? {
            return application.token(client, scope, id).await;
        }
        self.azure_instance(scope).await?.ok_or(Error::NoCredentials {
            service: "Azure",
            hint: match self.instance {
                true => {
                    "set AZURE_TENANT_ID, AZURE_CLIENT_ID, and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE, or give the \
                     machine a managed identity (ManagedIdentityCredential: no answer)"
                }
                false => "set AZURE_TENANT_ID, AZURE_CLIENT_ID, and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE",
            },
        })
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::File {
        path: path.display().to_string(),
        why,
    };
    let len = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if len > MAX_FILE_BYTES {
        return Err(failed("it is too long for credentials".to_owned()));
    }
    std::fs::read(path).map_err(|error| failed(error.to_string()))
}

fn read(path: &Path) -> Result<String, Error> {
    String::from_utf8(read_bytes(path)?).map_err(|_| Error::File {
        path: path.display().to_string(),
        why: "it is not UTF-8".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_credentials_are_an_error() {
        let nobody = Ambient::default();
        let client = Client::new(crate::http::Settings::default()).unwrap();
        for error in [
            nobody.vault("https://vault.test").unwrap_err(),
            nobody.aws(&client, None, None).await.unwrap_err(),
            nobody.gcp(&client).await.unwrap_err(),
            nobody.azure(&client, azure::VAULT_SCOPE, "id").await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::NoCredentials { .. }), "{error}");
        }
    }
}
