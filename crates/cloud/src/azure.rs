//! Azure: access tokens for applications of Entra ID.

mod registry;

pub use registry::{registry_scope, registry_token};

use api::Secret;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::json;
use sha1::{Digest, Sha1};
use url::Url;

use crate::{Error, Token, TokenRequest, http, jwt};

pub const AUTHORITY: &str = "https://login.microsoftonline.com/";

pub const VAULT_SCOPE: &str = "https://vault.azure.net/.default";

pub const STORAGE_SCOPE: &str = "https://storage.azure.com/.default";

pub const DEVOPS_SCOPE: &str = "499b84ac-1321-427f-aa17-267ca6975798/.default";

pub const EVENT_HUBS_SCOPE: &str = "https://eventhubs.azure.net/.default";

#[must_use]
pub fn is_event_hub(url: &Url) -> bool {
    const DOMAINS: [&str; 3] = ["windows.net", "chinacloudapi.cn", "usgovcloudapi.net"];
    let is_host = |host: &str| {
        let domain = host.split_once(".servicebus.").map(|(_, domain)| domain);
        domain.is_some_and(|domain| DOMAINS.contains(&domain))
    };
    url.scheme() == "https" && url.host_str().is_some_and(is_host)
}

/// Returns true if a URL leads to Azure DevOps, which may get tokens of workloads.
#[must_use]
pub fn is_devops(url: &Url) -> bool {
    let is_host = |host: &str| host == "dev.azure.com" || host.ends_with(".visualstudio.com");
    url.scheme() == "https" && url.host_str().is_some_and(is_host)
}

const VAULTS: &[(&str, &str)] = &[
    (".vault.azure.net", VAULT_SCOPE),
    (".managedhsm.azure.net", "https://managedhsm.azure.net/.default"),
    (".vault.azure.cn", "https://vault.azure.cn/.default"),
    (
        ".vault.usgovcloudapi.net",
        "https://vault.usgovcloudapi.net/.default",
    ),
];

/// Returns the scope of tokens for a vault. `None` unless it has an `https` URL in a domain of Azure: another server would get
/// a token that opens other vaults.
#[must_use]
pub fn vault_scope(vault: &Url) -> Option<&'static str> {
    let host = vault.host_str().filter(|_| vault.scheme() == "https")?;
    let cloud = VAULTS.iter().find(|(end, _)| host.ends_with(end));
    cloud.map(|(_, scope)| *scope)
}

pub const SERVICE: &str = "Microsoft Entra ID";

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Lifetime of an assertion, in seconds.
const LIFETIME: i64 = 600;

#[derive(Debug, Clone)]
pub struct Client {
    pub tenant: String,
    pub client_id: String,
    pub proof: Proof,
    /// Token service; default [`AUTHORITY`].
    pub authority: Option<Url>,
}

#[derive(Debug, Clone)]
pub enum Proof {
    /// Password, sent as `client_secret`.
    Secret(Secret<String>),
    /// Certificate and its RSA key, both in one PEM string.
    Certificate(Secret<String>),
    Federated(Secret<String>),
}

impl Client {
    /// Returns the application that environment variables name, `None` if one is missing. `read` reads the file with its proof.
    ///
    /// # Errors
    /// Fails when a file cannot be read, or the authority is not a URL.
    pub fn of_variables(
        variable: impl Fn(&str) -> Option<String>,
        read: impl Fn(&str) -> Result<Secret<String>, String>,
    ) -> Result<Option<Self>, Error> {
        const WHAT: &str = "application for Azure in the environment";
        let (Some(tenant), Some(client_id)) = (variable("AZURE_TENANT_ID"), variable("AZURE_CLIENT_ID"))
        else {
            return Ok(None);
        };
        let read = |file: String| read(&file).map_err(|why| Error::credentials(WHAT, why));
        let proof = if let Some(secret) = variable("AZURE_CLIENT_SECRET") {
            Proof::Secret(Secret::new(secret))
        } else if let Some(file) = variable("AZURE_CLIENT_CERTIFICATE_PATH") {
            Proof::Certificate(read(file)?)
        } else if let Some(file) = variable("AZURE_FEDERATED_TOKEN_FILE") {
            Proof::Federated(Secret::new(read(file)?.expose().trim().to_owned()))
        } else {
            return Ok(None);
        };
        let authority = variable("AZURE_AUTHORITY_HOST").map(|text| Url::parse(&text));
        let authority = authority.transpose();
        Ok(Some(Self {
            tenant,
            client_id,
            proof,
            authority: authority
                .map_err(|_| Error::credentials(WHAT, "AZURE_AUTHORITY_HOST is not a URL"))?,
        }))
    }

