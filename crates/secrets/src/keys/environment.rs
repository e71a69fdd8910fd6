//! Keys of the current user, from the files and variables that sops reads, except agents and programs.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use api::Secret;
use cloud::Ambient;
use url::Url;
use zeroize::Zeroizing;

use super::Keys;
use crate::Error;

const MAX_FILE: u64 = 1 << 20;

struct Search {
    ambient: Arc<Ambient>,
    keys: Keys,
}

impl Keys {
    /// Finds the keys that sops would use: age identities and SSH keys, the secret keyring of gpg, and the token of Vault.
    /// [`Ambient`] finds the credentials of clouds when a file needs them. Problems are reported only when no key opens a file,
    /// as other keys may do.
    #[must_use]
    pub fn from_environment(ambient: Ambient) -> Self {
        let mut search = Search {
            ambient: Arc::new(ambient),
            keys: Self::new(),
        };
        search.age();
        search.ssh();
        search.pgp();
        search.vault();
        search.keys.ambient = Some(search.ambient);
        search.keys
    }
}

impl Search {
    fn get(&self, name: &str) -> Option<String> {
        self.ambient.get(name).map(str::to_owned)
    }

    fn home(&self, path: &str) -> Option<PathBuf> {
        self.ambient.home(path)
    }

    fn note(&mut self, origin: &str, why: &str) {
        self.keys.notes.push(format!("{origin}: {why}"));
    }

    fn check(&mut self, origin: &str, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.note(origin, &error.to_string());
        }
    }

    /// Reads a file. `None`, with a note, if it is missing or unreadable.
    fn read(&mut self, path: &Path) -> Option<Zeroizing<Vec<u8>>> {
        match read(path) {
            Ok(bytes) => Some(bytes),
            Err(why) => {
                self.note(&path.display().to_string(), &why.to_string());
                None
            }
        }
    }

    fn read_text(&mut self, path: &Path) -> Option<Secret<String>> {
        match read_text(path) {
            Ok(text) => Some(text),
            Err(why) => {
                self.note(&path.display().to_string(), &why.to_string());
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

    /// Reads the keyring that sops reads itself; the newer one belongs to gpg's agent.
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
            // Without the address, the token would be sent to any server in a file.
            (Some(_), Err(_)) => self.note("VAULT_ADDR", "it is not a URL"),
            (None, _) => {}
        }
    }
}

/// Failure to read a file of keys. Messages follow the path.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("no such file")]
    NotFound,
    #[error("{0}")]
    Io(std::io::Error),
    #[error("it is larger than 1 MiB, so it is no file of keys")]
    TooLarge,
    #[error("it is not UTF-8")]
    NotUtf8,
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound,
            _ => Self::Io(error),
        }
    }
}

fn read_text(path: &Path) -> Result<Secret<String>, FileError> {
    match str::from_utf8(&read(path)?) {
        Ok(text) => Ok(Secret::new(text.to_owned())),
        Err(_) => Err(FileError::NotUtf8),
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, FileError> {
    let file = File::open(path)?;
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(FileError::TooLarge);
    }
    Ok(bytes)
}
