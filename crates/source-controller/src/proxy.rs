//! The proxy from the Secret of `spec.proxySecretRef`. Pure.

use api::{Fault, Reason, SafeUrl, Secret};
use net::{InvalidProxy, Proxy};
use runtime::secret::SecretData;

/// Returns the proxy in the keys `address`, `username` and `password` of a Secret. Messages of faults start with `failed`. Fails when the
/// address is missing, has credentials, or is not a proxy's.
pub(crate) fn read(secret: &SecretData, failed: &str) -> Result<Proxy, Fault> {
    let invalid = |reason: Reason, why: &str| {
        let name = secret.name();
        Fault::retry(reason, format!("{failed}: secret '{name}': {why}"))
    };
    let refused = |why: &str| invalid(Reason::AuthenticationFailed, why);
    let string = |key: &str| {
        let found = secret.string(key);
        found.map_err(|_| refused(&format!("{key} is not UTF-8")))
    };
    let address = string("address")?.ok_or_else(|| refused("key 'address' not found"))?;
    let (username, password) = (string("username")?, string("password")?);
    let proxy = Proxy::parse(&address, username.as_deref(), password.map(Secret::new));
    let proxy = proxy.map_err(|error| match error {
        InvalidProxy::Scheme => match SafeUrl::parse(address.trim()) {
            Ok(url) => {
                let why =
                    format!("address: the proxy '{url}' is not supported: only http, https and socks5 are");
                invalid(Reason::UnsupportedField, &why)
            }
            Err(_) => refused(&InvalidProxy::NoUrl.to_string()),
        },
        error => refused(&error.to_string()),
    })?;
    if username.is_none() && proxy.auth.is_some() {
        return Err(refused(
            "address: name the user with the keys 'username' and 'password'",
        ));
    }
    Ok(proxy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(pairs: &[(&str, &str)]) -> Result<Proxy, Fault> {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        read(&SecretData::of("ns/p", &pairs), "failed")
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
                vec![("address", "socks4://proxy:1080")],
                "only http, https and socks5 are",
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
            assert!(fault.message.starts_with("failed: secret 'ns/p': "), "{fault}");
            assert!(
                fault.message.contains(expected) && !fault.message.contains("canary"),
                "{fault}"
            );
        }
    }
}
