//! `incident.io`: an alert that fires or is resolved.

use api::Event;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::INCIDENTIO,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let url = config.url()?;
    if wire::is_progressing(event) {
        return Ok(Vec::new());
    }
    let mut metadata = wire::metadata(event);
    for (key, value) in [
        ("severity", event.severity.as_str()),
        ("reason", &event.reason),
        ("reportingController", &event.reporting_controller),
    ] {
        metadata.insert(key.to_owned(), value.into());
    }
    let alert = json!({
        "title": format!("{}: {}", wire::title(event), event.reason),
        "status": if wire::is_error(event) { "firing" } else { "resolved" },
        "deduplication_key": event.involved_object.uid.as_deref().unwrap_or_default(),
        "description": event.message,
        "metadata": metadata,
    });
    let mut request = wire::json(url, &alert)?;
    wire::bearer(&mut request.headers, config)?;
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, failure, with};

    #[test]
    fn incidentio_alert_fires_and_is_resolved_under_one_key() {
        let config = with("https://api.incident.io/v2/alert_events/http/1", "", "t0ken");
        let fires = body(TYPE, &failure(), &config);
        assert_eq!(
            (&fires["status"], &fires["deduplication_key"]),
            (&"firing".into(), &"u".into())
        );
        assert_eq!(fires["title"], "gitrepository/shop.team: BuildFailed");
        assert_eq!(fires["metadata"]["reason"], "BuildFailed");
        assert_eq!(body(TYPE, &event(), &config)["status"], "resolved");
        let quiet = Event {
            reason: "Progressing".into(),
            ..event()
        };
        assert!(steps(&quiet, &config).unwrap().is_empty());
    }
}
