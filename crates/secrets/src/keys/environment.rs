//! The keys of whoever runs a program: where sops looks for them, apart from agents and programs.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use api::Secret;
use cloud::{
    aws::{Base, Credentials, Profiles},
    azure::Client,
};
use url::Url;
use zeroize::Zeroizing;

use super::{Access, Endpoints, Keys, gcp_credentials};
use crate::Error;

/// Larger files hold no keys.
const LARGEST: u64 = 1 << 20;

/// Search for keys in the environment.
struct Search<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    keys: Keys,
}

impl Keys {
    /// The keys that sops would find: age identities and SSH keys, the secret keyring of gpg, and the credentials of the
    /// clouds and of Vault. `variable` gives the variables of the environment, those that are set and not empty.
    ///
    /// Problems are reported only when no key opens a file, as other keys may do.
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
        match read_text(path) {
            Ok(text) => Some(text),
            Err(why) => {
                self.keys.notes.push(why);
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
        let own = Credentials::of_variables(|name| self.get(name));
        let Some(credentials) = own.or_else(|| self.aws_profile()) else {
            return;
        };
        self.keys.set_aws(credentials);
        let endpoint = |own: &str| {
            let url = self.get(own).or_else(|| self.get("AWS_ENDPOINT_URL"));
            url.map(|url| Url::parse(&url)).transpose()
        };
        match (endpoint("AWS_ENDPOINT_URL_KMS"), endpoint("AWS_ENDPOINT_URL_STS")) {
            (Ok(aws), Ok(sts)) => self.keys.set_endpoints(&Endpoints {
                aws,
                sts,
                ..Endpoints::default()
            }),
            _ => {
                // Nobody else may be asked in its place.
                self.keys.aws = None;
                self.note("AWS_ENDPOINT_URL", "it is no URL");
            }
        }
    }

    /// Static keys of a profile of the shared configuration.
    fn aws_profile(&mut self) -> Option<Credentials> {
        let mut text = |variable: &str, usual: &str| {
            let named = self.get(variable).map(PathBuf::from);
            let path = named.or_else(|| self.home(usual).filter(|path| path.exists()))?;
            self.read_text(&path)
        };
        let config = text("AWS_CONFIG_FILE", ".aws/config");
        let credentials = text("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        if config.is_none() && credentials.is_none() {
            return None;
        }
        let [config, credentials] = [config, credentials].map(Option::unwrap_or_default);
        let profile = self.get("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        match Profiles::read(config.expose(), credentials.expose()).chain(&profile) {
            Ok(chain) if chain.roles.is_empty() => match chain.base {
                Base::Keys(keys) => return Some(keys),
                _ => self.note("AWS", &format!("the profile {profile} has no keys of its own")),
            },
            Ok(_) => self.note("AWS", &format!("the profile {profile} has no keys of its own")),
            Err(error) => self.note("AWS", &error.to_string()),
        }
        None
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
        let found = Client::of_variables(|name| self.get(name), |file| read_text(Path::new(file)));
        match found {
            Ok(Some(client)) => self.keys.set_azure(client),
            Ok(None) => {}
            Err(error) => self.note("Azure", &error.to_string()),
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
        let server = self.get("VAULT_ADDR").map(|url| Url::parse(&url)).transpose();
        match (token, server) {
            (Some(token), Ok(server)) => {
                let token = Secret::new(token.expose().trim().to_owned());
                self.keys.set_vault(token, server);
            }
            // Without its address, the token would be for whatever server a file names.
            (Some(_), Err(_)) => self.note("VAULT_ADDR", "it is no URL"),
            (None, _) => {}
        }
    }
}

/// The text of a file, or why there is none.
fn read_text(path: &Path) -> Result<Secret<String>, String> {
    let text = read(path).and_then(|bytes| match str::from_utf8(&bytes) {
        Ok(text) => Ok(Secret::new(text.to_owned())),
        Err(_) => Err("it is no text".to_owned()),
    });
    text.map_err(|why| format!("{}: {why}", path.display()))
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
