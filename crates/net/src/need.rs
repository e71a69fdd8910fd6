//! Server requirements that users can meet.

/// A server requirement that a user can meet. Errors carry it, and each program explains how: a controller names the field
/// of a resource, the command line a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    Credentials,
    /// Other credentials: the given ones were refused.
    OtherCredentials,
    CaBundle,
    ValidCaBundle,
    ClientCertificate,
    /// A client certificate and its key in PEM format: the given ones are invalid.
    ValidClientCertificate,
    SshKey,
    /// Another SSH key: the server accepts none of the given ones.
    OtherSshKey,
    HostKey,
    /// Another host key of an SSH server: it has none of the known ones.
    OtherHostKey,
    LongerTimeout,
    FewerRequests,
}

impl Need {
    /// Returns the requirement behind a TLS error; `None` if the client's settings can't help.
    #[must_use]
    pub fn of_tls(why: &str) -> Option<Self> {
        let lower = why.to_ascii_lowercase().replace(' ', "");
        if lower.contains("certificaterequired") {
            Some(Self::ClientCertificate)
        // The second one belongs to a CA that was recreated under its old name.
        } else if lower.contains("unknownissuer") || lower.contains("badsignature") {
            Some(Self::CaBundle)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_of_tls_errors_fit_the_case() {
        for (why, expected) in [
            (
                "received fatal alert: CertificateRequired",
                Some(Need::ClientCertificate),
            ),
            ("invalid peer certificate: UnknownIssuer", Some(Need::CaBundle)),
            ("invalid peer certificate: BadSignature", Some(Need::CaBundle)),
            ("invalid peer certificate: Expired", None),
            ("invalid peer certificate: NotValidForName", None),
            ("received corrupt message of type InvalidContentType", None),
        ] {
            assert_eq!(Need::of_tls(why), expected, "{why}");
        }
    }
}
