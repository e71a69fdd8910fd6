//! The differences between a repository and a cluster, as text and as data. Pure.

use std::collections::HashSet;

use objects::ObjectRef;
use serde_json::{Map, Value as Json, json};

use super::super::{
    report,
    subject::Key,
    trial::{Effect, ObjectChange},
};

/// The differences of all deployments, in the order of their comparison.
#[derive(Debug, Default)]
pub(super) struct RepositoryDiff {
    pub(super) deployments: Vec<DeploymentDiff>,
    /// Groups and kinds of the definitions that would be created.
    pub(super) new_kinds: HashSet<(String, String)>,
}

/// The differences of the objects of a Kustomization or KluctlDeployment.
#[derive(Debug)]
pub(super) struct DeploymentDiff {
    pub(super) kind: &'static str,
    pub(super) key: Key,
    pub(super) is_suspended: bool,
    pub(super) state: State,
    pub(super) changes: Vec<ObjectChange>,
    pub(super) errors: Vec<DiffError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    Compared,
    /// It leaves the repository itself.
    Removed,
    /// It was not compared, for this reason.
    Skipped(&'static str),
}

/// The reason why an object, or a whole deployment, could not be compared.
#[derive(Debug)]
pub(super) struct DiffError {
    pub(super) reference: Option<ObjectRef>,
    pub(super) message: String,
    /// True if the namespace or the kind of the object may be missing.
    pub(super) is_premature: bool,
}

/// The number of objects by the effect on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) created: usize,
    pub(super) changed: usize,
    pub(super) deleted: usize,
    pub(super) failed: usize,
}

impl Counts {
    fn add(self, other: Self) -> Self {
        Self {
            created: self.created + other.created,
            changed: self.changed + other.changed,
            deleted: self.deleted + other.deleted,
            failed: self.failed + other.failed,
        }
    }

    fn to_json(self) -> Json {
        json!({
            "created": self.created, "changed": self.changed, "deleted": self.deleted, "failed": self.failed,
        })
    }

    /// Returns the counts that are not zero, such as `1 created, 2 changed`.
    pub(super) fn words(self) -> String {
        let all = [
            (self.created, "created"),
            (self.changed, "changed"),
            (self.deleted, "deleted"),
            (self.failed, "failed"),
        ];
        let words = all.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(count, word)| format!("{count} {word}")).collect();
        words.join(", ")
    }
}

impl DiffError {
    pub(super) fn general(message: String) -> Self {
        Self {
            reference: None,
            message,
            is_premature: false,
        }
    }

    fn line(&self) -> String {
        match &self.reference {
            Some(reference) => format!("{} dry-run failed: {}", report::name(reference), self.message),
            None => self.message.clone(),
        }
    }
}

impl DeploymentDiff {
    pub(super) fn new(kind: &'static str, key: Key) -> Self {
        Self {
            kind,
            key,
            is_suspended: false,
            state: State::Compared,
            changes: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> String {
        let (namespace, name) = &self.key;
        format!("{}/{namespace}/{name}", self.kind)
    }

    pub(super) fn counts(&self) -> Counts {
        let count = |effect| {
            self.changes
                .iter()
                .filter(|change| change.effect == effect)
                .count()
        };
        Counts {
            created: count(Effect::Created),
            changed: count(Effect::Drifted),
            deleted: count(Effect::Deleted),
            failed: self.errors.len(),
        }
    }

    /// Returns the state as a word, and a remark on it.
    pub(super) fn status(&self) -> (&'static str, &'static str) {
        let is_suspended = if self.is_suspended { "suspended" } else { "" };
        match &self.state {
            State::Skipped(why) => ("skipped", why),
            State::Removed => ("removed", is_suspended),
            State::Compared if !self.errors.is_empty() => ("failed", is_suspended),
            State::Compared if self.changes.is_empty() => ("unchanged", is_suspended),
            State::Compared => ("changed", is_suspended),
        }
    }

    /// Returns the changes and the errors, a line or a block for each; empty without any.
    pub(super) fn details(&self) -> String {
        let mut text: String = self.changes.iter().map(ObjectChange::lines).collect();
        for error in &self.errors {
            text.push_str(&format!("✗ {}\n", error.line()));
        }
        text
    }

    fn to_json(&self) -> Json {
        let (namespace, name) = &self.key;
        let (status, remark) = self.status();
        let mut fields = Map::new();
        let mut add = |name: &str, value: Json| fields.insert(name.to_owned(), value);
        add("kind", self.kind.into());
        add("namespace", namespace.as_str().into());
        add("name", name.as_str().into());
        add("status", status.into());
        if !remark.is_empty() {
            add("remark", remark.into());
        }
        add("summary", self.counts().to_json());
        add("objects", self.changes.iter().map(object).collect());
        add("errors", self.errors.iter().map(error).collect());
        Json::Object(fields)
    }
}

/// Returns group, version, kind, namespace and name of an object.
fn identity(reference: &ObjectRef) -> Map<String, Json> {
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), reference.api_version().into());
    fields.insert("kind".to_owned(), reference.kind.as_str().into());
    if let Some(namespace) = &reference.namespace {
        fields.insert("namespace".to_owned(), namespace.as_str().into());
    }
    fields.insert("name".to_owned(), reference.name.as_str().into());
    fields
}

