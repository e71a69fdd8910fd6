//! Unaggregated discovery: one document for each version, for old API servers.

use yaml::Value;

use crate::ResourceKind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) preferred: bool,
    pub(crate) url: String,
}

/// Parses the answer of `/api` or `/apis`.
pub(crate) fn versions(root: &str, answer: &Value) -> Vec<Served> {
    let text = |value: &Value, field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    if root == "/api" {
        let versions = answer.get("versions").and_then(Value::as_seq).unwrap_or_default();
        return versions
            .iter()
            .filter_map(Value::as_str)
            .map(|version| Served {
                group: String::new(),
                version: version.to_owned(),
                preferred: version == "v1",
                url: format!("/api/{version}"),
            })
            .collect();
    }
    let mut served = Vec::new();
    for group in answer.get("groups").and_then(Value::as_seq).into_iter().flatten() {
        let name = text(group, "name");
        let preferred = group
            .get("preferredVersion")
            .map(|version| text(version, "version"))
            .unwrap_or_default();
        for version in group
            .get("versions")
            .and_then(Value::as_seq)
            .into_iter()
            .flatten()
        {
            let version = text(version, "version");
            let url = format!("/apis/{name}/{version}");
            served.push(Served {
                group: name.clone(),
                preferred: version == preferred,
                version,
                url,
            });
        }
    }
    served
}

pub(crate) fn kinds(served: &Served, answer: &Value) -> Vec<ResourceKind> {
    let resources = answer
        .get("resources")
        .and_then(Value::as_seq)
        .unwrap_or_default();
    let name = |resource: &Value| {
        resource
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let names: Vec<String> = resources.iter().map(name).collect();
    resources
        .iter()
        .zip(&names)
        .filter(|(_, plural)| !plural.is_empty() && !plural.contains('/'))
        .map(|(resource, plural)| ResourceKind {
            group: served.group.clone(),
            version: served.version.clone(),
            kind: resource
                .get("kind")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            plural: plural.clone(),
            namespaced: resource
                .get("namespaced")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            listable: resource
                .get("verbs")
                .and_then(Value::as_seq)
                .is_some_and(|verbs| verbs.iter().any(|verb| verb.as_str() == Some("list"))),
            deletable: resource
                .get("verbs")
                .and_then(Value::as_seq)
                .is_some_and(|verbs| verbs.iter().any(|verb| verb.as_str() == Some("delete"))),
            preferred: served.preferred,
            status: names.contains(&format!("{plural}/status")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn groups_and_kinds_are_parsed() {
        let answer = Value::from_json(
            json!({"groups": [{"name": "apps", "preferredVersion": {"version": "v1"},
            "versions": [{"version": "v1"}, {"version": "v1beta1"}]}]}),
        );
        let served = versions("/apis", &answer);
        assert_eq!(served.len(), 2);
        assert_eq!(
            (served[0].url.as_str(), served[0].preferred, served[1].preferred),
            ("/apis/apps/v1", true, false)
        );
        let core = versions("/api", &Value::from_json(json!({"versions": ["v1"]})));
        assert_eq!(core[0].url, "/api/v1");
        let found = kinds(
            &served[0],
            &Value::from_json(json!({"resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": ["get", "list"]},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": true, "verbs": ["get"]}]})),
        );
        assert_eq!(found.len(), 1);
        assert!(found[0].namespaced && found[0].listable && found[0].status && found[0].preferred);
    }
}
