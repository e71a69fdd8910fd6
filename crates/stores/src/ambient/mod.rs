//! Who a program is by its environment.

mod aws;
mod instance;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use api::Secret;
use cloud::{Token, azure, gcp};

pub use self::aws::TrustedToken;
use crate::{Client, Error};

/// The longest file of credentials that is read.
const LONGEST: u64 = 1 << 20;

/// The variables of an environment, and the files that they name. Nothing is read before it is needed.
#[derive(Clone, Default)]
pub struct Ambient {
    variables: HashMap<String, String>,
    /// Whether the machine that the program runs on may be asked.
    instance: bool,
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ambient")
    }
}

impl Ambient {
    /// Takes these variables for the environment.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            instance: false,
        }
    }

    /// Asks the machine that the program runs on who it is, where nothing else says it.
    #[must_use]
    pub fn with_instance(self) -> Self {
        Self {
            instance: true,
            ..self
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    fn home(&self, below: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.get("HOME")?).join(below))
    }

    /// The token for Vault: `VAULT_TOKEN`.
    ///
    /// # Errors
    /// When there is none.
    pub fn vault(&self) -> Result<Secret<String>, Error> {
        let token = self.get("VAULT_TOKEN").map(|token| Secret::new(token.to_owned()));
        token.ok_or(Error::NoCredentials {
            store: "Vault",
            hint: "set VAULT_TOKEN",
        })
    }

    /// A token for Google: for the credentials in the file that `GOOGLE_APPLICATION_CREDENTIALS` names, or in that of `gcloud`,
    /// or that of the machine.
    ///
    /// # Errors
    /// When there are none, or they can't be used.
    pub async fn gcp(&self, client: &Client) -> Result<Token, Error> {
        let named = self.get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let usual = || {
            self.home(".config/gcloud/application_default_credentials.json")
                .filter(|file| file.is_file())
        };
        if let Some(file) = named.or_else(usual) {
            let credentials = gcp::Credentials::parse(read(&file)?.as_bytes())?;
            return client.gcp_token(&credentials).await;
        }
        self.gcp_instance().await?.ok_or(Error::NoCredentials {
            store: "Google Cloud",
            hint: "set GOOGLE_APPLICATION_CREDENTIALS to a file with a key, or log in with gcloud",
        })
    }

    /// A token for Azure: for the application of `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and its proof, or for the managed identity of the
    /// machine. `id` names the assertion of an application that proves itself by a certificate.
    ///
    /// # Errors
    /// When there is none, or it is refused.
    pub async fn azure(&self, client: &Client, scope: &str, id: &str) -> Result<Token, Error> {
        if let Some(application) = self.application()? {
            return client.azure_token(&application, scope, id).await;
        }
        self.azure_instance(scope).await?.ok_or(Error::NoCredentials {
            store: "Azure",
            hint: "set AZURE_TENANT_ID, AZURE_CLIENT_ID, and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE",
        })
    }

    /// The application for Azure; none when something of it is missing.
    fn application(&self) -> Result<Option<azure::Client>, Error> {
        let file = |name: &str| self.get(name).map(|file| read(Path::new(file))).transpose();
        let secret = self.get("AZURE_CLIENT_SECRET");
        let proof = if let Some(secret) = secret {
            azure::Proof::Secret(Secret::new(secret.to_owned()))
        } else if let Some(pem) = file("AZURE_CLIENT_CERTIFICATE_PATH")? {
            azure::Proof::Certificate(Secret::new(pem))
        } else if let Some(token) = file("AZURE_FEDERATED_TOKEN_FILE")? {
            azure::Proof::Federated(Secret::new(token.trim().to_owned()))
        } else {
            return Ok(None);
        };
        let authority = self.get("AZURE_AUTHORITY_HOST").map(crate::client::address);
        let (Some(tenant), Some(client_id)) = (self.get("AZURE_TENANT_ID"), self.get("AZURE_CLIENT_ID"))
        else {
            return Ok(None);
        };
        Ok(Some(azure::Client {
            tenant: tenant.to_owned(),
            client_id: client_id.to_owned(),
            proof,
            authority: authority.transpose()?,
        }))
    }
}

/// A file of credentials.
fn read_bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let failed = |why: String| Error::File {
        path: path.display().to_string(),
        why,
    };
    let len = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if len > LONGEST {
        return Err(failed("it is too long for credentials".to_owned()));
    }
    std::fs::read(path).map_err(|error| failed(error.to_string()))
}

/// A file of credentials that is text.
fn read(path: &Path) -> Result<String, Error> {
    String::from_utf8(read_bytes(path)?).map_err(|_| Error::File {
        path: path.display().to_string(),
        why: "it is no text".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_guessed() {
        let nobody = Ambient::default();
        let client = Client::new(crate::Settings::default()).unwrap();
        for error in [
            nobody.vault().unwrap_err(),
            nobody.aws(&client, None, None).await.unwrap_err(),
            nobody.gcp(&client).await.unwrap_err(),
            nobody.azure(&client, azure::VAULT_SCOPE, "id").await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::NoCredentials { .. }), "{error}");
        }
    }
}
