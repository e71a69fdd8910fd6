//! `pagerduty`: an incident that starts or ends, and a change event for information.

use api::{Event, Secret, Severity};
use notification_specs::provider;
use serde_json::{Value, json};

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::PAGERDUTY,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let base = config.url()?;
    let key = config.required_channel()?;
    if wire::is_progressing(event) {
        return Ok(Vec::new());
    }
    let to = |path: [&'static str; 2], body: &Value| {
        let path = path.iter().flat_map(|path| path.split('/'));
        let url = wire::at(base.expose(), path)?;
        wire::json(Secret::new(url), body).map(Step::Send)
    };
    let mut steps = vec![to(["v2", "enqueue"], &incident(event, key))?];
    if event.severity == Severity::Info {
        steps.push(to(["v2", "change/enqueue"], &change(event, key))?);
    }
    Ok(steps)
}

fn incident(event: &Event, key: &str) -> Value {
    let action = if wire::is_error(event) {
        "trigger"
    } else {
        "resolve"
    };
    let mut incident = json!({"routing_key": key, "event_action": action});
    let uid = event.involved_object.uid.as_deref().unwrap_or_default();
    if !uid.is_empty() {
        wire::set(&mut incident, "dedup_key", uid);
    }
    if wire::is_error(event) {
        let (kind, _, name) = wire::object(event);
        let mut payload = payload(event);
        wire::set(&mut payload, "severity", "error");
        wire::set(&mut payload, "component", name);
        wire::set(&mut payload, "group", kind);
        wire::set(&mut incident, "payload", payload);
    }
    incident
}

fn change(event: &Event, key: &str) -> Value {
    json!({"routing_key": key, "payload": payload(event)})
}

fn payload(event: &Event) -> Value {
    json!({
        "summary": format!("{}: {}", wire::description(event), wire::short_name(event)),
        "source": format!("Flux {}", event.reporting_controller),
        "timestamp": wire::timestamp(event),
        "custom_details": {"message": event.message, "metadata": wire::metadata(event)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{self, failure, with};

    fn sent(event: &Event) -> Vec<(String, Value)> {
        let steps = steps(
            event,
            &with("https://events.pagerduty.com/anything?x=y", "key", ""),
        )
        .unwrap();
        let sent = steps.iter().filter_map(Step::request);
        sent.map(|request| {
            (
                request.address.expose().to_string(),
                serde_json::from_slice(&request.body).unwrap(),
            )
        })
        .collect()
    }

    #[test]
    fn pagerduty_incident_begins_with_an_error() {
        let [(url, body)] = &sent(&failure())[..] else {
            panic!("one request")
        };
        assert_eq!(url, "https://events.pagerduty.com/v2/enqueue");
        let expected = json!({
            "routing_key": "key", "event_action": "trigger", "dedup_key": "u",
            "payload": {
                "summary": "build failed: gitrepository/shop", "source": "Flux source-controller",
                "timestamp": "2026-11-21T10:00:00Z",
                "custom_details": {
                    "message": "stored artifact\nfor commit 'a <b> & c'",
                    "metadata": {"revision": "main@sha1:1", "summary": "shop of the team"},
                },
                "severity": "error", "component": "shop", "group": "GitRepository",
            },
        });
        assert_eq!(body, &expected);
    }

    #[test]
    fn pagerduty_incident_ends_with_information_that_is_a_change_too() {
        let mut event = fixture::event();
        let [(_, end), (url, change)] = &sent(&event)[..] else {
            panic!("two requests")
        };
        assert_eq!(
            *end,
            json!({"routing_key": "key", "event_action": "resolve", "dedup_key": "u"})
        );
        assert_eq!(url, "https://events.pagerduty.com/v2/change/enqueue");
        assert_eq!(change["payload"]["summary"], "new artifact: gitrepository/shop");
        event.involved_object.uid = None;
        assert!(sent(&event)[0].1.get("dedup_key").is_none());
        event.reason = "Progressing".into();
        assert!(sent(&event).is_empty());
    }
}
