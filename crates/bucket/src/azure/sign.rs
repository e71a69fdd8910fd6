//! Signatures by the key of a storage account. Pure.

use std::collections::BTreeMap;

use api::Secret;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use url::Url;

use crate::http::Headers;

#[derive(Debug, Clone)]
pub struct AccountKey {
    account: String,
    key: Secret<Vec<u8>>,
}

impl AccountKey {
    #[must_use]
    pub fn new(account: &str, key: &str) -> Option<Self> {
        let key = BASE64_STANDARD.decode(key.trim()).ok()?;
        Some(Self {
            account: account.to_owned(),
            key: Secret::new(key),
        })
    }

    /// Returns the `Authorization` header of a request without a body. `headers` begin with `x-ms-`.
    pub(super) fn authorization(
        &self,
        method: &str,
        url: &Url,
        query: &[(&str, &str)],
        headers: &Headers,
    ) -> Secret<String> {
        let mut signed = Vec::new();
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(self.key.expose()) {
            mac.update(self.text(method, url, query, headers).as_bytes());
            signed = mac.finalize().into_bytes().to_vec();
        }
        let signature = BASE64_STANDARD.encode(signed);
        Secret::new(format!("SharedKey {}:{signature}", self.account))
    }

    /// Returns the string to sign: the method, eleven headers that no request has, Azure's headers, and the resource.
    fn text(&self, method: &str, url: &Url, query: &[(&str, &str)], headers: &Headers) -> String {
        let headers: BTreeMap<&str, &str> = headers
            .iter()
            .map(|(name, value)| (*name, value.expose().as_str()))
            .collect();
        let headers: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let query: BTreeMap<&str, &str> = query.iter().copied().collect();
        let query: String = query
            .iter()
            .map(|(name, value)| format!("\n{name}:{value}"))
            .collect();
        format!(
            "{method}{}{headers}/{}{}{query}",
            "\n".repeat(12),
            self.account,
            url.path()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_to_sign_have_headers_and_resource_in_their_order() {
        let key = AccountKey::new("myaccount", "a2V5").unwrap();
        let url = Url::parse("https://myaccount.blob.core.windows.net/c/a%20b?restype=container").unwrap();
        let headers = vec![
            ("x-ms-version", Secret::new("2021-12-02".to_owned())),
            (
                "x-ms-date",
                Secret::new("Fri, 26 Jun 2015 23:39:12 GMT".to_owned()),
            ),
        ];
        let query = [("restype", "container"), ("comp", "list")];
        assert_eq!(
            key.text("GET", &url, &query, &headers),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2021-12-02\n\
             /myaccount/c/a%20b\ncomp:list\nrestype:container"
        );
        assert!(!format!("{key:?}").contains("key\""));
        assert!(AccountKey::new("a", "no base64!").is_none());
    }

    #[test]
    fn signatures_are_those_of_another_implementation() {
        let key = AccountKey::new("myaccount", "a2V5").unwrap();
        let url = Url::parse("https://myaccount.blob.core.windows.net/c/b").unwrap();
        let headers = vec![("x-ms-version", Secret::new("2021-12-02".to_owned()))];
        let found = key.authorization("GET", &url, &[], &headers);
        assert_eq!(
            found.expose(),
            "SharedKey myaccount:HpUSPYJKTTaYU8zkqtyFyx/cZJGTqgbd7Aa/+3oczg8="
        );
    }
}
