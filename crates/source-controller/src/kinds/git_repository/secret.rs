//! Credentials and certificates, read live from the Secret that the object names.

use std::collections::BTreeMap;

use api::{Fault, Reason, Secret as Masked, source::GitRepository};
use git::{Auth, Remote};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Api;

use super::spec;

type Data = BTreeMap<String, ByteString>;

/// Keys that ask for what is not obeyed yet. Leaving them out silently could mean less security than was asked for.
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

/// The repository with what its Secret holds.
pub(super) async fn remote(
    client: &kube::Client,
    object: &GitRepository,
    namespace: &str,
) -> Result<Remote, Fault> {
    let remote = spec::remote(&object.spec)?;
    let Some(reference) = &object.spec.secret_ref else {
        return Ok(remote);
    };
    let name = format!("{namespace}/{}", reference.name);
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = api.get(&reference.name).await.map_err(|error| {
        let why = runtime::client::describe(&error);
        Fault::retry(
            Reason::AuthenticationFailed,
            format!("failed to get secret '{name}': {why}"),
        )
    })?;
    apply(remote, &secret.data.unwrap_or_default(), &name)
}

/// Gives the repository what the Secret holds.
fn apply(mut remote: Remote, data: &Data, name: &str) -> Result<Remote, Fault> {
    if let Some((key, what)) = UNSUPPORTED.iter().find(|(key, _)| data.contains_key(*key)) {
        let message =
            format!("secret '{name}': {key}: {what} is not supported yet: use username and password");
        return Err(Fault::retry(Reason::UnsupportedField, message));
    }
    let invalid = |why: &str| {
        let message = format!("failed to configure authentication options: secret '{name}': {why}");
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    let text = |key: &str| match data.get(key) {
        None => Ok(None),
        Some(ByteString(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
            Err(_) => Err(invalid(&format!("{key} is not UTF-8"))),
        },
    };
    match (text("username")?, text("password")?) {
        (Some(username), password) => {
            let password = Masked::new(password.unwrap_or_default());
            remote = remote.with_auth(Auth { username, password });
        }
        (None, Some(_)) => return Err(invalid("a password needs a username")),
        (None, None) => {}
    }
    let ca = data.get("ca.crt").or_else(|| data.get("caFile"));
    Ok(match ca {
        Some(ByteString(pem)) => remote.with_ca(pem.clone()),
        None => remote,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply_to(pairs: &[(&str, &str)]) -> Result<Remote, Fault> {
        let data = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        apply(Remote::new("https://u:p@h/r").unwrap(), &data.collect(), "ns/s")
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
    fn credentials_of_the_secret_win_over_those_of_the_url() {
        let remote = apply_to(&[("username", "me"), ("password", "pw"), ("other", "x")]).unwrap();
        assert_eq!(auth(&remote), pair("me", "pw"));
        assert_eq!(auth(&apply_to(&[("username", "me")]).unwrap()), pair("me", ""));
        assert_eq!(
            auth(&apply_to(&[("ca.crt", "x"), ("caFile", "y")]).unwrap()),
            pair("u", "p")
        );
    }

    #[test]
    fn what_is_not_obeyed_is_refused_by_name() {
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
    fn half_a_credential_is_an_error() {
        let fault = apply_to(&[("password", "canary")]).unwrap_err();
        assert_eq!(
            fault.message,
            "failed to configure authentication options: secret 'ns/s': a password needs a username"
        );
        let data = Data::from([("username".to_owned(), ByteString(vec![0xff]))]);
        let fault = apply(Remote::new("https://h/r").unwrap(), &data, "ns/s").unwrap_err();
        assert!(fault.message.ends_with("username is not UTF-8"), "{fault}");
    }
}
