//! Who a program is by its environment.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use api::Secret;
use cloud::{aws, azure, gcp};

use crate::{Client, Error};

/// The longest file of credentials that is read.
const LONGEST: u64 = 1 << 20;
/// The region of a token service when nothing names one.
const REGION: &str = "us-east-1";
const SESSION: &str = "weir";

/// The variables of an environment, and the files that they name. Nothing is read before it is needed.
#[derive(Clone, Default)]
pub struct Ambient {
    variables: HashMap<String, String>,
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

    /// The credentials for AWS: those of the environment, of a role for a web identity, or of a profile.
    ///
    /// # Errors
    /// When there are none, or they can't be used.
    pub async fn aws(&self, client: &Client, profile: Option<&str>) -> Result<aws::Credentials, Error> {
        let secret = |name: &str| self.get(name).map(|value| Secret::new(value.to_owned()));
        let pair = (self.get("AWS_ACCESS_KEY_ID"), secret("AWS_SECRET_ACCESS_KEY"));
        if let (Some(id), Some(secret_access_key)) = pair {
            return Ok(aws::Credentials {
                access_key_id: id.to_owned(),
                secret_access_key,
                session_token: secret("AWS_SESSION_TOKEN"),
            });
        }
        let role = (self.get("AWS_ROLE_ARN"), self.get("AWS_WEB_IDENTITY_TOKEN_FILE"));
        if let (Some(role), Some(file)) = role {
            let token = read(Path::new(file))?;
            let identity = aws::WebIdentity {
                role_arn: role.to_owned(),
                session: self.get("AWS_ROLE_SESSION_NAME").unwrap_or(SESSION).to_owned(),
                token: Secret::new(token.trim().to_owned()),
            };
            let at = self.get("AWS_ENDPOINT_URL_STS");
            let at = at.map(crate::client::address).transpose()?;
            let form = identity.request(self.aws_region().unwrap_or(REGION), at)?;
            let answer = client.form(&form, &[("accept", "application/xml")]).await?;
            return Ok(aws::Credentials::from_answer(&answer.body)?);
        }
        self.profile(profile)
    }

    /// The region for AWS.
    #[must_use]
    pub fn aws_region(&self) -> Option<&str> {
        self.get("AWS_REGION").or_else(|| self.get("AWS_DEFAULT_REGION"))
    }

    fn profile(&self, wanted: Option<&str>) -> Result<aws::Credentials, Error> {
        let hint =
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile with keys in ~/.aws/credentials";
        let store = "AWS";
        let named = self.get("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let file = named.or_else(|| self.home(".aws/credentials"));
        let file = file.filter(|file| file.is_file());
        let file = file.ok_or(Error::NoCredentials { store, hint })?;
        let text = read(&file)?;
        let profile = self.get("AWS_PROFILE").or(wanted).unwrap_or("default");
        let keys = section(&text, profile).or_else(|| section(&text, "default"));
        let keys = keys.ok_or(Error::NoCredentials { store, hint })?;
        let secret = |name: &str| keys.get(name).map(|value| Secret::new((*value).to_owned()));
        match (keys.get("aws_access_key_id"), secret("aws_secret_access_key")) {
            (Some(id), Some(secret_access_key)) => Ok(aws::Credentials {
                access_key_id: (*id).to_owned(),
                secret_access_key,
                session_token: secret("aws_session_token"),
            }),
            _ => Err(Error::NoCredentials { store, hint }),
        }
    }

    /// The credentials for Google: the file that `GOOGLE_APPLICATION_CREDENTIALS` names, or that of `gcloud`.
    ///
    /// # Errors
    /// When there are none, or they can't be used.
    pub fn gcp(&self) -> Result<gcp::Credentials, Error> {
        let named = self.get("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
        let usual = || {
            self.home(".config/gcloud/application_default_credentials.json")
                .filter(|file| file.is_file())
        };
        let file = named.or_else(usual).ok_or(Error::NoCredentials {
            store: "Google Cloud",
            hint: "set GOOGLE_APPLICATION_CREDENTIALS to a file with a key, or log in with gcloud",
        })?;
        Ok(gcp::Credentials::parse(read(&file)?.as_bytes())?)
    }

    /// The application for Azure, by `AZURE_TENANT_ID`, `AZURE_CLIENT_ID` and its proof.
    ///
    /// # Errors
    /// When there is none.
    pub fn azure(&self) -> Result<azure::Client, Error> {
        let missing = || Error::NoCredentials {
            store: "Azure",
            hint: "set AZURE_TENANT_ID, AZURE_CLIENT_ID, and AZURE_CLIENT_SECRET or AZURE_FEDERATED_TOKEN_FILE",
        };
        let wanted = |name: &str| self.get(name).map(str::to_owned).ok_or_else(missing);
        let proof = match (
            self.get("AZURE_CLIENT_SECRET"),
            self.get("AZURE_CLIENT_CERTIFICATE_PATH"),
            self.get("AZURE_FEDERATED_TOKEN_FILE"),
        ) {
            (Some(secret), ..) => azure::Proof::Secret(Secret::new(secret.to_owned())),
            (_, Some(file), _) => azure::Proof::Certificate(Secret::new(read(Path::new(file))?)),
            (.., Some(file)) => {
                azure::Proof::Federated(Secret::new(read(Path::new(file))?.trim().to_owned()))
            }
            _ => return Err(missing()),
        };
        let authority = self.get("AZURE_AUTHORITY_HOST").map(crate::client::address);
        Ok(azure::Client {
            tenant: wanted("AZURE_TENANT_ID")?,
            client_id: wanted("AZURE_CLIENT_ID")?,
            proof,
            authority: authority.transpose()?,
        })
    }
}

/// A file of credentials.
fn read(path: &Path) -> Result<String, Error> {
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
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))
}

/// A section of an INI file.
fn section<'a>(text: &'a str, name: &str) -> Option<HashMap<&'a str, &'a str>> {
    let header = format!("[{name}]");
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| *line == header)?;
    let inside = lines.take_while(|line| !line.starts_with('['));
    let pairs = inside.filter_map(|line| line.split_once('='));
    Some(pairs.map(|(key, value)| (key.trim(), value.trim())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_sections() {
        let text = "[default]\naws_access_key_id = a\n\n[other]\naws_access_key_id=b\n";
        assert_eq!(section(text, "default").unwrap()["aws_access_key_id"], "a");
        assert_eq!(section(text, "other").unwrap()["aws_access_key_id"], "b");
        assert!(section(text, "none").is_none());
    }

    #[tokio::test]
    async fn nothing_is_guessed() {
        let nobody = Ambient::default();
        let client = Client::new(crate::Settings::default()).unwrap();
        for error in [
            nobody.vault().unwrap_err(),
            nobody.aws(&client, None).await.unwrap_err(),
            nobody.gcp().unwrap_err(),
            nobody.azure().unwrap_err(),
        ] {
            assert!(matches!(error, Error::NoCredentials { .. }), "{error}");
        }
    }
}