    /// Asks for an access token. `id` is the ID of a certificate's assertion.
    pub async fn token(&self, client: &http::Client, scope: &str, id: &str) -> Result<Token, Error> {
        let form = self.request(scope, Timestamp::now(), id)?;
        client.token(SERVICE, &form).await
    }

    /// Returns the form to send for an access token. `id` is the ID of the assertion that a certificate signs; each needs
    /// another.
    ///
    /// # Errors
    /// Fails when the tenant, the authority, the certificate or its key is invalid.
    pub fn request(&self, scope: &str, now: Timestamp, id: &str) -> Result<TokenRequest, Error> {
        let url = self.address()?;
        let signed;
        let (kind, proof) = match &self.proof {
            Proof::Secret(secret) => ("client_secret", secret.expose()),
            Proof::Federated(token) => ("client_assertion", token.expose()),
            Proof::Certificate(pem) => {
                signed = self.assertion(pem.expose(), &url, now, id)?;
                ("client_assertion", &signed)
            }
        };
        let mut fields = vec![
            ("grant_type", "client_credentials"),
            ("client_id", self.client_id.as_str()),
            ("scope", scope),
        ];
        if kind == "client_assertion" {
            fields.push(("client_assertion_type", ASSERTION));
        }
        fields.push((kind, proof));
        Ok(TokenRequest::new(url, &fields))
    }

