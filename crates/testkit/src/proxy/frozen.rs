//! Reads as of an older revision. The API server itself answers them: it lists any revision that etcd still has.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};

use super::{ApiRequest, Inner, forward};

pub(super) struct Freeze {
    pub(super) revision: u64,
    pub(super) selects: Box<dyn Fn(&ApiRequest) -> bool + Send + Sync>,
}

impl Freeze {
    pub(super) fn covers(&self, request: &ApiRequest) -> bool {
        request.method == "GET"
            && !request.is_watch()
            && resource(&request.path).is_some()
            && (self.selects)(request)
    }

    pub(super) fn holds(&self, watch: &ApiRequest) -> bool {
        (self.selects)(watch)
    }
}

/// The resource in the path of a request.
#[derive(Debug, PartialEq, Eq)]
struct Resource<'a> {
    list: &'a str,
    /// Name of the object; none for a list.
    name: Option<&'a str>,
}

/// Returns the resource of a path; none for discovery, subresources and everything that is not a resource.
fn resource(path: &str) -> Option<Resource<'_>> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let rest = match segments.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return None,
    };
    let rest = match rest {
        ["namespaces", _, resource, rest @ ..] if !matches!(*resource, "status" | "finalize") => rest,
        [_, rest @ ..] => rest,
        [] => return None,
    };
    match rest {
        [] => Some(Resource {
            list: path,
            name: None,
        }),
        [name] => Some(Resource {
            list: path.strip_suffix(name)?.trim_end_matches('/'),
            name: Some(name),
        }),
        _ => None,
    }
}

/// Answers a read as of the revision of the freeze.
pub(super) async fn answer(
    inner: &Arc<Inner>,
    freeze: &Freeze,
    request: &ApiRequest,
    headers: HeaderMap,
) -> Result<Response> {
    let asked = resource(&request.path).context("a resource")?;
    let Some(name) = asked.name else {
        let request = ApiRequest {
            query: as_of(freeze.revision, &request.query),
            ..request.clone()
        };
        return forward(inner, &request, headers).await;
    };
    // The asker must have the right to read it now.
    let accept = accepted_list(&headers);
    let now = forward(inner, request, headers).await?;
    if !matches!(now.status(), StatusCode::OK | StatusCode::NOT_FOUND) {
        return Ok(now);
    }
    let query = as_of(freeze.revision, &format!("fieldSelector=metadata.name%3D{name}"));
    let url = format!("{}{}?{query}", inner.upstream, asked.list);
    let list = inner
        .client
        .get(url)
        .bearer_auth(&inner.admin)
        .header(header::ACCEPT, accept)
        .send()
        .await?;
    let (status, body) = (list.status(), list.bytes().await?);
    if status == StatusCode::NOT_FOUND {
        return Ok(now);
    }
    let (status, body) = match status {
        StatusCode::OK => object_of(&serde_json::from_slice(&body)?, name, asked.list),
        status => (status, serde_json::from_slice(&body)?),
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((status, json, body.to_string()).into_response())
}

/// Adds the revision to the query of a list. The token of a further page has it already.
fn as_of(revision: u64, query: &str) -> String {
    let others = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with("resourceVersion"));
    let mut parts: Vec<String> = others.map(str::to_owned).collect();
    if !parts.iter().any(|part| part.starts_with("continue=")) {
        parts.push(format!("resourceVersion={revision}&resourceVersionMatch=Exact"));
    }
    parts.join("&")
}

/// Returns the `Accept` header of a list for a client that wants its only object.
fn accepted_list(headers: &HeaderMap) -> String {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .unwrap_or("application/json");
    accept.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;")
}

/// Returns the only object of a list as the answer to a request for it.
fn object_of(list: &Value, name: &str, path: &str) -> (StatusCode, Value) {
    let text = |field: &str| list.get(field).and_then(Value::as_str).unwrap_or_default();
    let Some(mut object) = list.pointer("/items/0").cloned() else {
        let resource = path.rsplit('/').next().unwrap_or_default();
        let missing = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": format!("{resource} \"{name}\" not found"), "details": {"name": name, "kind": resource},
        });
        return (StatusCode::NOT_FOUND, missing);
    };
    // A list says it once for all its items.
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), text("apiVersion").into());
        fields.insert("kind".to_owned(), text("kind").trim_end_matches("List").into());
    }
    (StatusCode::OK, object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_of_a_path_is_a_list_or_an_object() {
        let list = |list| Some(Resource { list, name: None });
        let object = |list, name| {
            Some(Resource {
                list,
                name: Some(name),
            })
        };
        for (path, expected) in [
            ("/api/v1/pods", list("/api/v1/pods")),
            (
                "/api/v1/namespaces/n/pods/a",
                object("/api/v1/namespaces/n/pods", "a"),
            ),
            ("/api/v1/namespaces/pods", object("/api/v1/namespaces", "pods")),
            (
                "/api/v1/namespaces/n/pods/pods",
                object("/api/v1/namespaces/n/pods", "pods"),
            ),
            (
                "/apis/apps/v1/namespaces/n/deployments",
                list("/apis/apps/v1/namespaces/n/deployments"),
            ),
            ("/apis/g/v1/kinds/a", object("/apis/g/v1/kinds", "a")),
            ("/apis/g/v1/kinds/a/status", None),
            ("/api/v1/namespaces/n/pods/a/log", None),
            ("/apis/apps/v1", None),
            ("/version", None),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }

    #[test]
    fn query_of_a_list_gets_the_revision_unless_its_token_has_it() {
        assert_eq!(
            as_of(7, "limit=5&resourceVersion=0"),
            "limit=5&resourceVersion=7&resourceVersionMatch=Exact"
        );
        assert_eq!(as_of(7, "limit=5&continue=abc"), "limit=5&continue=abc");
        assert_eq!(as_of(7, ""), "resourceVersion=7&resourceVersionMatch=Exact");
    }
}
