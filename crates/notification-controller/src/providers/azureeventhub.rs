//! `azureeventhub`: the event as a message of an Azure Event Hub, over its REST interface.
//!
//! The address is a connection string with a shared key, or the name of the hub, with the namespace as channel and a token or an identity.

use std::collections::BTreeMap;

use api::{Event, Secret};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use cloud::azure;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header;
use notification_specs::provider;
use sha2::Sha256;
use url::{Url, form_urlencoded::byte_serialize};

use super::{
    generic,
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

/// Lifetime of a signature, in seconds.
const LIFETIME: i64 = 3600;
const SUFFIX: &str = ".servicebus.windows.net";
const NO_CREDENTIALS: Error = Error::Config(
    "no credentials: use a connection string with a shared key, or set the key token in the Secret of spec.secretRef",
);
const FORM: Error = Error::Config(
    "the address is not a connection string: Endpoint=sb://host/;SharedAccessKeyName=..;SharedAccessKey=..;EntityPath=hub",
);

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::AZUREEVENTHUB,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let address = config.address()?;
    let (hub, authorization) = match (address.contains("SharedAccessKey"), config.token()) {
        (true, Some(_)) => {
            return Err(Error::Config(
                "the address has a shared key, so that the Secret must have no token",
            ));
        }
        (true, None) => shared(address, jiff::Timestamp::now().as_second() + LIFETIME)?,
        (false, token) => {
            let namespace = config.required_channel()?;
            let host = match namespace.contains('.') {
                true => namespace.to_owned(),
                false => format!("{namespace}{SUFFIX}"),
            };
            let hub = hub(&host, address)?;
            let identity = config.identity_for(&hub, azure::is_event_hub)?;
            let bearer = identity.or(token.map(|token| format!("Bearer {token}")));
            (hub, bearer.ok_or(NO_CREDENTIALS)?)
        }
    };
    let url = wire::at(&hub, hub.path().split('/').chain(["messages"]))?;
    let mut request = wire::post(Secret::new(url), generic::encode(event)?);
    wire::secret_header(&mut request.headers, header::AUTHORIZATION, &authorization)?;
    Ok(vec![Step::Send(request)])
}

fn hub(host: &str, name: &str) -> Result<Url, Error> {
    let base = Url::parse(&format!("https://{host}/")).map_err(|_| FORM)?;
    wire::at(&base, [name])
}

/// Returns the hub of a connection string and a signature that ends at a time in seconds.
fn shared(text: &str, expires: i64) -> Result<(Url, String), Error> {
    let fields = text.split(';').filter_map(|field| field.split_once('='));
    let fields: BTreeMap<_, _> = fields.collect();
    let field = |name: &str| {
        fields
            .get(name)
            .copied()
            .filter(|value| !value.is_empty())
            .ok_or(FORM)
    };
    let host = field("Endpoint")?
        .strip_prefix("sb://")
        .ok_or(FORM)?
        .trim_end_matches('/');
    let (name, key) = (field("SharedAccessKeyName")?, field("SharedAccessKey")?);
    let hub = hub(host, field("EntityPath")?)?;
    let escaped = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let resource = escaped(hub.as_str());
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).map_err(|_| FORM)?;
    mac.update(format!("{resource}\n{expires}").as_bytes());
    let signature = escaped(&STANDARD.encode(mac.finalize().into_bytes()));
    let name = escaped(name);
    let token = format!("SharedAccessSignature sr={resource}&sig={signature}&se={expires}&skn={name}");
    Ok((hub, token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{event, only, with};

    const TEXT: &str = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=s3cret=;EntityPath=hub";

    #[test]
    fn azureeventhub_message_is_signed_with_the_shared_key() {
        let (hub, signature) = shared(TEXT, 1_795_255_200).unwrap();
        assert_eq!(hub.as_str(), "https://ns.servicebus.windows.net/hub");
        let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret=").unwrap();
        mac.update(b"https%3A%2F%2Fns.servicebus.windows.net%2Fhub\n1795255200");
        let expected = STANDARD.encode(mac.finalize().into_bytes());
        let fields: BTreeMap<_, _> = url::form_urlencoded::parse(
            signature
                .strip_prefix("SharedAccessSignature ")
                .unwrap()
                .as_bytes(),
        )
        .into_owned()
        .collect();
        assert_eq!(
            (fields["sig"].as_str(), fields["skn"].as_str()),
            (expected.as_str(), "send")
        );
        let request = only(TYPE, &event(), &with(TEXT, "", ""));
        assert_eq!(
            request.address.expose().as_str(),
            "https://ns.servicebus.windows.net/hub/messages"
        );
        assert_eq!(request.body, generic::encode(&event()).unwrap());
    }

    #[test]
    fn azureeventhub_token_needs_the_namespace_as_channel() {
        let request = only(TYPE, &event(), &with("hub", "ns", "t0ken"));
        assert_eq!(
            request.address.expose().as_str(),
            "https://ns.servicebus.windows.net/hub/messages"
        );
        assert_eq!(request.headers["authorization"], "Bearer t0ken");
        for (address, channel, token) in [
            (TEXT, "", "t"),
            ("hub", "ns", ""),
            ("hub", "", "t"),
            ("SharedAccessKey=x", "", ""),
        ] {
            let error = steps(&event(), &with(address, channel, token)).unwrap_err();
            assert!(!error.to_string().contains("s3cret"));
        }
    }
}
