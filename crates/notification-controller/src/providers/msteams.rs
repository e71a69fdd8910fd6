//! `msteams`: a card for Microsoft Teams, in the format of the old connectors, or an adaptive card for workflows.

use api::Event;
use notification_specs::provider;
use serde_json::{Value, json};

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

/// Suffix of the hosts of old connectors.
const CONNECTORS: &str = ".webhook.office.com";

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::MSTEAMS,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let url = config.url()?;
    let old = url
        .expose()
        .host_str()
        .is_some_and(|host| host.ends_with(CONNECTORS));
    let card = if old { connector(event) } else { adaptive(event) };
    Ok(vec![Step::Send(wire::json(url, &card)?)])
}

fn connector(event: &Event) -> Value {
    let facts = event.metadata.iter();
    let facts: Vec<_> = facts
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let title = wire::title(event);
    json!({
        "@type": "MessageCard",
        "@context": "http://schema.org/extensions",
        "themeColor": if wire::is_error(event) { "FF0000" } else { "0076D7" },
        "summary": title,
        "sections": [{"activityTitle": event.message, "activitySubtitle": title, "facts": facts}],
    })
}

fn adaptive(event: &Event) -> Value {
    // The summary comes first, the others by name.
    let mut all: Vec<_> = event.metadata.iter().collect();
    all.sort_by_key(|(key, _)| (*key != "summary", *key));
    let facts = all
        .iter()
        .map(|(key, value)| json!({"title": key, "value": value}));
    let facts: Vec<_> = facts.collect();
    let mut message = json!({"type": "TextBlock", "text": event.message, "wrap": true});
    if wire::is_error(event) {
        wire::set(&mut message, "color", "attention");
    }
    let title = wire::title(event);
    let items = json!([
        {"type": "TextBlock", "text": title, "size": "large", "weight": "bolder", "wrap": true},
        message,
        {"type": "FactSet", "facts": facts},
    ]);
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": [{"type": "Container", "items": items}],
                "msteams": {"width": "Full"},
            },
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, failure, with};

    #[test]
    fn msteams_connectors_take_message_cards() {
        let sent = body(
            TYPE,
            &event(),
            &with("https://x.webhook.office.com:443/w", "", ""),
        );
        let expected = json!({
            "@type": "MessageCard", "@context": "http://schema.org/extensions", "themeColor": "0076D7",
            "summary": "gitrepository/shop.team",
            "sections": [{
                "activityTitle": "stored artifact\nfor commit 'a <b> & c'",
                "activitySubtitle": "gitrepository/shop.team",
                "facts": [
                    {"name": "revision", "value": "main@sha1:1"}, {"name": "summary", "value": "shop of the team"},
                ],
            }],
        });
        assert_eq!(sent, expected);
    }

    #[test]
    fn msteams_workflows_take_adaptive_cards_with_the_summary_first() {
        let config = with("https://prod.logic.azure.com/w", "", "");
        let sent = body(TYPE, &failure(), &config);
        let content = &sent["attachments"][0]["content"];
        let items = &content["body"][0]["items"];
        assert_eq!(sent["type"], "message");
        assert_eq!(content["msteams"]["width"], "Full");
        assert_eq!(
            (&items[0]["weight"], &items[1]["color"]),
            (&"bolder".into(), &"attention".into())
        );
        assert_eq!(items[2]["facts"][0]["title"], "summary");
        let mut plain = event();
        plain.metadata.clear();
        let items = &body(TYPE, &plain, &config)["attachments"][0]["content"]["body"][0]["items"];
        assert_eq!((items[1].get("color"), &items[2]["facts"]), (None, &json!([])));
    }
}
