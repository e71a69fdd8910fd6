//! Credentials and certificates from the Secret of a GitRepository. Pure.

use api::{Fault, Reason, Secret};
use cloud::{
    Cloud,
    aws::codecommit,
    azure,
    github::{App, Installation},
};
use git::{Auth, InvalidKey, KnownHosts, Remote, SshKey, SshLogin};
use runtime::secret::{BasicAuth, SecretData};
use source_specs::git_repository::{GITHUB, NO_APP};
use url::Url;

const APP_IDS: &[&str] = &["githubAppID", "githubAppClientID"];

pub(super) fn add(remote: Remote, secret: Option<&SecretData>) -> Result<Remote, Fault> {
    if remote.is_ssh() {
        return over_ssh(remote, secret);
    }
    match secret {
        Some(secret) => over_http(remote, secret),
        None => Ok(remote),
    }
}

pub(super) fn app(provider: Option<&str>, secret: Option<&SecretData>) -> Result<Option<App>, Fault> {
    let refused = |message: String| Fault::retry(Reason::InvalidProviderConfiguration, message);
    let is_app = secret.is_some_and(|secret| secret.bytes(APP_IDS).is_some());
    let secret = match (provider == Some(GITHUB), secret) {
        (true, Some(secret)) if is_app => secret,
        (true, _) => return Err(refused(NO_APP.to_owned())),
        (false, Some(secret)) if is_app => {
            let name = secret.name();
            let message = format!("secretRef '{name}' has github app data but provider is not set to github");
            return Err(refused(message));
        }
        (false, _) => return Ok(None),
    };
    let string = |key: &str| {
        let value = secret.string(key)?;
        Ok::<_, Fault>(
            value
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty()),
        )
    };
    let id = match string("githubAppID")? {
        Some(id) => Some(id),
        None => string("githubAppClientID")?,
    };
    let id = id.ok_or_else(|| secret.invalid("githubAppID is empty"))?;
    let installation = match (
        string("githubAppInstallationID")?,
        string("githubAppInstallationOwner")?,
    ) {
        (Some(id), None) => Installation::Id(id),
        (None, Some(owner)) => Installation::Owner(owner),
        _ => {
            let why = "set exactly one of githubAppInstallationID and githubAppInstallationOwner";
            return Err(secret.invalid(why));
        }
    };
    let key = string("githubAppPrivateKey")?;
    let key = key.ok_or_else(|| secret.invalid("githubAppPrivateKey is missing"))?;
    let base = string("githubAppBaseURL")?;
    App::new(&id, installation, Secret::new(key), base.as_deref())
        .map(Some)
        .map_err(|error| secret.invalid(&error.to_string()))
}

/// Refuses URLs of other servers than the cloud's, in the original's words.
pub(super) fn check_host(cloud: Cloud, url: &Url) -> Result<(), Fault> {
    let failed = match cloud {
        Cloud::Aws if codecommit::region(url).is_none() => "invalid AWS CodeCommit Git URL",
        Cloud::Azure if !azure::is_devops(url) => "invalid Azure DevOps Git URL",
        _ => return Ok(()),
    };
    let host = url.host_str().unwrap_or_default();
    let message = format!(
        "failed to configure authentication options: {failed}: {host}: tokens of cloud identities are sent to the servers of the cloud \
         by https only"
    );
    Err(Fault::retry(Reason::AuthenticationFailed, message))
}

fn over_http(mut remote: Remote, secret: &SecretData) -> Result<Remote, Fault> {
    let token = secret.string("bearerToken")?;
    let basic = secret.basic_auth()?;
    if token.is_some() && basic.is_some() {
        return Err(secret.invalid("basic auth and bearer token cannot be set at the same time"));
    }
    if let Some(BasicAuth { username, password }) = basic {
        remote = remote.with_auth(Auth { username, password });
    }
    if let Some(token) = token {
        if remote.url().scheme() != "https" {
            return Err(secret.invalid("a bearer token needs an https URL"));
        }
        remote = remote.with_token(Secret::new(token.trim().to_owned()));
    }
    if let Some((certificate, key)) = secret.identity()? {
        remote = remote.with_identity(certificate, &key);
    }
    Ok(match secret.ca() {
        Some(pem) => remote.with_ca(pem.to_vec()),
        None => remote,
    })
}

