//! `grafana`: an annotation of dashboards, in the format of Graphite.

use api::Event;
use notification_specs::provider;
use serde_json::json;

use super::{
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GRAFANA,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (kind, namespace, name) = wire::object(event);
    let mut tags = vec!["flux".to_owned(), event.reporting_controller.clone()];
    let tag =
        |(key, value): (&String, &String)| format!("{}: {}", key.replace(':', "|"), value.replace(':', "|"));
    tags.extend(event.metadata.iter().map(tag));
    tags.extend([
        format!("kind: {kind}"),
        format!("name: {name}"),
        format!("namespace: {namespace}"),
    ]);
    // Graphite counts in seconds.
    let annotation = json!({
        "when": wire::time(event).as_second(), "text": wire::title(event), "tags": tags,
    });
    let mut request = wire::json(config.url()?, &annotation)?;
    match (config.token(), config.login()) {
        (None, Some((user, password))) => wire::basic(&mut request.headers, user, password)?,
        _ => wire::bearer(&mut request.headers, config)?,
    }
    Ok(vec![Step::Send(request)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{body, event, only, with};

    #[test]
    fn grafana_gets_an_annotation_with_tags() {
        let config = with("https://g.example/api/annotations/graphite", "", "t0ken");
        let expected = json!({
            "when": 1_795_255_200, "text": "gitrepository/shop.team",
            "tags": [
                "flux", "source-controller", "revision: main@sha1|1", "summary: shop of the team",
                "kind: GitRepository", "name: shop", "namespace: team",
            ],
        });
        assert_eq!(body(TYPE, &event(), &config), expected);
        assert_eq!(
            only(TYPE, &event(), &config).headers["authorization"],
            "Bearer t0ken"
        );
    }
}
