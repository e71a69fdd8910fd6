//! Google Cloud KMS.

use std::sync::Arc;

use api::Secret;
use base64::{Engine, prelude::BASE64_STANDARD};
use cloud::{Ambient, gcp::Credentials, http::Client};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

use super::{
    CloudLogin, OpenError,
    service::{bearer, failed, post, text},
};

const SERVER: &str = "https://cloudkms.googleapis.com/";

/// Credentials, and the address that replaces the service's.
#[derive(Debug, Clone)]
pub(super) struct Gcp {
    pub(super) access: Access,
    pub(super) endpoint: Option<Url>,
}

#[derive(Debug, Clone)]
pub(super) enum Access {
    Credentials(Credentials),
    Ambient(Arc<Ambient>),
    Login(Arc<CloudLogin>),
}

/// Returns true for `projects/P/locations/L/keyRings/R/cryptoKeys/K` with valid names.
fn is_resource(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let names = ["projects", "locations", "keyRings", "cryptoKeys"];
    let plain = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        !part.is_empty() && part != "." && part != ".." && part.chars().all(known)
    };
    parts.len() == 8
        && parts.chunks(2).zip(names).all(|(pair, name)| {
            let [kind, value] = pair else { return false };
            *kind == name && plain(value)
        })
}

impl Gcp {
    pub(super) async fn open(
        &self,
        http: &Client,
        resource: &str,
        enc: &str,
    ) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        if !is_resource(resource) {
            return Err(OpenError::InvalidMaster("it is no name of a key of Google Cloud"));
        }
        BASE64_STANDARD
            .decode(enc)
            .map_err(|_| OpenError::InvalidCiphertext("its encrypted key is not base64"))?;
        let token = self.token(http).await?;
        let server = self.endpoint.as_ref().map_or(SERVER, Url::as_str);
        let url = Url::parse(&format!("{server}v1/{resource}:decrypt"))
            .map_err(|_| OpenError::InvalidMaster("it makes no address"))?;
        let authorization = bearer(&token);
        let body = json!({"ciphertext": enc});
        let answer = post(http, &url, ("authorization", &authorization), &body).await?;
        let key = BASE64_STANDARD.decode(&*text(&answer, "/plaintext")?);
        key.map(Zeroizing::new)
            .map_err(|_| OpenError::InvalidAnswer("the service's key is not base64"))
    }

    pub(super) async fn token(&self, http: &Client) -> Result<Secret<String>, OpenError> {
        let token = match &self.access {
            Access::Ambient(ambient) => ambient.gcp_for_sops(http).await,
            Access::Credentials(credentials) => credentials.token(http).await,
            Access::Login(login) => return login.gcp(http).await,
        };
        Ok(token.map_err(failed)?.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_plain_names() {
        assert!(is_resource("projects/p/locations/global/keyRings/r/cryptoKeys/k"));
        for text in [
            "",
            "projects/p/locations/l/keyRings/r/cryptoKeys/..",
            "projects/p/locations/l/keyRings/r/cryptoKeys/k?x",
            "projects/p/locations/l/keyRings/r/cryptoKeys/k/x",
            "projects/p/locations/l/keyRings/r/keys/k",
        ] {
            assert!(!is_resource(text), "{text}");
        }
    }
}
