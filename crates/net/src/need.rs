//! Demands of servers that users can meet.

/// Something that a server demands and a user can give. Errors carry it, and each program says how to give it: a controller names
/// the field of a resource, the command line a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// Credentials, as none were given.
    Credentials,
    /// Other credentials, as those given were refused.
    OtherCredentials,
    /// A CA bundle that verifies the certificate of the server.
    CaBundle,
    /// A CA bundle in PEM format, as the given one has no certificate.
    ValidCaBundle,
    /// A client certificate.
    ClientCertificate,
    /// A client certificate and its key in PEM format, as the given ones are not.
    ValidClientCertificate,
    /// An SSH key, as none was given.
    SshKey,
    /// Another SSH key, as the server accepts none of the given ones.
    OtherSshKey,
    /// The host key of an SSH server, as none is known.
    HostKey,
    /// Another host key of an SSH server, as it has none of the known ones.
    OtherHostKey,
    /// A longer timeout.
    LongerTimeout,
    /// Fewer requests.
    FewerRequests,
}

impl Need {
    /// Returns what the message of a TLS error says is missing; `None` if nothing that the client is given would help.
    #[must_use]
    pub fn of_tls(why: &str) -> Option<Self> {
        let lower = why.to_ascii_lowercase().replace(' ', "");
        if lower.contains("certificaterequired") {
            Some(Self::ClientCertificate)
        // The second one is of a CA that was made anew under its old name.
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
