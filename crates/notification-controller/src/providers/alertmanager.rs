//! `alertmanager`: an alert that fires, for Prometheus Alertmanager.

use api::Event;
use notification_specs::provider;
use serde_json::{Map, Value, json};

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

/// The end of an alert without one.
const NO_END: &str = "0001-01-01T00:00:00Z";

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::ALERTMANAGER,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let mut request = wire::json(config.url()?, &alerts(event))?;
    wire::bearer_or_basic(&mut request.headers, config)?;
    Ok(vec![Step::Send(request)])
}

fn alerts(event: &Event) -> Value {
    let (kind, namespace, name) = wire::object(event);
    let mut labels = wire::metadata(event);
    let mut annotations = Map::from_iter([("message".to_owned(), event.message.clone().into())]);
    if let Some(summary) = labels.shift_remove("summary") {
        annotations.insert("summary".to_owned(), summary);
    }
    for (label, value) in [
        (
            "alertname",
            format!("Flux{kind}{}", capitalized(&event.reason)).as_str(),
        ),
        ("severity", event.severity.as_str()),
        ("reason", &event.reason),
        ("kind", kind),
        ("name", name),
        ("namespace", namespace),
        ("reportingcontroller", &event.reporting_controller),
    ] {
        labels.insert(label.to_owned(), value.into());
    }
    json!([{
        "status": "firing", "labels": labels, "annotations": annotations,
        "startsAt": wire::timestamp(event), "endsAt": NO_END,
    }])
}

/// Returns the reason with a capital first and small letters after it; dashboards select by it.
fn capitalized(reason: &str) -> String {
    let mut letters = reason.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().to_lowercase().chars()).collect()
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn alertmanager_gets_one_alert_that_fires() {
        let expected = json!([{
            "status": "firing",
            "labels": {
                "revision": "main@sha1:1", "alertname": "FluxGitRepositoryNewartifact", "severity": "info",
                "reason": "NewArtifact", "kind": "GitRepository", "name": "shop", "namespace": "team",
                "reportingcontroller": "source-controller",
            },
            "annotations": {"message": "stored artifact\nfor commit 'a <b> & c'", "summary": "shop of the team"},
            "startsAt": "2026-11-21T10:00:00Z", "endsAt": "0001-01-01T00:00:00Z",
        }]);
        assert_eq!(
            body(TYPE, &event(), &with("https://a.example/api/v2/alerts", "", "")),
            expected
        );
    }

    #[test]
    fn alertmanager_login_has_precedence_over_the_token() {
        let mut config = with("https://a.example/api/v2/alerts", "", "t0ken");
        assert_eq!(
            only(TYPE, &event(), &config).headers["authorization"],
            "Bearer t0ken"
        );
        (config.username, config.password) = (Some("u".into()), Some(Secret::new("p".into())));
        assert_eq!(
            only(TYPE, &event(), &config).headers["authorization"],
            "Basic dTpw"
        );
    }
}
