//! `webex`: a message in Markdown, from a bot of Webex.

use std::fmt::Write as _;

use api::Event;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::WEBEX,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let sign = if wire::is_error(event) { "💣" } else { "✅" };
    let mut text = format!("{sign} **{}**\n{}\n", wire::title(event), event.message);
    for (key, value) in &event.metadata {
        let _ = writeln!(text, ">**{key}**: {value}");
    }
    let message = json!({"roomId": config.channel, "markdown": text});
    let mut request = wire::json(config.url()?, &message)?;
    wire::bearer(&mut request.headers, config)?;
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn webex_gets_markdown_with_the_token() {
        let config = with("https://webexapis.com/v1/messages", "room", "t0ken");
        let expected = "✅ **gitrepository/shop.team**\nstored artifact\nfor commit 'a <b> & c'\n\
                        >**revision**: main@sha1:1\n>**summary**: shop of the team\n";
        assert_eq!(
            body(TYPE, &event(), &config),
            json!({"roomId": "room", "markdown": expected})
        );
        assert_eq!(
            only(TYPE, &event(), &config).headers["authorization"],
            "Bearer t0ken"
        );
    }
}
