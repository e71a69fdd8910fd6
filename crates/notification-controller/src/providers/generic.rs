//! `generic`: the event as JSON to any webhook.

use api::Event;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use notification_specs::provider;

use super::{
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GENERIC,
    steps: |event, config| Ok(vec![Step::Send(payload(event, config)?)]),
};

const COMPONENT: HeaderName = HeaderName::from_static("gotk-component");

/// Fails when the event cannot be encoded.
pub(super) fn payload(event: &Event, config: &Config) -> Result<Request, Error> {
    let body = encode(event)?;
    Ok(Request {
        headers: headers(event, config),
        ..wire::post(config.url()?, body)
    })
}

/// Returns the headers: the name of the sender, which headers of the user may replace.
pub(super) fn headers(event: &Event, config: &Config) -> HeaderMap {
    let mut headers = wire::json_headers(config);
    if let Ok(component) = HeaderValue::from_str(&event.reporting_controller)
        && !headers.contains_key(COMPONENT)
    {
        headers.insert(COMPONENT, component);
    }
    headers
}

/// Encodes the event as Go's encoder does: `<`, `>`, `&` and two line separators escaped, so that a receiver that encodes
/// the event anew to check a signature gets the same bytes.
pub(super) fn encode(event: &Event) -> Result<Bytes, Error> {
    let text = serde_json::to_string(event).map_err(|_| Error::Encoding)?;
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            c => escaped.push(c),
        }
    }
    Ok(escaped.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture;

    #[test]
    fn the_event_is_posted_with_plain_metadata() {
        let request = payload(&fixture::event(), &fixture::config()).unwrap();
        assert_eq!(request.headers["content-type"], "application/json");
        assert_eq!(request.headers["gotk-component"], "source-controller");
        let text = std::str::from_utf8(&request.body).unwrap();
        assert!(
            text.contains(r"a \u003cb\u003e \u0026 c") && !text.ends_with('\n'),
            "{text}"
        );
        let back: Event = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(back, fixture::event());
    }

    #[test]
    fn headers_of_the_user_have_precedence() {
        let mut config = fixture::config();
        config.headers = vec![
            (
                HeaderName::from_static("authorization"),
                HeaderValue::from_static("Basic abc"),
            ),
            (
                HeaderName::from_static("content-type"),
                HeaderValue::from_static("text/plain"),
            ),
            (
                HeaderName::from_static("gotk-component"),
                HeaderValue::from_static("mine"),
            ),
        ];
        let request = payload(&fixture::event(), &config).unwrap();
        assert_eq!(request.headers["authorization"], "Basic abc");
        assert_eq!(request.headers["content-type"], "text/plain");
        assert_eq!(request.headers["gotk-component"], "mine");
    }

    #[test]
    fn a_token_is_no_header_of_its_own() {
        let mut config = fixture::config();
        config.token = Some(api::Secret::new("t".into()));
        assert!(
            !payload(&fixture::event(), &config)
                .unwrap()
                .headers
                .contains_key("authorization")
        );
    }
}
