//! `otel`: one span per event, over OTLP/HTTP. All events of a revision share a trace.

use api::{Event, Secret};
use http::{HeaderValue, header};
use notification_specs::provider;
use sha2::{Digest as _, Sha256};

use super::{
    generic,
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const PATH: [&str; 2] = ["v1", "traces"];

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::OTEL,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let mut url = config.url()?;
    // Events about repositories of charts belong to no revision.
    if event.involved_object.kind.as_deref() == Some("HelmRepository") {
        return Ok(Vec::new());
    }
    if url.expose().path() == "/" {
        url = Secret::new(wire::at(url.expose(), PATH)?);
    }
    let mut request = wire::post(url, spans(event, config)?.into());
    let value = HeaderValue::from_static("application/x-protobuf");
    request.headers.insert(header::CONTENT_TYPE, value);
    wire::bearer_or_basic(&mut request.headers, config)?;
    for (name, value) in &config.headers {
        request.headers.insert(name.clone(), value.clone());
    }
    Ok(vec![Step::Send(request)])
}

fn spans(event: &Event, config: &Config) -> Result<Vec<u8>, Error> {
    let (kind, namespace, name) = wire::object(event);
    let alert = &config.alert;
    let revision = match (
        event.metadata.get("app-version"),
        event.metadata.get("oci-digest"),
    ) {
        (Some(version), Some(digest)) => format!("{version}@{digest}"),
        _ => event
            .metadata
            .get("revision")
            .map_or("unknown", String::as_str)
            .to_owned(),
    };
    let trace = Sha256::digest(format!("{}:{revision}", alert.uid));
    // The same event is the same span.
    let id = Sha256::digest(generic::encode(event)?);
    let nanoseconds = u64::try_from(wire::time(event).as_nanosecond()).unwrap_or_default();
    let uid = event.involved_object.uid.as_deref().unwrap_or_default();
    let object = [
        ("object.uid", uid),
        ("object.kind", kind),
        ("object.name", name),
        ("object.namespace", namespace),
    ];
    let metadata = event
        .metadata
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let mut span = Vec::new();
    bytes(&mut span, 1, trace.get(..16).unwrap_or_default());
    bytes(&mut span, 2, id.get(..8).unwrap_or_default());
    bytes(&mut span, 5, format!("{kind}: {namespace}/{name}").as_bytes());
    number(&mut span, 6, 1);
    fixed(&mut span, 7, nanoseconds);
    fixed(&mut span, 8, nanoseconds);
    for (key, value) in object.into_iter().chain(metadata) {
        bytes(&mut span, 9, &attribute(key, value));
    }
    let mut status = Vec::new();
    bytes(&mut status, 2, event.message.as_bytes());
    number(&mut status, 3, if wire::is_error(event) { 2 } else { 1 });
    bytes(&mut span, 15, &status);

    let mut resource = Vec::new();
    let service = format!("{}/{}", alert.namespace, alert.name);
    bytes(&mut resource, 1, &attribute("service.name", &service));
    bytes(&mut resource, 1, &attribute("service.instance.id", &alert.uid));
    let mut scope = Vec::new();
    bytes(&mut scope, 2, &span);
    let mut all = Vec::new();
    bytes(&mut all, 1, &resource);
    bytes(&mut all, 2, &scope);
    let mut request = Vec::new();
    bytes(&mut request, 1, &all);
    Ok(request)
}

fn attribute(key: &str, value: &str) -> Vec<u8> {
    let (mut text, mut pair) = (Vec::new(), Vec::new());
    bytes(&mut text, 1, value.as_bytes());
    bytes(&mut pair, 1, key.as_bytes());
    bytes(&mut pair, 2, &text);
    pair
}

fn bytes(to: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(to, field << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn number(to: &mut Vec<u8>, field: u64, value: u64) {
    varint(to, field << 3);
    varint(to, value);
}

fn fixed(to: &mut Vec<u8>, field: u64, value: u64) {
    varint(to, field << 3 | 1);
    to.extend_from_slice(&value.to_le_bytes());
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{fixture, interface::AlertName};

    /// Returns the fields of a message: number and contents of length-delimited ones, the other ones as little-endian bytes.
    fn fields(mut from: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn take(from: &mut &[u8]) -> u64 {
            let (mut value, mut shift) = (0, 0);
            loop {
                let byte = from[0];
                *from = &from[1..];
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return value;
                }
            }
        }
        let mut fields = Vec::new();
        while !from.is_empty() {
            let tag = take(&mut from);
            let value = match tag & 7 {
                0 => take(&mut from).to_le_bytes().to_vec(),
                kind => {
                    let length = if kind == 1 {
                        8
                    } else {
                        usize::try_from(take(&mut from)).unwrap()
                    };
                    let (value, rest) = from.split_at(length);
                    from = rest;
                    value.to_vec()
                }
            };
            fields.push((tag >> 3, value));
        }
        fields
    }

    fn field(from: &[u8], number: u64) -> Vec<u8> {
        fields(from)
            .into_iter()
            .find(|(field, _)| *field == number)
            .unwrap()
            .1
    }

    #[test]
    fn otel_span_has_the_trace_of_its_revision() {
        let mut config = fixture::with("https://otel.example", "", "t0ken");
        config.alert = AlertName {
            namespace: "team".into(),
            name: "all".into(),
            uid: "a-1".into(),
        };
        let request = fixture::only(TYPE, &fixture::failure(), &config);
        assert_eq!(request.address.expose().path(), "/v1/traces");
        assert_eq!(request.headers["authorization"], "Bearer t0ken");
        let all = field(&request.body, 1);
        assert_eq!(field(&field(&field(&all, 1), 1), 1), b"service.name");
        let span = field(&field(&all, 2), 2);
        assert_eq!(field(&span, 1), Sha256::digest("a-1:main@sha1:1")[..16]);
        assert_eq!(field(&span, 5), b"GitRepository: team/shop");
        assert_eq!(field(&span, 7), 1_795_255_200_000_000_000_u64.to_le_bytes());
        assert_eq!(field(&field(&span, 15), 3)[0], 2);
        let attributes: Vec<_> = fields(&span)
            .into_iter()
            .filter(|(field, _)| *field == 9)
            .collect();
        assert_eq!(attributes.len(), 6);
    }

    #[test]
    fn otel_skips_helm_repositories() {
        let mut event = fixture::event();
        event.involved_object.kind = Some("HelmRepository".into());
        assert!(steps(&event, &fixture::config()).unwrap().is_empty());
    }
}
