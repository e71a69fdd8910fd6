//! `discord`: Slack's message for a webhook of Discord, which accepts it at the path `/slack`.

use api::{Event, Secret};
use notification_specs::provider;
use serde_json::Value;

use super::{
    interface::{Config, ProviderType, Step},
    slack, wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::DISCORD,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let mut url = config.url()?.into_inner();
    if !url.path().ends_with("/slack") {
        url.path_segments_mut()
            .map_err(|()| Error::BadAddress)?
            .pop_if_empty()
            .push("slack");
    }
    let mut message = slack::message(event, config);
    if let Some(fields) = message.as_object_mut() {
        fields.shift_remove("channel");
    }
    if let Some(Value::Object(attachment)) = message.pointer_mut("/attachments/0") {
        attachment.shift_remove("fallback");
    }
    Ok(vec![Step::Send(wire::json(Secret::new(url), &message)?)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn discord_takes_slacks_message_without_channel_at_its_own_path() {
        for (address, path) in [
            (
                "https://d.example/api/webhooks/1/s3cret",
                "/api/webhooks/1/s3cret/slack",
            ),
            ("https://d.example/w/", "/w/slack"),
            ("https://d.example/w/slack", "/w/slack"),
        ] {
            let config = with(address, "ops", "");
            assert_eq!(only(TYPE, &event(), &config).address.expose().path(), path);
            let body = body(TYPE, &event(), &config);
            assert!(body.get("channel").is_none() && body["attachments"][0].get("fallback").is_none());
            assert_eq!(body["username"], "source-controller");
            assert_eq!(body["attachments"][0]["author_name"], "gitrepository/shop.team");
        }
    }
}