fn object(change: &ObjectChange) -> Json {
    let mut fields = identity(&change.reference);
    let action = match change.effect {
        Effect::Drifted => "changed",
        other => other.word(),
    };
    fields.insert("action".to_owned(), action.into());
    if !change.text.is_empty() {
        fields.insert("diff".to_owned(), change.text.trim().into());
    }
    Json::Object(fields)
}

fn error(error: &DiffError) -> Json {
    let mut fields = error.reference.as_ref().map(identity).unwrap_or_default();
    fields.insert("message".to_owned(), error.message.as_str().into());
    Json::Object(fields)
}

impl RepositoryDiff {
    pub(super) fn counts(&self) -> Counts {
        let counts = self.deployments.iter().map(DeploymentDiff::counts);
        counts.fold(Counts::default(), Counts::add)
    }

    pub(super) fn differs(&self) -> bool {
        self.deployments.iter().any(|one| !one.changes.is_empty())
    }

    /// Returns the errors, each with its deployment.
    pub(super) fn errors(&self) -> Vec<String> {
        let all = self.deployments.iter().flat_map(|deployment| {
            let errors = deployment.errors.iter();
            errors.map(|error| format!("{}: {}", deployment.name(), error.line()))
        });
        all.collect()
    }

    /// Returns the changes in the form of `weir diff kustomization --recursive`. The errors are left out.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for deployment in &self.deployments {
            let (status, remark) = deployment.status();
            let remark = match remark {
                "" => String::new(),
                remark => format!(": {remark}"),
            };
            let name = deployment.name();
            match (&deployment.state, deployment.changes.is_empty()) {
                (State::Skipped(_), _) => text.push_str(&format!("⚠️ {name} {status}{remark}\n")),
                (State::Compared, true) => {}
                (State::Compared, false) => text.push_str(&format!("📁 {name} changed{remark}\n")),
                (State::Removed, _) => text.push_str(&format!("📁 {name} {status}{remark}\n")),
            }
            text.extend(deployment.changes.iter().map(ObjectChange::lines));
        }
        text
    }

    pub(super) fn to_json(&self) -> Json {
        json!({
            "summary": self.counts().to_json(),
            "deployments": self.deployments.iter().map(DeploymentDiff::to_json).collect::<Vec<_>>(),
        })
    }

    /// Takes objects for created ones if they were refused because their namespace, or their kind, is created by another
    /// deployment.
    pub(super) fn resolve_premature(&mut self) {
        let created = self.deployments.iter().flat_map(|one| &one.changes);
        let created = created.filter(|change| change.effect == Effect::Created);
        let namespaces: HashSet<String> = created
            .filter(|change| change.reference.is("", "Namespace"))
            .map(|change| change.reference.name.clone())
            .collect();
        let kinds = &self.new_kinds;
        let is_expected = |error: &DiffError| {
            error.reference.as_ref().is_some_and(|reference| {
                let has_new_kind = kinds.contains(&(reference.group.clone(), reference.kind.clone()));
                let namespace = reference.namespace.as_ref();
                error.is_premature
                    && (has_new_kind || namespace.is_some_and(|name| namespaces.contains(name)))
            })
        };
        for deployment in &mut self.deployments {
            let (expected, errors) = std::mem::take(&mut deployment.errors)
                .into_iter()
                .partition(&is_expected);
            deployment.errors = errors;
            let expected: Vec<DiffError> = expected;
            let references = expected.iter().filter_map(|error| error.reference.as_ref());
            let created = references.map(|reference| ObjectChange::new(reference, Effect::Created));
            deployment.changes.extend(created);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn change(kind: &str, name: &str, effect: Effect, text: &str) -> ObjectChange {
        ObjectChange {
            text: text.to_owned(),
            ..ObjectChange::new(&ObjectRef::core(kind, "shop", name), effect)
        }
    }

    pub(in super::super) fn deployment(name: &str, changes: Vec<ObjectChange>) -> DeploymentDiff {
        DeploymentDiff {
            changes,
            ..DeploymentDiff::new("Kustomization", ("flux-system".to_owned(), name.to_owned()))
        }
    }

    fn refused(reference: ObjectRef, is_premature: bool) -> DiffError {
        DiffError {
            reference: Some(reference),
            message: "refused".to_owned(),
            is_premature,
        }
    }

    #[test]
    fn texts_and_data_have_changes_and_errors() {
        let drift = "\ndata.color\n± value change\n- blue\n+ red\n\n";
        let mut apps = deployment(
            "apps",
            vec![
                change("ConfigMap", "a", Effect::Drifted, drift),
                change("ConfigMap", "b", Effect::Deleted, ""),
            ],
        );
        apps.errors
            .push(refused(ObjectRef::core("Service", "shop", "web"), false));
        let skipped = DeploymentDiff {
            state: State::Skipped("remote"),
            ..deployment("far", Vec::new())
        };
        let diff = RepositoryDiff {
            deployments: vec![apps, deployment("same", Vec::new()), skipped],
            ..RepositoryDiff::default()
        };
        assert_eq!(
            diff.text(),
            format!(
                "📁 Kustomization/flux-system/apps changed\n► ConfigMap/shop/a drifted\n{drift}► ConfigMap/shop/b deleted\n\
                 ⚠️ Kustomization/flux-system/far skipped: remote\n"
            )
        );
        assert_eq!(
            diff.errors(),
            ["Kustomization/flux-system/apps: Service/shop/web dry-run failed: refused"]
        );
        let json = diff.to_json();
        assert_eq!(
            json["summary"],
            json!({ "created": 0, "changed": 1, "deleted": 1, "failed": 1 })
        );
        let deployments = json["deployments"].as_array().unwrap();
        let states: Vec<&Json> = deployments.iter().map(|one| &one["status"]).collect();
        assert_eq!(states, ["failed", "unchanged", "skipped"]);
        assert_eq!(
            deployments[0]["objects"][0],
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a", "action": "changed", "diff": drift.trim(),
            })
        );
    }

    #[test]
    fn objects_in_new_namespaces_and_of_new_kinds_are_created() {
        let namespace = ObjectRef {
            namespace: None,
            ..ObjectRef::core("Namespace", "", "shop")
        };
        let infra = deployment("infra", vec![ObjectChange::new(&namespace, Effect::Created)]);
        let mut apps = deployment("apps", Vec::new());
        let widget = |namespace: &str| ObjectRef {
            group: "example.com".to_owned(),
            ..ObjectRef::core("Widget", namespace, "w")
        };
        apps.errors = vec![
            refused(ObjectRef::core("ConfigMap", "shop", "a"), true),
            refused(ObjectRef::core("ConfigMap", "shop", "invalid"), false),
            refused(ObjectRef::core("ConfigMap", "other", "b"), true),
            refused(widget("other"), true),
            DiffError::general("no".to_owned()),
        ];
        let mut diff = RepositoryDiff {
            deployments: vec![apps, infra],
            new_kinds: HashSet::from([("example.com".to_owned(), "Widget".to_owned())]),
        };
        diff.resolve_premature();
        let apps = &diff.deployments[0];
        let created: Vec<&str> = apps
            .changes
            .iter()
            .map(|one| one.reference.name.as_str())
            .collect();
        assert_eq!(created, ["a", "w"]);
        assert_eq!(apps.counts().words(), "2 created, 3 failed");
    }
}
