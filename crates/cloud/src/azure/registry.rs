//! Azure Container Registry: a refresh token of a registry for an access token of Entra ID.

use api::Secret;
use url::Url;

use crate::{Error, Token, TokenRequest, http::Client, token::shortened};

const SERVICE: &str = "Azure Container Registry";

const REGISTRIES: &[(&str, &str)] = &[
    (".azurecr.io", "https://management.azure.com/.default"),
    (".azurecr.cn", "https://management.chinacloudapi.cn/.default"),
    (".azurecr.us", "https://management.usgovcloudapi.net/.default"),
];

#[must_use]
pub fn registry_scope(host: &str) -> Option<&'static str> {
    let (_, scope) = REGISTRIES.iter().find(|(end, _)| host.ends_with(end))?;
    Some(scope)
}

/// Exchanges an access token for a registry's refresh token, which gives tokens for its repositories for three hours.
pub async fn registry_token(client: &Client, host: &str, token: &Token) -> Result<Secret<String>, Error> {
    let invalid = || Error::Endpoint {
        url: api::redact(host),
        why: "it is no registry of Azure",
    };
    registry_scope(host).ok_or_else(invalid)?;
    let url = Url::parse(&format!("https://{host}/oauth2/exchange")).map_err(|_| invalid())?;
    let form = TokenRequest::new(
        url,
        &[
            ("grant_type", "access_token"),
            ("service", host),
            ("access_token", token.access.expose()),
        ],
    );
    let answer = client.form(&form, &[]).await?;
    refresh_token(&answer.body)
}

fn refresh_token(body: &[u8]) -> Result<Secret<String>, Error> {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |path: &str| answer.pointer(path).and_then(serde_json::Value::as_str);
    let token = text("/refresh_token").filter(|token| !token.is_empty());
    token.map(|token| Secret::new(token.to_owned())).ok_or_else(|| {
        let why = text("/errors/0/message");
        Error::Refused {
            service: SERVICE,
            why: shortened(why.unwrap_or("it gives no token")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_to_registries_of_azure_alone() {
        for (host, expected) in [
            ("shop.azurecr.io", Some("https://management.azure.com/.default")),
            (
                "shop.azurecr.cn",
                Some("https://management.chinacloudapi.cn/.default"),
            ),
            ("shop.azurecr.io:8443", None),
            ("azurecr.io.evil.test", None),
            ("evilazurecr.io", None),
        ] {
            assert_eq!(registry_scope(host), expected, "{host}");
        }
    }

    #[test]
    fn answers_are_a_token_or_say_why_not() {
        assert_eq!(refresh_token(br#"{"refresh_token":"t"}"#).unwrap().expose(), "t");
        let error = refresh_token(br#"{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}"#);
        assert!(error.unwrap_err().to_string().ends_with("who are you?"));
        assert!(refresh_token(b"<html>").is_err());
    }
}
