//! `datadog`: an event in the stream of Datadog.

use api::{Event, Secret};
use http::HeaderName;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const KEY: HeaderName = HeaderName::from_static("dd-api-key");

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::DATADOG,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let url = wire::at(config.url()?.expose(), ["api", "v1", "events"])?;
    let (kind, namespace, name) = wire::object(event);
    let mut tags = vec![
        format!("flux_reporting_controller:{}", event.reporting_controller),
        format!("flux_reason:{}", event.reason),
        format!("kube_kind:{kind}"),
        format!("kube_name:{name}"),
        format!("kube_namespace:{namespace}"),
    ];
    tags.extend(event.metadata.iter().map(|(key, value)| format!("{key}:{value}")));
    let tags: Vec<_> = tags.iter().map(|tag| tag.to_lowercase()).collect();
    let body = json!({
        "title": format!("Events from the {kind} {name}/{namespace}"),
        "text": event.message,
        "tags": tags,
        "source_type_name": "fluxcd",
        "date_happened": wire::time(event).as_second(),
        "alert_type": if wire::is_error(event) { "error" } else { "info" },
    });
    let mut request = wire::json(Secret::new(url), &body)?;
    wire::secret_header(&mut request.headers, KEY, config.required_token()?)?;
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, failure, only, with};

    #[test]
    fn datadog_gets_an_event_with_tags_in_lower_case() {
        let config = with("https://api.datadoghq.eu", "", "t0ken");
        let request = only(TYPE, &failure(), &config);
        assert_eq!(
            request.address.expose().as_str(),
            "https://api.datadoghq.eu/api/v1/events"
        );
        assert_eq!(request.headers["dd-api-key"], "t0ken");
        let sent = body(TYPE, &failure(), &config);
        assert_eq!(
            (&sent["alert_type"], &sent["title"]),
            (&"error".into(), &"Events from the GitRepository shop/team".into())
        );
        assert_eq!(sent["date_happened"], 1_795_255_200);
        assert_eq!(sent["tags"][2], "kube_kind:gitrepository");
    }
}
