//! `rocket`: Slack's message with the colors of Rocket.Chat.

use api::Event;
use notification_specs::provider;

use super::{
    interface::{Config, ProviderType, Step},
    slack, wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::ROCKET,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let mut message = slack::message(event, config);
    wire::set(
        &mut message,
        "username",
        config.username.clone().unwrap_or_default(),
    );
    let color = if wire::is_error(event) {
        "#FF0000"
    } else {
        "#0076D7"
    };
    if let Some(attachment) = message.pointer_mut("/attachments/0") {
        wire::set(attachment, "color", color);
    }
    Ok(vec![Step::Send(wire::json(config.url()?, &message)?)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, failure, only, with};

    #[test]
    fn rocket_has_its_own_colors_and_no_default_name() {
        let config = with("https://r.example/hooks/1", "ops", "t0ken");
        let sent = body(TYPE, &event(), &config);
        assert_eq!((&sent["username"], &sent["channel"]), (&"".into(), &"ops".into()));
        assert_eq!(sent["attachments"][0]["color"], "#0076D7");
        assert_eq!(
            body(TYPE, &failure(), &config)["attachments"][0]["color"],
            "#FF0000"
        );
        assert!(
            !only(TYPE, &event(), &config)
                .headers
                .contains_key("authorization")
        );
    }
}
