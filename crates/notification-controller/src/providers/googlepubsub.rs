//! `googlepubsub`: the event as a message of a topic of Google Cloud Pub/Sub, over its REST interface.
//!
//! The address is the ID of the project, or the URL of an endpoint with the project: `https://host/v1/projects/ID`.

use api::{Event, Secret};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use cloud::{Token, gcp};
use http::{HeaderValue, header};
use notification_specs::provider;
use serde_json::{Map, Value, json};
use url::Url;

use super::{
    generic,
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const ENDPOINT: &str = "https://pubsub.googleapis.com/";

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GOOGLEPUBSUB,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let url = topic(config.address()?, config.required_channel()?)?;
    let mut message = json!({"data": STANDARD.encode(generic::encode(event)?)});
    let attributes = attributes(config)?;
    if !attributes.is_empty() {
        wire::set(&mut message, "attributes", attributes);
    }
    let identity = config.identity_for(&url, gcp::is_pubsub)?;
    let mut publish = wire::json(Secret::new(url), &json!({"messages": [message]}))?;
    if let Some(bearer) = identity {
        wire::secret_header(&mut publish.headers, header::AUTHORIZATION, &bearer)?;
        return Ok(vec![Step::Send(publish)]);
    }
    let form = credentials(config.required_token()?)?;
    let mut ask = wire::post(
        Secret::new(form.url),
        Bytes::from(form.body.into_inner().into_bytes()),
    );
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    ask.headers.insert(header::CONTENT_TYPE, kind);
    let next = move |answer: &[u8]| {
        let token = Token::from_answer(gcp::SERVICE, answer).map_err(|_| Error::Answer)?;
        let bearer = format!("Bearer {}", token.access.expose());
        wire::secret_header(&mut publish.headers, header::AUTHORIZATION, &bearer)?;
        Ok(vec![Step::Send(publish)])
    };
    Ok(vec![Step::Ask(ask, Box::new(next))])
}

fn topic(address: &str, topic: &str) -> Result<Url, Error> {
    const FORM: Error =
        Error::Config("the address is neither the ID of a project nor the URL of an endpoint with one");
    let (base, project) = match Url::parse(address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => {
            let path = url.path().trim_matches('/');
            let project = path.strip_prefix("v1/projects/").ok_or(FORM)?.to_owned();
            (url, project)
        }
        _ => (Url::parse(ENDPOINT).map_err(|_| FORM)?, address.to_owned()),
    };
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.~+%:".contains(c))
    };
    if project.is_empty() || !is_name(&project) || !is_name(topic) {
        return Err(FORM);
    }
    wire::at(
        &base,
        ["v1", "projects", &project, "topics", &format!("{topic}:publish")],
    )
}

fn credentials(token: &str) -> Result<cloud::TokenRequest, Error> {
    const FORM: Error = Error::Config(
        "the key token in the Secret of spec.secretRef is no valid key of a Google service account in JSON",
    );
    let credentials = gcp::Credentials::parse(token.as_bytes()).map_err(|_| FORM)?;
    credentials
        .request(gcp::PUBSUB_SCOPE, jiff::Timestamp::now())
        .map_err(|_| FORM)
}

/// Returns the headers of the user as attributes.
fn attributes(config: &Config) -> Result<Map<String, Value>, Error> {
    let all = config.headers.iter().map(|(name, value)| {
        let value = value.to_str().map_err(|_| Error::Encoding)?;
        Ok((name.as_str().to_owned(), value.into()))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{event, with};

    const USER: &str = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s3cret", "refresh_token": "s3cret"}"#;

    #[test]
    fn pubsub_message_is_published_with_a_token() {
        let mut config = with("a-project", "events", USER);
        let value = HeaderValue::from_static("ops");
        config
            .headers
            .push((header::HeaderName::from_static("team"), value));
        let mut steps = steps(&event(), &config).unwrap();
        let Some(Step::Ask(ask, next)) = steps.pop() else {
            panic!("{steps:?}")
        };
        assert_eq!(
            ask.address.expose().as_str(),
            "https://oauth2.googleapis.com/token"
        );
        let next = next(br#"{"access_token": "t0ken", "expires_in": 3600}"#).unwrap();
        let request = next[0].request().unwrap();
        assert_eq!(
            request.address.expose().as_str(),
            "https://pubsub.googleapis.com/v1/projects/a-project/topics/events:publish"
        );
        assert_eq!(request.headers["authorization"], "Bearer t0ken");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let message = &body["messages"][0];
        assert_eq!(message["attributes"], json!({"team": "ops"}));
        let data = STANDARD.decode(message["data"].as_str().unwrap()).unwrap();
        assert_eq!(data, generic::encode(&event()).unwrap());
    }

    #[test]
    fn unusable_pubsub_configuration_is_refused_without_its_secrets() {
        for (address, channel, token) in [
            ("a-project", "", USER),
            ("a/project", "events", USER),
            ("https://h.example/other", "events", USER),
            ("a-project", "events/../x", USER),
            ("a-project", "events", ""),
            ("a-project", "events", "s3cret"),
            (
                "a-project",
                "events",
                r#"{"type": "service_account", "client_email": "e", "private_key": "s3cret"}"#,
            ),
        ] {
            let error = steps(&event(), &with(address, channel, token)).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
