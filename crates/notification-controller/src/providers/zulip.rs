//! `zulip`: a message to a topic of a stream.

use api::{Event, Secret};
use http::{HeaderValue, header};
use notification_specs::provider;
use url::form_urlencoded::Serializer;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::ZULIP,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let url = wire::at(config.url()?.expose(), ["api", "v1", "messages"])?;
    let (stream, topic) = config
        .channel
        .split_once('/')
        .filter(|(stream, topic)| !stream.is_empty() && !topic.is_empty())
        .ok_or(Error::Config("spec.channel must have the form stream/topic"))?;
    let (bot, key) = config.login().ok_or(Error::Config(
        "no login: set the keys username (e-mail of the bot) and password (its key) in the Secret of spec.secretRef",
    ))?;
    let form = Serializer::new(String::new())
        .append_pair("type", "stream")
        .append_pair("to", stream)
        .append_pair("topic", topic)
        .append_pair("content", &wire::markdown(event))
        .finish();
    let mut request = wire::post(Secret::new(url), form.into());
    let value = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert(header::CONTENT_TYPE, value);
    wire::basic(&mut request.headers, bot, key)?;
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{event, only, with};

    #[test]
    fn zulip_gets_a_form_for_a_topic() {
        let mut config = with("https://z.example/x", "ops/deployments", "");
        (config.username, config.password) =
            (Some("bot@z.example".into()), Some(Secret::new("s3cret".into())));
        let request = only(TYPE, &event(), &config);
        assert_eq!(
            request.address.expose().as_str(),
            "https://z.example/api/v1/messages"
        );
        assert_eq!(
            request.headers["content-type"],
            "application/x-www-form-urlencoded"
        );
        assert!(request.headers.contains_key("authorization"));
        let form: Vec<_> = url::form_urlencoded::parse(&request.body).into_owned().collect();
        let content = "## Flux Status\n\nℹ️ GitRepository/team/shop\n\nstored artifact\nfor commit 'a <b> & c'\n\n\
                       Metadata:\n* `revision`: main@sha1:1\n* `summary`: shop of the team\n";
        let expected = [
            ("type", "stream"),
            ("to", "ops"),
            ("topic", "deployments"),
            ("content", content),
        ];
        assert_eq!(
            form,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        config.channel = "ops".into();
        assert!(steps(&event(), &config).is_err());
    }
}
