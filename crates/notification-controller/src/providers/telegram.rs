//! `telegram`: a message of a bot, always sent to Telegram's own address.

use std::fmt::Write as _;

use api::{Event, Secret};
use notification_specs::provider;
use serde_json::json;
use url::Url;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const API: &str = "https://api.telegram.org/";
/// Characters with a meaning in Telegram's Markdown.
const SPECIAL: &str = "\\_*[]()~`>#+-=|{}.!";

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::TELEGRAM,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (token, channel) = (config.required_token()?, config.required_channel()?);
    let base = Url::parse(API).map_err(|_| Error::BadAddress)?;
    let url = wire::at(&base, [format!("bot{token}").as_str(), "sendMessage"])?;
    let sign = if wire::is_error(event) { "🚨" } else { "💫" };
    let (kind, namespace, name) = wire::object(event);
    let object = escape(&format!("{}/{name}/{namespace}", kind.to_lowercase()));
    let mut text = format!("*{sign} {object}*\n{}\n", escape(&event.message));
    for (key, value) in &event.metadata {
        let _ = writeln!(text, "\\- *{}*: {}", escape(key), escape(value));
    }
    let (chat, thread) = match channel.split_once(':') {
        Some((chat, thread)) => (chat, Some(thread)),
        None => (channel, None),
    };
    let mut message = json!({"chat_id": chat, "text": text, "parse_mode": "MarkdownV2"});
    if let Some(thread) = thread {
        wire::set(&mut message, "message_thread_id", thread);
    }
    Ok(vec![Step::Send(wire::json(Secret::new(url), &message)?)])
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if SPECIAL.contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn telegram_message_is_escaped_and_goes_to_a_thread() {
        let config = with("https://ignored.example", "-100:7", "1:s3cret");
        let sent = body(TYPE, &event(), &config);
        assert_eq!(
            only(TYPE, &event(), &config).address.expose().as_str(),
            "https://api.telegram.org/bot1:s3cret/sendMessage"
        );
        assert_eq!(
            (&sent["chat_id"], &sent["message_thread_id"]),
            (&"-100".into(), &"7".into())
        );
        assert_eq!(sent["parse_mode"], "MarkdownV2");
        let text = sent["text"].as_str().unwrap();
        assert!(
            text.starts_with("*💫 gitrepository/shop/team*\n") && text.contains("<b\\> & c"),
            "{text}"
        );
        let plain = body(TYPE, &event(), &with("", "@ops", "t"));
        assert_eq!(
            (&plain["chat_id"], plain.get("message_thread_id")),
            (&"@ops".into(), None)
        );
    }
}
