//! `sentry`: failures as events, information as transactions. The address is a DSN.

use api::{Event, Secret, Severity};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use notification_specs::provider;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    generic,
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const AUTH: HeaderName = HeaderName::from_static("x-sentry-auth");

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::SENTRY,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let dsn = config.url()?.into_inner();
    let key = dsn.username().to_owned();
    let mut path: Vec<&str> = dsn.path().split('/').filter(|part| !part.is_empty()).collect();
    let project = path.pop().filter(|_| !key.is_empty());
    let project = project.ok_or(Error::Config(
        "the address is not a DSN of the form https://key@host/project",
    ))?;
    path.extend(["api", project, "envelope", ""]);
    let mut url = wire::at(&dsn, path)?;
    url.path_segments_mut().map_err(|()| Error::BadAddress)?.push("");
    url.set_username("").map_err(|()| Error::BadAddress)?;
    url.set_password(None).map_err(|()| Error::BadAddress)?;
    // The same event has the same ID, so that Sentry drops repetitions.
    let hash = hex::encode(Sha256::digest(generic::encode(event)?));
    let (kind, item) = match event.severity {
        Severity::Error => ("event", failure(event, &config.channel)),
        Severity::Info => ("transaction", transaction(event, &config.channel, &hash)),
        _ => return Ok(Vec::new()),
    };
    let mut request = wire::post(Secret::new(url), envelope(kind, item, &hash)?);
    let value = HeaderValue::from_static("application/x-sentry-envelope");
    request.headers.insert(header::CONTENT_TYPE, value);
    let auth = format!("Sentry sentry_version=7, sentry_client=weir/1, sentry_key={key}");
    wire::secret_header(&mut request.headers, AUTH, &auth)?;
    Ok(vec![Step::Send(request)])
}

fn envelope(kind: &str, mut item: Value, hash: &str) -> Result<Bytes, Error> {
    let id = hash.get(..32).unwrap_or_default();
    wire::set(&mut item, "event_id", id);
    let item = serde_json::to_string(&item).map_err(|_| Error::Encoding)?;
    let (head, item_head) = (
        json!({"event_id": id}),
        json!({"type": kind, "length": item.len()}),
    );
    Ok(format!("{head}\n{item_head}\n{item}\n").into())
}

fn name(event: &Event) -> String {
    let (kind, namespace, name) = wire::object(event);
    format!("{kind}: {namespace}/{name}")
}

fn failure(event: &Event, environment: &str) -> Value {
    json!({
        "timestamp": wire::timestamp(event),
        "level": "error",
        "platform": "other",
        "server_name": event.reporting_controller,
        "environment": environment,
        "transaction": name(event),
        "message": event.message,
        "contexts": {"metadata": event.metadata},
    })
}

fn transaction(event: &Event, environment: &str, hash: &str) -> Value {
    let (kind, namespace, object) = wire::object(event);
    let mut tags = json!({
        "flux_involved_object_kind": kind, "flux_involved_object_namespace": namespace,
        "flux_involved_object_name": object, "flux_reason": event.reason,
    });
    for (key, value) in &event.metadata {
        wire::set(&mut tags, key, value.clone());
    }
    let trace = json!({"trace_id": hash.get(..32), "span_id": hash.get(32..48), "op": event.reason});
    json!({
        "type": "transaction",
        "timestamp": wire::timestamp(event),
        "start_timestamp": wire::timestamp(event),
        "platform": "other",
        "server_name": event.reporting_controller,
        "environment": environment,
        "transaction": name(event),
        "message": event.message,
        "tags": tags,
        "contexts": {"trace": trace},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture::{self, only, with};

    fn lines(event: &Event) -> Vec<Value> {
        let request = only(TYPE, event, &with("https://k3y@s.example/sub/42", "prod", ""));
        assert_eq!(
            request.address.expose().as_str(),
            "https://s.example/sub/api/42/envelope/"
        );
        assert!(
            request.headers["x-sentry-auth"]
                .to_str()
                .unwrap()
                .ends_with("sentry_key=k3y")
        );
        let text = std::str::from_utf8(&request.body).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn sentry_gets_failures_as_events() {
        let lines = lines(&fixture::failure());
        assert_eq!(
            (&lines[1]["type"], &lines[2]["level"]),
            (&"event".into(), &"error".into())
        );
        assert_eq!(lines[2]["transaction"], "GitRepository: team/shop");
        assert_eq!(
            (&lines[2]["environment"], &lines[0]["event_id"]),
            (&"prod".into(), &lines[2]["event_id"])
        );
    }

    #[test]
    fn sentry_gets_information_as_transactions_and_nothing_else() {
        let lines = lines(&fixture::event());
        assert_eq!(
            (&lines[1]["type"], &lines[2]["tags"]["flux_reason"]),
            (&"transaction".into(), &"NewArtifact".into())
        );
        let odd = Event {
            severity: Severity::Trace,
            ..fixture::event()
        };
        assert!(
            steps(&odd, &with("https://k@s.example/1", "", ""))
                .unwrap()
                .is_empty()
        );
        assert!(steps(&odd, &with("https://s.example/1", "", "")).is_err());
    }
}
