//! Tokens in files, such as tokens of ServiceAccounts that a kubelet renews.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use reqwest::header::HeaderValue;

use crate::bearer_auth;

const MAX_TOKEN: u64 = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    pub path: PathBuf,
    pub flag: &'static str,
}

/// A token that can't be sent. No message contains it.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("cannot read the file of {0}: {1}")]
    Unreadable(&'static str, io::Error),
    #[error("the file of {0} has no token of at most {MAX_TOKEN} characters")]
    NoToken(&'static str),
}

impl TokenFile {
    /// Reads the token, and returns the `Authorization` header.
    ///
    /// # Errors
    /// Fails if the file can't be read, or has no token of at most 16 KiB.
    pub async fn authorization(&self) -> Result<HeaderValue, TokenFileError> {
        let path = self.path.clone();
        let text = tokio::task::spawn_blocking(move || read(&path))
            .await
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| TokenFileError::Unreadable(self.flag, error))?;
        let token = text.trim();
        let fits = !token.is_empty() && text.len() as u64 <= MAX_TOKEN;
        let value = fits.then(|| bearer_auth(token)).flatten();
        value.ok_or(TokenFileError::NoToken(self.flag))
    }
}

/// Reads a file at once: `tokio::fs` would hand each of several reads to another thread.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TOKEN + 1).read_to_string(&mut text)?;
    Ok(text)
}
