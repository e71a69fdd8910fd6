//! The transit engine of HashiCorp Vault and OpenBao.

use api::Secret;
use base64::{Engine, prelude::BASE64_STANDARD};
use cloud::http::Client;
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::{
    OpenError,
    service::{post, text},
};

/// A token, and the only server that it is sent to, if that is known.
#[derive(Debug, Clone)]
pub(super) struct Vault {
    pub(super) token: Secret<String>,
    pub(super) server: Option<Url>,
}

impl Vault {
    pub(super) async fn open(
        &self,
        http: &Client,
        (address, engine, name): (&str, &str, &str),
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let url = decrypt_url(address, engine, name)
            .ok_or(OpenError::InvalidMaster("its address is none of a transit key"))?;
        // The author of a file chooses the address in it.
        if let Some(server) = &self.server
            && server.origin() != url.origin()
        {
            return Err(OpenError::Denied("the token is for another server"));
        }
        let header = ("x-vault-token", self.token.expose().trim());
        let answer = post(http, &url, header, &json!({"ciphertext": enc})).await?;
        let key = BASE64_STANDARD.decode(&*text(&answer, "/data/plaintext")?);
        key.map(Zeroizing::new)
            .map_err(|_| OpenError::InvalidAnswer("the service's key is no base64"))
    }
}

fn decrypt_url(address: &str, engine: &str, name: &str) -> Option<Url> {
    let is_name = !name.is_empty() && !name.contains('/') && !matches!(name, "." | "..");
    is_name.then(|| api_url(address, engine, &["decrypt", name]))?
}

/// Returns the URL of a path of the API, and of names below it.
pub(super) fn api_url(address: &str, path: &str, names: &[&str]) -> Option<Url> {
    let mut url = Url::parse(address).ok()?;
    if !matches!(url.scheme(), "http" | "https") || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let odd = |part: &&str| matches!(*part, "." | "..");
    if parts.iter().any(odd) {
        return None;
    }
    url.path_segments_mut()
        .ok()?
        .pop_if_empty()
        .push("v1")
        .extend(parts)
        .extend(names);
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_the_key_s_decrypt() {
        let url = |address, engine, name| decrypt_url(address, engine, name).map(String::from);
        assert_eq!(
            url("https://v:8200", "/team/transit/", "k").as_deref(),
            Some("https://v:8200/v1/team/transit/decrypt/k")
        );
        assert_eq!(
            url("https://v/x/?a#b", "t", "k?").as_deref(),
            Some("https://v/x/v1/t/decrypt/k%3F")
        );
        for (address, engine, name) in [
            ("file:///x", "t", "k"),
            ("https://u:p@v", "t", "k"),
            ("v", "t", "k"),
            ("https://v", "../sys", "k"),
            ("https://v", "t", "../k"),
            ("https://v", "t", ""),
        ] {
            assert_eq!(url(address, engine, name), None, "{address} {engine} {name}");
        }
    }
}
