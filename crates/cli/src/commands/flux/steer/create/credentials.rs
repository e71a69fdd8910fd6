//! Credentials in flags and files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::files::read_text;

/// Maximum size of a file in a Secret: the API server takes objects of about this size.
const MAX_FILE: u64 = 1 << 20;

/// A user and a password.
#[derive(Default, Args)]
#[command(next_help_heading = "Credentials")]
pub(super) struct Login {
    /// User
    #[arg(
        short,
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) username: String,
    /// Password; for SSH keys, the one that opens the key
    #[arg(
        short,
        long,
        value_name = "PASSWORD",
        default_value = "",
        hide_default_value = true
    )]
    pub(super) password: String,
}

impl Login {
    pub(super) fn is_empty(&self) -> bool {
        self.username.is_empty() && self.password.is_empty()
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.username.is_empty() && !self.password.is_empty()
    }
}

/// Reads a text file for a Secret.
pub(super) fn read(file: &Path, what: &str) -> Result<String> {
    read_text(file, MAX_FILE).with_context(|| format!("unable to read {what} {}", file.display()))
}

pub(super) fn read_optional(file: Option<&Path>, what: &str) -> Result<Option<String>> {
    file.map(|file| read(file, what)).transpose()
}

/// Files of a certificate.
#[derive(Args)]
#[command(next_help_heading = "Certificates")]
pub(super) struct CertificateFlags {
    /// Certificate of the client, as PEM
    #[arg(long, value_name = "FILE")]
    pub(super) tls_crt_file: Option<PathBuf>,
    /// Key of the client's certificate, as PEM
    #[arg(long, value_name = "FILE")]
    pub(super) tls_key_file: Option<PathBuf>,
    /// Certificates of the authorities that sign the server's certificate, as PEM
    #[arg(long, value_name = "FILE")]
    pub(super) ca_crt_file: Option<PathBuf>,
}
