//! `lark`: an interactive card for Lark and Feishu.

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
    rules: provider::LARK,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (sign, color) = if wire::is_error(event) {
        ("🚨", "red")
    } else {
        ("💫", "turquoise")
    };
    let mut text = format!("**{}**\n\n", event.message);
    for (key, value) in &event.metadata {
        let _ = writeln!(text, "{key}: {value}");
    }
    let title = format!("{sign} {}", wire::title(event));
    let card = json!({
        "msg_type": "interactive",
        "card": {
            "config": {"wide_screen_mode": true},
            "header": {"title": {"tag": "plain_text", "content": title}, "template": color},
            "elements": [{"tag": "div", "text": {"tag": "lark_md", "content": text}}],
        },
    });
    Ok(vec![Step::Send(wire::json(config.url()?, &card)?)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, failure, with};

    #[test]
    fn lark_gets_a_card_with_a_color() {
        let config = with("https://open.larksuite.com/hook/1", "", "");
        let sent = body(TYPE, &event(), &config);
        assert_eq!(
            sent["card"]["header"]["title"]["content"],
            "💫 gitrepository/shop.team"
        );
        assert_eq!(sent["card"]["header"]["template"], "turquoise");
        let text = sent["card"]["elements"][0]["text"]["content"].as_str().unwrap();
        assert!(
            text.ends_with("**\n\nrevision: main@sha1:1\nsummary: shop of the team\n"),
            "{text}"
        );
        assert_eq!(
            body(TYPE, &failure(), &config)["card"]["header"]["template"],
            "red"
        );
    }
}
