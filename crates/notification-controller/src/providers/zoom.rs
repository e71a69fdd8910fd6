//! `zoom`: a message for an incoming webhook of Zoom Team Chat.

use api::{Event, Secret};
use http::header;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::ZOOM,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let mut url = config.url()?.into_inner();
    if !url.query_pairs().any(|(key, _)| key == "format") {
        url.query_pairs_mut().append_pair("format", "full");
    }
    let mut body = vec![json!({"type": "message", "text": event.message})];
    let items = event.metadata.iter();
    let items: Vec<_> = items
        .map(|(key, value)| json!({"key": key, "value": value}))
        .collect();
    if !items.is_empty() {
        body.push(json!({"type": "fields", "items": items}));
    }
    let head = json!({"text": wire::title(event), "sub_head": {"text": event.severity.as_str()}});
    let message = json!({"content": {"head": head, "body": body}});
    let mut request = wire::json(Secret::new(url), &message)?;
    if let Some(token) = config.token() {
        wire::secret_header(&mut request.headers, header::AUTHORIZATION, token)?;
    }
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn zoom_asks_for_the_full_format_and_shows_the_bare_token() {
        for (address, sent) in [
            ("https://z.example/h", "https://z.example/h?format=full"),
            (
                "https://z.example/h?format=fields",
                "https://z.example/h?format=fields",
            ),
        ] {
            let config = with(address, "", "t0ken");
            let request = only(TYPE, &event(), &config);
            assert_eq!(
                (
                    request.address.expose().as_str(),
                    &request.headers["authorization"]
                ),
                (sent, &"t0ken".parse().unwrap())
            );
            let content = &body(TYPE, &event(), &config)["content"];
            assert_eq!(content["head"]["sub_head"]["text"], "info");
            assert_eq!(
                content["body"][1]["items"][0],
                json!({"key": "revision", "value": "main@sha1:1"})
            );
        }
    }
}
