//! `slack`: a message with an attachment, for Slack and compatible webhooks.

use api::{Event, Severity};
use notification_specs::provider;
use serde_json::{Value, json};

use super::{
    interface::{Check, Config, ProviderType, Request, Step},
    wire::{self, title},
};
use crate::error::Error;

/// The API method that answers 200 even when it refuses.
const POST_MESSAGE: &str = "https://slack.com/api/chat.postMessage";

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::SLACK,
    steps: |event, config| Ok(vec![Step::Send(payload(event, config)?)]),
};

fn payload(event: &Event, config: &Config) -> Result<Request, Error> {
    let address = config.url()?;
    let check = match address.expose().as_str() == POST_MESSAGE {
        true => Check::Ok,
        false => Check::Status,
    };
    let mut request = wire::json(address, &message(event, config))?;
    wire::bearer(&mut request.headers, config)?;
    Ok(Request { check, ..request })
}

/// Returns the message, which other chats with Slack's webhooks accept, too.
pub(super) fn message(event: &Event, config: &Config) -> Value {
    let title = title(event);
    let first_line = event.message.lines().next().unwrap_or_default();
    let color = if event.severity == Severity::Error {
        "danger"
    } else {
        "good"
    };
    let fields: Vec<_> = event
        .metadata
        .iter()
        .map(|(key, value)| json!({ "title": key, "value": value, "short": false }))
        .collect();
    json!({
        "channel": config.channel,
        "username": config.username.as_deref().unwrap_or(&event.reporting_controller),
        "icon_url": "",
        "icon_emoji": "",
        "attachments": [{
            "fallback": format!("{title}: {first_line}"),
            "color": color,
            "author_name": title,
            "text": event.message,
            "mrkdwn_in": ["text"],
            "fields": fields,
        }],
    })
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::providers::fixture;

    fn body(event: &Event, config: &Config) -> Value {
        serde_json::from_slice(&payload(event, config).unwrap().body).unwrap()
    }

    #[test]
    fn a_message_has_one_attachment() {
        let expected = json!({
            "channel": "", "username": "source-controller", "icon_url": "", "icon_emoji": "",
            "attachments": [{
                "fallback": "gitrepository/shop.team: stored artifact",
                "color": "good",
                "author_name": "gitrepository/shop.team",
                "text": "stored artifact\nfor commit 'a <b> & c'",
                "mrkdwn_in": ["text"],
                "fields": [
                    {"title": "revision", "value": "main@sha1:1", "short": false},
                    {"title": "summary", "value": "shop of the team", "short": false},
                ],
            }],
        });
        assert_eq!(body(&fixture::event(), &fixture::config()), expected);
    }

    #[test]
    fn an_error_is_red_and_names_and_channels_are_the_users() {
        let mut event = fixture::event();
        event.severity = Severity::Error;
        event.metadata.clear();
        let config = Config {
            channel: "ops".into(),
            username: Some("weir".into()),
            ..fixture::config()
        };
        let body = body(&event, &config);
        assert_eq!(
            (&body["channel"], &body["username"]),
            (&json!("ops"), &json!("weir"))
        );
        assert_eq!(
            (
                &body["attachments"][0]["color"],
                &body["attachments"][0]["fields"]
            ),
            (&json!("danger"), &json!([]))
        );
    }

    #[test]
    fn a_token_is_sent_as_bearer_and_the_api_is_checked_by_its_answer() {
        let mut config = fixture::config();
        let request = payload(&fixture::event(), &config).unwrap();
        assert!(!request.headers.contains_key("authorization"));
        assert_eq!(request.check, Check::Status);
        config.token = Some(Secret::new("xoxb-1".into()));
        config.address = Some(Secret::new(POST_MESSAGE.into()));
        let request = payload(&fixture::event(), &config).unwrap();
        assert_eq!(request.headers["authorization"], "Bearer xoxb-1");
        assert_eq!(request.check, Check::Ok);
    }
}
