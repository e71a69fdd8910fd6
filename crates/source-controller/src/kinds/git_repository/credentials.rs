//! Credentials and certificates from the Secret of a GitRepository. Pure.

use api::Fault;
use git::{Auth, Remote};

use crate::secret::{BasicAuth, SecretData};

/// Keys of the Secret that are not supported yet.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("bearerToken", "a bearer token"),
    ("identity", "an SSH key"),
    ("tls.crt", "a client certificate"),
    ("tls.key", "a client certificate"),
    ("certFile", "a client certificate"),
    ("keyFile", "a client certificate"),
    ("githubAppID", "a GitHub App"),
    ("githubAppClientID", "a GitHub App"),
];

/// Returns the repository with the credentials and certificates of the Secret.
pub(super) fn add(mut remote: Remote, secret: &SecretData) -> Result<Remote, Fault> {
    secret.refuse(UNSUPPORTED, "username and password")?;
    if let Some(BasicAuth { username, password }) = secret.basic_auth()? {
        remote = remote.with_auth(Auth { username, password });
    }
    Ok(match secret.ca() {
        Some(pem) => remote.with_ca(pem.to_vec()),
        None => remote,
    })
}

#[cfg(test)]
mod tests {
    use api::Reason;

    use super::*;

    fn apply_to(pairs: &[(&str, &str)]) -> Result<Remote, Fault> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        add(
            Remote::new("https://u:p@h/r").unwrap(),
            &SecretData::of("ns/s", &pairs),
        )
    }

    fn auth(remote: &Remote) -> Option<(String, String)> {
        remote
            .auth()
            .map(|auth| (auth.username.clone(), auth.password.expose().clone()))
    }

    fn pair(name: &str, password: &str) -> Option<(String, String)> {
        Some((name.to_owned(), password.to_owned()))
    }

    #[test]
    fn credentials_of_the_secret_override_those_of_the_url() {
        let remote = apply_to(&[("username", "me"), ("password", "pw"), ("other", "x")]).unwrap();
        assert_eq!(auth(&remote), pair("me", "pw"));
        assert_eq!(auth(&apply_to(&[("username", "me")]).unwrap()), pair("me", ""));
        assert_eq!(
            auth(&apply_to(&[("ca.crt", "x"), ("caFile", "y")]).unwrap()),
            pair("u", "p")
        );
    }

    #[test]
    fn unsupported_keys_are_refused_by_name() {
        for (key, _) in UNSUPPORTED {
            let fault = apply_to(&[("username", "me"), ("password", "canary"), (key, "canary")]).unwrap_err();
            assert_eq!(fault.reason, Reason::UnsupportedField);
            assert!(
                fault.message.contains(key) && !fault.message.contains("canary"),
                "{fault}"
            );
        }
    }

    #[test]
    fn incomplete_credentials_are_refused() {
        let fault = apply_to(&[("password", "canary")]).unwrap_err();
        assert_eq!(
            fault.message,
            "failed to configure authentication options: secret 'ns/s': a password needs a username"
        );
        let secret = SecretData::of("ns/s", &[("username", &[0xff])]);
        let fault = add(Remote::new("https://h/r").unwrap(), &secret).unwrap_err();
        assert!(fault.message.ends_with("username is not UTF-8"), "{fault}");
    }
}