fn over_ssh(remote: Remote, secret: Option<&SecretData>) -> Result<Remote, Fault> {
    let required = |key: &str| {
        let message = format!(
            "failed to configure authentication options: invalid 'ssh' auth option: '{key}' is required: name a secret with it in \
             spec.secretRef"
        );
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    let present = |key: &str| {
        let bytes = secret.and_then(|secret| secret.bytes(&[key]));
        bytes
            .filter(|bytes| !bytes.is_empty())
            .ok_or_else(|| required(key))
    };
    let identity = present("identity")?;
    let known_hosts = present("known_hosts")?;
    let Some(secret) = secret else {
        return Err(required("identity"));
    };
    let password = secret.string("password")?.map(Secret::new);
    let password = password.as_ref().map(|password| password.expose().as_str());
    let name = format!("identity of secret '{}'", secret.name());
    let key = SshKey::parse(identity, password, &name).map_err(|error| match error {
        InvalidKey::Encrypted => {
            let message = format!(
                "SSH identity key is encrypted but no 'password' field was provided in the secret '{}'",
                secret.name()
            );
            Fault::retry(Reason::AuthenticationFailed, message)
        }
        error => secret.invalid(&format!("identity: {error}")),
    })?;
    let known_hosts =
        KnownHosts::parse(known_hosts).map_err(|error| secret.invalid(&format!("known_hosts: {error}")))?;
    Ok(remote.with_ssh(SshLogin {
        keys: vec![key],
        known_hosts,
        ..SshLogin::default()
    }))
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
            Some(&SecretData::of("ns/s", &pairs)),
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
    fn provider_and_secret_must_agree_about_a_github_app() {
        let of = |provider: Option<&str>, pairs: Option<&[(&str, &str)]>| {
            let pairs = pairs.map(|pairs| -> Vec<(&str, &[u8])> {
                pairs
                    .iter()
                    .map(|(key, value)| (*key, value.as_bytes()))
                    .collect()
            });
            let secret = pairs.map(|pairs| SecretData::of("ns/s", &pairs));
            app(provider, secret.as_ref())
        };
        let basic: &[(&str, &str)] = &[("username", "me")];
        let github: &[(&str, &str)] = &[("githubAppID", "1"), ("githubAppPrivateKey", "canary")];
        assert_eq!(of(None, Some(basic)).unwrap(), None);
        assert_eq!(of(Some("generic"), None).unwrap(), None);
        for pairs in [None, Some(basic)] {
            let fault = of(Some("github"), pairs).unwrap_err();
            assert_eq!(
                (fault.reason, fault.message.as_str()),
                (Reason::InvalidProviderConfiguration, NO_APP)
            );
        }
        for provider in [None, Some("generic")] {
            let fault = of(provider, Some(github)).unwrap_err();
            assert_eq!(fault.reason, Reason::InvalidProviderConfiguration);
            assert_eq!(
                fault.message,
                "secretRef 'ns/s' has github app data but provider is not set to github"
            );
        }
        let both = [
            github,
            &[
                ("githubAppInstallationID", "1"),
                ("githubAppInstallationOwner", "me"),
            ],
        ]
        .concat();
        for (pairs, expected) in [
            (github.to_vec(), "set exactly one of"),
            (both, "set exactly one of"),
            (
                [github, &[("githubAppInstallationID", "1")]].concat(),
                "Key must be a PEM encoded PKCS1 or PKCS8 key",
            ),
            (
                [github, &[("githubAppInstallationOwner", "../x")]].concat(),
                "letters, digits",
            ),
        ] {
            let fault = of(Some("github"), Some(&pairs)).unwrap_err();
            assert_eq!(fault.reason, Reason::AuthenticationFailed);
            assert!(
                fault.message.contains(expected) && !fault.message.contains("canary"),
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
        let fault = add(Remote::new("https://h/r").unwrap(), Some(&secret)).unwrap_err();
        assert!(fault.message.ends_with("username is not UTF-8"), "{fault}");
    }

    #[test]
    fn tokens_and_client_certificates_are_checked() {
        apply_to(&[("bearerToken", "t")]).unwrap();
        apply_to(&[("tls.crt", "x"), ("tls.key", "y")]).unwrap();
        apply_to(&[
            ("certFile", "x"),
            ("keyFile", "y"),
            ("identity", "of no use here"),
        ])
        .unwrap();
        for (pairs, expected) in [
            (
                &[
                    ("bearerToken", "canary"),
                    ("username", "me"),
                    ("password", "canary"),
                ][..],
                "basic auth and bearer token cannot be set at the same time",
            ),
            (&[("tls.crt", "canary")], "needs both 'tls.crt' and 'tls.key'"),
            (&[("keyFile", "canary")], "needs both 'tls.crt' and 'tls.key'"),
        ] {
            let fault = apply_to(pairs).unwrap_err();
            assert_eq!(fault.reason, Reason::AuthenticationFailed);
            assert!(
                fault.message.contains(expected) && !fault.message.contains("canary"),
                "{fault}"
            );
        }
        let secret = SecretData::of("ns/s", &[("bearerToken", b"canary")]);
        let fault = add(Remote::new("http://h/r").unwrap(), Some(&secret)).unwrap_err();
        assert!(
            fault.message.ends_with("a bearer token needs an https URL"),
            "{fault}"
        );
    }

    #[test]
    fn ssh_needs_a_key_and_known_hosts() {
        let ssh = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(key, value)| (*key, value.as_bytes()))
                .collect();
            let secret = (!pairs.is_empty()).then(|| SecretData::of("ns/s", &pairs));
            add(Remote::new("ssh://git@h/r").unwrap(), secret.as_ref())
        };
        let key = testkit::SshKeyPair::generate("-t ed25519", "").unwrap().private;
        let encrypted = testkit::SshKeyPair::generate("-t ed25519 -a 1", "canary")
            .unwrap()
            .private;
        let known = ("known_hosts", "h ssh-ed25519 AAAA");
        ssh(&[("identity", &key), ("identity.pub", "x"), known]).unwrap();
        ssh(&[("identity", &encrypted), ("password", "canary"), known]).unwrap();
        for (pairs, expected) in [
            (
                vec![],
                "options: invalid 'ssh' auth option: 'identity' is required",
            ),
            (
                vec![("username", "me"), known],
                "options: invalid 'ssh' auth option: 'identity' is required",
            ),
            (
                vec![("identity", &*key)],
                "options: invalid 'ssh' auth option: 'known_hosts' is required",
            ),
            (
                vec![("identity", &encrypted), known],
                "SSH identity key is encrypted but no 'password' field was provided in the secret 'ns/s'",
            ),
            (
                vec![("identity", &encrypted), ("password", "not the canary"), known],
                "secret 'ns/s': identity: the SSH key cannot be decrypted: wrong password",
            ),
            (
                vec![("identity", "canary"), known],
                "secret 'ns/s': identity: the SSH key cannot be read",
            ),
            (
                vec![("identity", &key), ("known_hosts", "@revoked h canary")],
                "secret 'ns/s': known_hosts: line 1: the revoked key cannot be read",
            ),
        ] {
            let fault = ssh(&pairs).unwrap_err();
            assert_eq!(fault.reason, Reason::AuthenticationFailed);
            assert!(fault.message.contains(expected), "{fault}");
            assert!(!fault.message.contains("canary"), "{fault}");
        }
    }
}
