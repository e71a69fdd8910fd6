//! An application in a Secret: YAML or JSON, as the az program and Flux write it.

use api::Secret;
use cloud::azure::{Client, Proof};
use tree::Budget;
use url::Url;
use yaml::Value;

use crate::Error;

const WHAT: &str = "sops.azure-kv";

pub(in crate::keys) fn parse(text: &[u8]) -> Result<Client, Error> {
    let wrong = |why: &str| Error::key(WHAT, why);
    // The parser's message may repeat a word of the secret. It reads UTF-16 with its mark, too.
    let document = yaml::read::goyaml(text, &Budget::default()).map_err(|_| wrong("it is no YAML"))?;
    let field = |names: &[&str]| {
        let texts = names
            .iter()
            .filter_map(|name| document.value.get(name).and_then(Value::as_str));
        texts.map(str::to_owned).find(|text| !text.is_empty())
    };
    let tenant = field(&["tenantId", "tenant"]);
    let (Some(tenant), Some(client_id)) = (tenant, field(&["clientId", "appId"])) else {
        return Err(wrong(
            "it needs tenantId and clientId; identities of machines are not asked for",
        ));
    };
    let proof = if let Some(secret) = field(&["clientSecret", "password"]) {
        Proof::Secret(Secret::new(secret))
    } else if let Some(certificate) = field(&["clientCertificate"]) {
        if field(&["clientCertificatePassword"]).is_some() {
            return Err(wrong(
                "clientCertificatePassword is not supported: give the key without one",
            ));
        }
        if document
            .value
            .get("clientCertificateSendChain")
            .and_then(Value::as_bool)
            == Some(true)
        {
            return Err(wrong("clientCertificateSendChain is not supported"));
        }
        Proof::Certificate(Secret::new(certificate))
    } else {
        return Err(wrong("it needs clientSecret or clientCertificate"));
    };
    let authority = match field(&["authorityHost", "activeDirectoryEndpointUrl"]) {
        Some(url) => {
            let url = Url::parse(&url).ok().filter(|url| url.scheme() == "https");
            Some(url.ok_or_else(|| wrong("authorityHost is no URL of https"))?)
        }
        None => None,
    };
    Ok(Client {
        tenant,
        client_id,
        proof,
        authority,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_written_in_several_ways() {
        let found =
            parse(b"tenantId: t\nclientId: c\nclientSecret: s\nauthorityHost: https://login.example/\n")
                .unwrap();
        assert!(matches!(&found.proof, Proof::Secret(secret) if secret.expose() == "s"));
        assert_eq!(found.authority.unwrap().as_str(), "https://login.example/");
        let text = "\u{feff}{\"appId\": \"c\", \"tenant\": \"t\", \"password\": \"p\"}";
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(parse(&wide).unwrap().tenant, "t");
        let found = parse(b"tenantId: t\nclientId: c\nclientCertificate: |\n  pem\n").unwrap();
        assert!(matches!(found.proof, Proof::Certificate(_)));
        for text in [
            "clientId: hunter2",
            "tenantId: t\nclientId: hunter2",
            "hunter2",
            "hunter2: [",
            "tenantId: t\nclientId: c\nclientCertificate: hunter2\nclientCertificatePassword: x",
            "tenantId: t\nclientId: c\nclientSecret: hunter2\nauthorityHost: http://x",
        ] {
            let message = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(
                message.starts_with("sops.azure-kv: ") && !message.contains("hunter2"),
                "{message}"
            );
        }
    }
}
