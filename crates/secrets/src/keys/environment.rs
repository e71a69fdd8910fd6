//! The keys of whoever runs a program: where sops looks for them, apart from agents and programs.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use api::Secret;
use cloud::{
    aws,
    azure::{Client, Proof},
};
use url::Url;
use zeroize::Zeroizing;

use super::{Access, Endpoints, Keys, gcp_credentials};
use crate::{Error, store};

/// Larger files hold no keys.
const LARGEST: u64 = 1 << 20;

/// Who looks.
struct Search<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    keys: Keys,
}

impl Keys {
    /// The keys that sops would find: age identities and SSH keys, the secret keyring of gpg, and the credentials of the
    /// clouds and of Vault. `variable` gives the variables of the environment, those that are set and not empty.
    ///
    /// What cannot be used is told when no key opens a file, and not before: other keys may do.
    #[must_use]
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut search = Search {
            variable,
            keys: Self::new(),
        };
        search.age();
        search.ssh();
        search.pgp();
        search.aws();
        search.gcp();
        search.azure();
        search.vault();
        search.keys
    }
}

impl Search<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn home(&self, path: &str) -> Option<PathBuf> {
        self.get("HOME").map(|home| Path::new(&home).join(path))
    }

    fn note(&mut self, place: &str, why: &str) {
        self.keys.notes.push(format!("{place}: {why}"));
    }

    /// Tells what was wrong with a place.
    fn check(&mut self, place: &str, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.note(place, &error.to_string());
        }
    }

    /// The content of a file; `None`, with a note, when it isn't there or cannot be read.
    fn read(&mut self, path: &Path) -> Option<Zeroizing<Vec<u8>>> {
        match read(path) {
            Ok(bytes) => Some(bytes),
            Err(why) => {
                self.note(&path.display().to_string(), &why);
                None
            }
        }
    }

    fn read_text(&mut self, path: &Path) -> Option<Secret<String>> {
        let bytes = self.read(path)?;
        match str::from_utf8(&bytes) {
            Ok(text) => Some(Secret::new(text.to_owned())),
            Err(_) => {
                self.note(&path.display().to_string(), "it is no text");
                None
            }
        }
    }

    fn age(&mut self) {
        if let Some(text) = self.get("SOPS_AGE_KEY") {
            let added = self.keys.add_age(&Secret::new(text));
            self.check("SOPS_AGE_KEY", added);
        }
        if self.get("SOPS_AGE_KEY_CMD").is_some() {
            self.note("SOPS_AGE_KEY_CMD", "commands are not run");
        }
        let config = match self.get("XDG_CONFIG_HOME") {
            Some(config) => Some(PathBuf::from(config)),
            None => self.home(".config"),
        };
        let usual = config.map(|config| config.join("sops/age/keys.txt"));
        let named = self.get("SOPS_AGE_KEY_FILE").map(PathBuf::from);
        let found_any = !self.keys.age.is_empty() || named.is_some();
        let usual = usual.filter(|path| !found_any || path.exists());
        for path in named.into_iter().chain(usual) {
            if let Some(text) = self.read_text(&path) {
                let added = self.keys.add_age(&text);
                self.check(&path.display().to_string(), added);
            }
        }
    }

    fn ssh(&mut self) {
        let named = self.get("SOPS_AGE_SSH_PRIVATE_KEY_FILE").map(PathBuf::from);
        let usual = [".ssh/id_ed25519", ".ssh/id_rsa"].map(|path| self.home(path));
        let usual = usual.into_iter().flatten().filter(|path| path.exists());
        for path in named.into_iter().chain(usual.collect::<Vec<_>>()) {
            if let Some(text) = self.read_text(&path) {
                let added = self.keys.add_ssh(&text);
                self.check(&path.display().to_string(), added);
            }
        }
    }

    /// The keyring that sops reads itself; the newer one belongs to gpg's agent.
    fn pgp(&mut self) {
        let home = match self.get("GNUPGHOME") {
            Some(home) => Some(PathBuf::from(home)),
            None => self.home(".gnupg"),
        };
        let ring = home.map(|home| home.join("secring.gpg"));
        if let Some(ring) = ring.filter(|ring| ring.exists())
            && let Some(bytes) = self.read(&ring)
        {
            let added = self.keys.pgp.add(&bytes);
            self.check(&ring.display().to_string(), added);
        }
    }

    fn aws(&mut self) {
        let keys = (self.get("AWS_ACCESS_KEY_ID"), self.get("AWS_SECRET_ACCESS_KEY"));
        let found = match keys {
            (Some(access_key_id), Some(secret)) => Some(aws::Credentials {
                access_key_id,
                secret_access_key: Secret::new(secret),
                session_token: self.get("AWS_SESSION_TOKEN").map(Secret::new),
            }),
            _ => self.aws_profile(),
        };
        let Some(credentials) = found else { return };
        self.keys.set_aws(credentials);
        let endpoint = self
            .get("AWS_ENDPOINT_URL_KMS")
            .or_else(|| self.get("AWS_ENDPOINT_URL"));
        if let Some(url) = endpoint {
            match Url::parse(&url) {
                Ok(url) => self.keys.set_endpoints(&Endpoints {
                    aws: Some(url),
                    ..Endpoints::default()
                }),
                Err(_) => self.note("AWS_ENDPOINT_URL", "it is no URL"),
            }
        }
    }

    /// Static keys of a profile in the shared file.
    fn aws_profile(&mut self) -> Option<aws::Credentials> {
        let path = match self.get("AWS_SHARED_CREDENTIALS_FILE") {
            Some(path) => PathBuf::from(path),
            None => self.home(".aws/credentials").filter(|path| path.exists())?,
        };
        let text = self.read_text(&path)?;
        let profile = self.get("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let field = |name: &str| store::ini_value(text.expose(), &profile, name);
        let found = (field("aws_access_key_id"), field("aws_secret_access_key"));
        let (Some(access_key_id), Some(secret)) = found else {
            self.note(&path.display().to_string(), "the profile has no keys of its own");
            return None;
        };
        Some(aws::Credentials {
            access_key_id,
            secret_access_key: Secret::new(secret),
            session_token: field("aws_session_token").map(Secret::new),
        })
    }

    fn gcp(&mut self) {
        // Its value is a file, or what would be in one.
        let named = self.get("GOOGLE_CREDENTIALS");
        let (place, bytes) = match named {
            Some(text) if text.trim_start().starts_with('{') => (
                "GOOGLE_CREDENTIALS".to_owned(),
                Some(Zeroizing::new(text.into_bytes())),
            ),
            Some(path) => (path.clone(), self.read(Path::new(&path))),
            None => {
                if let Some(token) = self.get("GOOGLE_OAUTH_ACCESS_TOKEN") {
                    self.keys.set_gcp_access(Access::Token(Secret::new(token)));
                    return;
                }
                let usual = self.home(".config/gcloud/application_default_credentials.json");
                let path = match self.get("GOOGLE_APPLICATION_CREDENTIALS") {
                    Some(path) => PathBuf::from(path),
                    None => match usual.filter(|path| path.exists()) {
                        Some(path) => path,
                        None => return,
                    },
                };
                (path.display().to_string(), self.read(&path))
            }
        };
        let Some(bytes) = bytes else { return };
        match gcp_credentials("Google credentials", &bytes) {
            Ok(credentials) => self.keys.set_gcp(credentials),
            Err(error) => self.note(&place, &error.to_string()),
        }
    }

    fn azure(&mut self) {
        let (Some(tenant), Some(client_id)) = (self.get("AZURE_TENANT_ID"), self.get("AZURE_CLIENT_ID"))
        else {
            return;
        };
        let file = |name: &str| self.get(name).map(PathBuf::from);
        let (certificate, token) = (
            file("AZURE_CLIENT_CERTIFICATE_PATH"),
            file("AZURE_FEDERATED_TOKEN_FILE"),
        );
        let proof = if let Some(secret) = self.get("AZURE_CLIENT_SECRET") {
            Some(Proof::Secret(Secret::new(secret)))
        } else if let Some(path) = certificate {
            self.read_text(&path).map(Proof::Certificate)
        } else if let Some(path) = token {
            self.read_text(&path).map(Proof::Federated)
        } else {
            None
        };
        let authority = self
            .get("AZURE_AUTHORITY_HOST")
            .and_then(|url| Url::parse(&url).ok());
        if let Some(proof) = proof {
            self.keys.set_azure(Client {
                tenant,
                client_id,
                proof,
                authority,
            });
        }
    }

    fn vault(&mut self) {
        let token = match self.get("VAULT_TOKEN") {
            Some(token) => Some(Secret::new(token)),
            None => match self.home(".vault-token").filter(|path| path.exists()) {
                Some(path) => self.read_text(&path),
                None => None,
            },
        };
        let server = self.get("VAULT_ADDR").and_then(|url| Url::parse(&url).ok());
        if let Some(token) = token {
            self.keys
                .set_vault(Secret::new(token.expose().trim().to_owned()), server);
        }
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let told = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        _ => error.to_string(),
    };
    let file = File::open(path).map_err(|error| told(&error))?;
    let mut bytes = Zeroizing::new(Vec::new());
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| told(&error))?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is too large for a file of keys".to_owned());
    }
    Ok(bytes)
}
