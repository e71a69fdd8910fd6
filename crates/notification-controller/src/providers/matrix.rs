//! `matrix`: a message in a room of Matrix. Its transaction is the hash of the event, so that a repetition is one message.

use std::fmt::Write as _;

use api::{Event, Secret};
use http::Method;
use notification_specs::provider;
use serde_json::json;
use sha2::Digest as _;

use super::{
    generic,
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::MATRIX,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let base = config.url()?.into_inner();
    let transaction = hex::encode(sha1::Sha1::digest(generic::encode(event)?));
    let room = config.required_channel()?;
    let path = [
        "_matrix",
        "client",
        "r0",
        "rooms",
        room,
        "send",
        "m.room.message",
        &transaction,
    ];
    let own = base.path().split('/');
    let url = wire::at(&base, own.chain(path))?;
    let sign = if wire::is_error(event) { "🚨" } else { "💫" };
    let mut text = format!("{sign} {}\n{}\n", wire::title(event), event.message);
    for (key, value) in &event.metadata {
        let _ = writeln!(text, "- {key}: {value}");
    }
    let mut request = wire::json(Secret::new(url), &json!({"body": text, "msgtype": "m.text"}))?;
    wire::bearer(&mut request.headers, config)?;
    Ok(vec![Step::Send(Request {
        method: Method::PUT,
        ..request
    })])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn matrix_puts_a_message_under_the_hash_of_the_event() {
        let config = with("https://m.example", "!room:m.example", "t0ken");
        let request = only(TYPE, &event(), &config);
        let path = request.address.expose().path().to_owned();
        let id = path
            .strip_prefix("/_matrix/client/r0/rooms/!room:m.example/send/m.room.message/")
            .unwrap();
        assert_eq!((id.len(), request.method.as_str()), (40, "PUT"));
        assert_eq!(request.headers["authorization"], "Bearer t0ken");
        assert_eq!(body(TYPE, &event(), &config)["msgtype"], "m.text");
        assert_eq!(only(TYPE, &event(), &config).address.expose().path(), path);
    }
}
