//! The proxy from the Secret of `spec.proxySecretRef`. Pure.

use api::{Fault, Reason, SafeUrl, Secret};
use net::Proxy;

use crate::secret::SecretData;

/// Longest address of a proxy, in bytes.
const MAX_ADDRESS: usize = 2048;

/// Returns the proxy that a Secret names with the keys `address`, `username` and `password`.
pub(in crate::kinds) fn read(secret: &SecretData) -> Result<Proxy, Fault> {
    let invalid = |reason: Reason, why: &str| {
        let name = secret.name();
        let message = format!("failed to configure proxy options: secret '{name}': {why}");
        Fault::retry(reason, message)
    };
    let refused = |why: &str| invalid(Reason::AuthenticationFailed, why);
    let address = secret
        .string("address")
        .map_err(|_| refused("address is not UTF-8"))?;
    let address = address.ok_or_else(|| refused("key 'address' not found"))?;
    if address.len() > MAX_ADDRESS {
        return Err(refused("address is longer than 2048 bytes"));
    }
    let url = SafeUrl::parse(address.trim()).map_err(|_| refused("address is not the URL of a proxy"))?;
    if !matches!(url.scheme(), "http" | "https") {
        let why = format!("address: the proxy '{url}' is not supported: only http and https are");
        return Err(invalid(Reason::UnsupportedField, &why));
    }
    let mut url = url.into_inner();
    let username = secret
        .string("username")
        .map_err(|_| refused("username is not UTF-8"))?;
    let password = secret
        .string("password")
        .map_err(|_| refused("password is not UTF-8"))?;
    let auth = match (username, password) {
        (Some(username), password) => Some((username, Secret::new(password.unwrap_or_default()))),
        (None, Some(_)) => return Err(refused("a password needs a username")),
        (None, None) if !url.username().is_empty() => {
            return Err(refused(
                "address: name the user with the keys 'username' and 'password'",
            ));
        }
        (None, None) => None,
    };
    // Neither can fail: the URL has a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(Proxy { url, auth })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(pairs: &[(&str, &str)]) -> Result<Proxy, Fault> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        read(&SecretData::of("ns/p", &pairs))
    }

    #[test]
    fn proxy_has_an_address_and_credentials() {
        let found = proxy(&[("address", "http://proxy:3128")]).unwrap();
        assert_eq!((found.url.as_str(), found.auth), ("http://proxy:3128/", None));
        let found = proxy(&[
            ("address", "https://x:y@proxy"),
            ("username", "u"),
            ("password", "p"),
        ])
        .unwrap();
        assert_eq!(found.url.as_str(), "https://proxy/");
        assert_eq!(found.auth, Some(("u".to_owned(), Secret::new("p".to_owned()))));
    }

    #[test]
    fn invalid_proxies_are_refused_without_their_credentials() {
        let long = format!("http://{}", "x".repeat(2048));
        for (pairs, expected) in [
            (vec![], "secret 'ns/p': key 'address' not found"),
            (vec![("address", "proxy:canary")], "secret 'ns/p'"),
            (
                vec![("address", "socks5://proxy:1080")],
                "only http and https are",
            ),
            (
                vec![("address", "http://u:canary@proxy")],
                "the keys 'username' and 'password'",
            ),
            (
                vec![("address", "http://proxy"), ("password", "canary")],
                "a password needs a username",
            ),
            (vec![("address", long.as_str())], "longer than 2048 bytes"),
        ] {
            let fault = proxy(&pairs).unwrap_err();
            assert!(
                fault
                    .message
                    .starts_with("failed to configure proxy options: secret 'ns/p': "),
                "{fault}"
            );
            assert!(
                fault.message.contains(expected) && !fault.message.contains("canary"),
                "{fault}"
            );
        }
    }
}
