//! `githubdispatch`: starts workflows of GitHub Actions by a `repository_dispatch` with the event.

use api::{Event, Secret};
use notification_specs::provider;
use serde_json::json;

use super::{
    github::Hub,
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GITHUBDISPATCH,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (kind, namespace, name) = wire::object(event);
    let payload = serde_json::to_value(event).map_err(|_| Error::Encoding)?;
    let body = json!({"event_type": format!("{kind}/{name}.{namespace}"), "client_payload": payload});
    Hub::of(config)?.signed_in(config, move |hub, login| {
        let request = wire::json(Secret::new(hub.repository(&["dispatches"])?), &body)?;
        Ok(vec![Step::Send(login.on(request))])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn githubdispatch_sends_the_event_as_payload() {
        let config = with("https://github.com/team/shop", "", "t0ken");
        let request = only(TYPE, &event(), &config);
        assert_eq!(
            request.address.expose().as_str(),
            "https://api.github.com/repos/team/shop/dispatches"
        );
        let sent = body(TYPE, &event(), &config);
        assert_eq!(sent["event_type"], "GitRepository/shop.team");
        assert_eq!(sent["client_payload"], serde_json::to_value(event()).unwrap());
        assert!(sent["client_payload"].as_object().unwrap().len() <= 10);
    }
}