    fn address(&self) -> Result<Url, Error> {
        let base = self.authority.as_ref().map_or(AUTHORITY, Url::as_str);
        let wrong = |why| Error::Endpoint {
            url: api::redact(base),
            why,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if self.tenant.is_empty() || self.tenant.starts_with('.') || !self.tenant.chars().all(plain) {
            return Err(wrong("the tenant is no id and no name"));
        }
        let base = base.trim_end_matches('/');
        Url::parse(&format!("{base}/{}/oauth2/v2.0/token", self.tenant)).map_err(|_| wrong("it is no URL"))
    }

    fn assertion(&self, pem: &str, url: &Url, now: Timestamp, id: &str) -> Result<String, Error> {
        const WHAT: &str = "client certificate for Azure";
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| Error::credentials(WHAT, "it holds no certificate in PEM"))?;
        let key = jwt::key(WHAT, pem)?;
        let thumb = BASE64_URL_SAFE_NO_PAD.encode(Sha1::digest(&certificate));
        let header = json!({"alg": "RS256", "typ": "JWT", "x5t": thumb});
        let issued = now.as_second();
        let claims = json!({
            "aud": url.as_str(),
            "iss": self.client_id,
            "sub": self.client_id,
            "jti": id,
            "nbf": issued,
            "exp": issued.saturating_add(LIFETIME),
        });
        jwt::signed(WHAT, &header, &claims, &key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proof: Proof) -> Client {
        Client {
            tenant: "contoso.example".to_owned(),
            client_id: "app".to_owned(),
            proof,
            authority: None,
        }
    }

    #[test]
    fn secrets_and_tokens_go_into_the_form() {
        let request = client(Proof::Secret("p&w".to_owned().into()))
            .request(VAULT_SCOPE, Timestamp::UNIX_EPOCH, "")
            .unwrap();
        assert_eq!(
            request.url.as_str(),
            "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/token"
        );
        assert_eq!(
            request.body.expose(),
            "grant_type=client_credentials&client_id=app&scope=https%3A%2F%2Fvault.azure.net%2F.default&client_secret=p%26w"
        );
        let federated = client(Proof::Federated("a.b".to_owned().into()));
        let request = federated.request("s", Timestamp::UNIX_EPOCH, "").unwrap();
        assert!(request.body.expose().ends_with(
            "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=a.b"
        ));
    }

    #[test]
    fn tokens_go_to_repositories_of_azure_alone() {
        for (url, expected) in [
            ("https://dev.azure.com/org/project/_git/shop", true),
            ("https://org.visualstudio.com/project/_git/shop", true),
            ("http://dev.azure.com/org/project/_git/shop", false),
            ("https://dev.azure.com.evil.test/org", false),
            ("https://github.com/org/shop", false),
        ] {
            assert_eq!(is_devops(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn tokens_go_to_vaults_of_azure_alone() {
        for (vault, found) in [
            ("https://v.vault.azure.net", true),
            ("https://v.vault.azure.net:443/", true),
            ("https://hsm.managedhsm.azure.net", true),
            ("http://v.vault.azure.net", false),
            ("https://vault.azure.net.evil.example", false),
            ("https://evilvault.azure.net", false),
        ] {
            assert_eq!(
                vault_scope(&Url::parse(vault).unwrap()).is_some(),
                found,
                "{vault}"
            );
        }
    }

    #[test]
    fn certificates_sign_an_assertion() {
        let pem = [
            include_str!("../fixtures/rsa.pem"),
            include_str!("../fixtures/rsa.crt"),
        ]
        .concat();
        let client = client(Proof::Certificate(pem.into()));
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let request = client.request("s", now, "id").unwrap();
        let assertion = request.body.expose().rsplit_once('=').unwrap().1;
        assert_eq!(assertion, include_str!("../fixtures/azure.assertion").trim());
    }

    #[test]
    fn the_environment_names_an_application() {
        let all = [
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_FEDERATED_TOKEN_FILE", "token"),
            ("AZURE_CLIENT_CERTIFICATE_PATH", "pem"),
            ("AZURE_CLIENT_SECRET", "s"),
        ];
        let found = |given: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = given.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Client::of_variables(variable, |file| match file {
                "gone" => Err("gone: no such file".to_owned()),
                file => Ok(Secret::new(format!("{file}\n"))),
            })
        };
        for (count, expected) in [(2, None), (3, Some("token")), (4, Some("pem\n")), (5, Some("s"))] {
            let proof = found(&all[..count]).unwrap().map(|client| match client.proof {
                Proof::Secret(text) | Proof::Certificate(text) | Proof::Federated(text) => text.into_inner(),
            });
            assert_eq!(proof.as_deref(), expected);
        }
        for (name, value, why) in [
            ("AZURE_FEDERATED_TOKEN_FILE", "gone", "gone: no such file"),
            (
                "AZURE_AUTHORITY_HOST",
                "login",
                "AZURE_AUTHORITY_HOST is not a URL",
            ),
        ] {
            let error = found(&[&[(name, value)], &all[..3]].concat())
                .unwrap_err()
                .to_string();
            assert!(error.ends_with(why), "{error}");
        }
    }

    #[test]
    fn invalid_tenants_and_certificates_are_refused() {
        for tenant in ["", "..", "a/b", "a?b"] {
            let client = Client {
                tenant: tenant.to_owned(),
                ..client(Proof::Secret("hunter2".to_owned().into()))
            };
            let error = client.request("s", Timestamp::UNIX_EPOCH, "").unwrap_err();
            assert!(error.to_string().contains("the tenant is no id"), "{error}");
        }
        let client = client(Proof::Certificate("hunter2".to_owned().into()));
        assert_eq!(
            client
                .request("s", Timestamp::UNIX_EPOCH, "")
                .unwrap_err()
                .to_string(),
            "the client certificate for Azure cannot be used: it holds no certificate in PEM"
        );
    }
}
