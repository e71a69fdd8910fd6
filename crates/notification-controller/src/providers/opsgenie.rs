//! `opsgenie`: an alert of Opsgenie. Its alias is the same for repetitions, which Opsgenie counts instead of opening another.

use api::Event;
use http::header;
use notification_specs::provider;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::OPSGENIE,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (kind, _, name) = wire::object(event);
    let mut details = wire::metadata(event);
    details.insert("severity".to_owned(), event.severity.as_str().into());
    let alias = format!("{}/{}/{}", config.uid, wire::full_name(event), event.reason);
    let alert = json!({
        "message": format!("{kind}/{name}"),
        "alias": hex::encode(Sha256::digest(alias)),
        "description": event.message,
        "details": details,
    });
    let mut request = wire::json(config.url()?, &alert)?;
    let key = format!("GenieKey {}", config.required_token()?);
    wire::secret_header(&mut request.headers, header::AUTHORIZATION, &key)?;
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn opsgenie_gets_an_alert_with_its_key_and_alias() {
        let config = with("https://api.opsgenie.com/v2/alerts", "", "t0ken");
        let sent = body(TYPE, &event(), &config);
        assert_eq!(sent["message"], "GitRepository/shop");
        assert_eq!(
            sent["details"],
            json!({"revision": "main@sha1:1", "summary": "shop of the team", "severity": "info"})
        );
        assert_eq!(sent["alias"].as_str().unwrap().len(), 64);
        assert_eq!(
            only(TYPE, &event(), &config).headers["authorization"],
            "GenieKey t0ken"
        );
        assert!(steps(&event(), &with("https://a.example", "", "")).is_err());
    }
}
