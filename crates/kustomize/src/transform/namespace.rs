//! Puts the objects into a namespace.

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
};

use serde::Deserialize;
use yaml::{
    Node,
    node::{Content, Tag},
};

use super::{decode, set};
use crate::{
    Error,
    error::{Context as _, Step},
    fieldspec::{Create, FieldSpec},
    id::Id,
    model::{Field, configs},
    resmap::ResMap,
    resource::Resource,
    transform::{PluginContext, Transformer},
};

const OWN: FieldSpec = FieldSpec::row("", "", "", NAMESPACE, true);
const NAMESPACE: &str = "metadata/namespace";
const NAME: &str = "metadata/name";
const SUBJECTS: &str = "subjects/namespace";

/// The subjects of role bindings that get the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subjects {
    /// quirk: those that are named `default`, be they service accounts or not.
    NamedDefault,
    ServiceAccounts,
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    namespace: String,
    specs: Vec<FieldSpec>,
    subjects: Subjects,
    unset_only: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    metadata: Metadata,
    field_specs: Vec<Field>,
    unset_only: bool,
    set_role_binding_subjects: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
}

impl Namespace {
    /// Makes the transformer of `namespace`.
    pub(crate) fn new(namespace: &str, specs: &[FieldSpec]) -> Self {
        Self {
            namespace: namespace.to_owned(),
            specs: specs.to_vec(),
            subjects: Subjects::NamedDefault,
            unset_only: false,
        }
    }

    /// Reads a `NamespaceTransformer`. Fails if a value is of the wrong type, or for unknown subjects.
    pub(crate) fn from_config(config: &yaml::Value) -> Result<Self, Error> {
        let settings: Settings = decode::config(config, &configs::NAMESPACE)
            .context(|| "unmarshalling NamespaceTransformer config")?;
        let subjects = match settings.set_role_binding_subjects.as_str() {
            "" | "defaultOnly" => Subjects::NamedDefault,
            "allServiceAccounts" => Subjects::ServiceAccounts,
            "none" => Subjects::None,
            other => {
                let problem = format!(
                    "invalid value {other:?} for setRoleBindingSubjects: must be one of \"defaultOnly\", \
                     \"none\" or \"allServiceAccounts\""
                );
                return Err(Error::new(Step::Plugin, problem));
            }
        };
        Ok(Self {
            namespace: settings.metadata.namespace,
            specs: settings.field_specs.into_iter().map(FieldSpec::from).collect(),
            subjects,
            unset_only: settings.unset_only,
        })
    }

    /// Puts one object into the namespace, without a new identity in its history.
    pub(super) fn apply(&self, resource: &mut Resource) -> Result<(), Error> {
        if !resource.id().is_cluster_scoped() {
            set::visit(resource, &OWN, Create::Scalar(None), &mut |node| self.set(node))?;
        }
        let binds = matches!(&*resource.gvk().kind, "RoleBinding" | "ClusterRoleBinding");
        if binds && self.subjects != Subjects::None {
            self.set_subjects(resource.node_mut())
                .context(|| "setting namespace on (cluster)role binding subjects")?;
        }
        // A namespace is renamed itself, but only if its kind is the built-in one.
        let is_core = resource.gvk().group.is_empty() && resource.gvk().version == "v1";
        let applies = |spec: &&FieldSpec| match &*spec.path {
            NAMESPACE => false,
            NAME => is_core,
            SUBJECTS => !(binds && matches!(&*spec.gvk.kind, "RoleBinding" | "ClusterRoleBinding")),
            _ => true,
        };
        for spec in self.specs.iter().filter(applies) {
            self.set_field(resource, spec)?;
        }
        Ok(())
    }

    fn set_field(&self, resource: &mut Resource, spec: &FieldSpec) -> Result<(), Error> {
        let mut is_scalar = true;
        let set = set::visit(resource, spec, Create::Scalar(Some(Tag::Str)), &mut |node| {
            is_scalar = matches!(node.content, Content::Scalar(_));
            self.set(node)
        });
        set.context(|| match is_scalar {
            true => "namespace transformation failed",
            false => "namespace field specs must target scalar nodes",
        })
    }

    fn set(&self, node: &mut Node) -> Result<(), Error> {
        if self.unset_only && node.as_text().is_some_and(|text| !text.is_empty()) {
            return Ok(());
        }
        set::scalar(node, &self.namespace, Some(Tag::Str))
    }

    fn set_subjects(&self, object: &mut Node) -> Result<(), Error> {
        let Some(subjects) = object.get_mut("subjects").filter(|subjects| !subjects.is_null()) else {
            return Ok(());
        };
        let Content::Seq(subjects) = &mut subjects.content else {
            return Err(set::wrong_kind("SequenceNode", subjects));
        };
        let (key, wanted) = match self.subjects {
            Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
            _ => ("name", "default"),
        };
        for subject in subjects.iter_mut().filter(|subject| !subject.is_null()) {
            let is_wanted = has(subject, key, wanted);
            if is_wanted.context(|| format!("looking up {key} on (cluster)role binding subject"))? {
                self.set_subject(subject)?;
            }
        }
        Ok(())
    }

    fn set_subject(&self, subject: &mut Node) -> Result<(), Error> {
        if let Some(namespace) = subject.get_mut("namespace") {
            return self.set(namespace);
        }
        subject.set("namespace", Node::string(self.namespace.as_str()));
        Ok(())
    }
}

fn has(subject: &Node, key: &str, wanted: &str) -> Result<bool, Error> {
    let Some(map) = subject.as_map() else {
        return Err(set::wrong_kind("MappingNode", subject));
    };
    match map.get(key).filter(|value| !value.is_null()) {
        None => Ok(false),
        Some(value) if value.as_scalar().is_none() => Err(set::wrong_kind("ScalarNode", value)),
        Some(value) => Ok(value.as_text() == Some(wanted)),
    }
}

impl Transformer for Namespace {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        if self.namespace.is_empty() {
            return Ok(());
        }
        for resource in resources.iter_mut() {
            ctx.step(self.specs.len())?;
            ctx.grow(&self.namespace)?;
            if resource.is_empty() || resource.history.from_helm {
                continue;
            }
            resource.store_previous_id();
            self.apply(resource)?;
        }
        all_different(resources)
    }
}

/// Fails if two objects of one name, which came from different namespaces, are equal by now.
fn all_different(resources: &ResMap) -> Result<(), Error> {
    let mut seen: HashMap<&Arc<Id>, &Resource> = HashMap::with_capacity(resources.len());
    for resource in resources.iter().filter(|resource| !resource.is_empty()) {
        match seen.entry(resource.id()) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(resource);
            }
            hash_map::Entry::Occupied(entry) => {
                let was = |resource: &Resource| resource.previous_ids().next_back().unwrap_or_default();
                let problem = format!(
                    "namespace transformation produces ID conflict: [{} {}] are both {} now",
                    was(entry.get()),
                    was(resource),
                    resource.id()
                );
                return Err(Error::new(Step::Transformer, problem));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::testing::{self, transformed, transformed_all};

    fn namespace() -> Namespace {
        let rows = [
            FieldSpec::row("", "", "Namespace", NAME, true),
            FieldSpec::row("", "", "APIService", "spec/service/namespace", true),
            testing::row("spec/ref/namespace", false),
        ];
        Namespace::new("team", &rows)
    }

    fn changed(object: &str) -> String {
        transformed(object, &namespace())
    }

    #[test]
    fn objects_are_put_into_the_namespace() {
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, namespace: old}}";
        assert!(changed(object).ends_with("metadata:\n  name: x\n  namespace: team\n"));
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {ref: [{namespace: o}, {b: c}]}}";
        let expected = "name: x\n  namespace: team\nspec:\n  ref:\n  - namespace: team\n  - b: c\n";
        assert!(changed(object).ends_with(expected));
        let numeric = Namespace::new("123", &[]);
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, namespace: null}}";
        assert!(transformed(object, &numeric).ends_with("namespace: \"123\"\n"));
    }

    #[test]
    fn namespace_objects_are_renamed_and_other_cluster_kinds_unchanged() {
        let object = "{apiVersion: v1, kind: Namespace, metadata: {name: x}}";
        assert!(changed(object).ends_with("metadata:\n  name: team\n"));
        let object = "{apiVersion: example.com/v1, kind: Namespace, metadata: {name: x}}";
        assert!(changed(object).ends_with("metadata:\n  name: x\n  namespace: team\n"));
        let object = "{apiVersion: v1, kind: Node, metadata: {name: x}}";
        assert!(changed(object).ends_with("metadata:\n  name: x\n"));
    }

    #[test]
    fn namespace_change_records_the_earlier_identity() {
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, namespace: old}}";
        let resources = transformed_all(object, &[&namespace()]).unwrap();
        let resource = resources.get(0).unwrap();
        assert_eq!(resource.original_id().to_string(), "A.v1.[noGrp]/x.old");
        assert_eq!(resource.namespace(), "team");
    }

    const BINDING: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x},
        subjects: [{kind: User, name: default}, {kind: ServiceAccount, name: sa}, {kind: ServiceAccount, name: b, namespace: c}]}";

    fn subjects(mode: &str) -> String {
        let config = format!("{{metadata: {{namespace: team}}, setRoleBindingSubjects: {mode}}}");
        let namespace = Namespace::from_config(&testing::config(&config)).unwrap();
        let text = transformed(BINDING, &namespace);
        text.split_once("subjects:\n").unwrap().1.to_owned()
    }

    #[test]
    fn subjects_get_the_namespace_by_mode() {
        let user = "- kind: User\n  name: default\n";
        let account = "- kind: ServiceAccount\n  name: sa\n";
        let other = "- kind: ServiceAccount\n  name: b\n  namespace: c\n";
        let team = "  namespace: team\n";
        assert_eq!(subjects("''"), format!("{user}{team}{account}{other}"));
        assert_eq!(subjects("defaultOnly"), format!("{user}{team}{account}{other}"));
        assert_eq!(subjects("none"), format!("{user}{account}{other}"));
        let b = "- kind: ServiceAccount\n  name: b\n";
        assert_eq!(
            subjects("allServiceAccounts"),
            format!("{user}{account}{team}{b}{team}")
        );
        let config = testing::config("{setRoleBindingSubjects: some}");
        let error = Namespace::from_config(&config).unwrap_err().to_string();
        assert!(
            error.contains("invalid value \"some\" for setRoleBindingSubjects"),
            "{error}"
        );
    }

    #[test]
    fn invalid_subjects_are_refused() {
        let object = "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, subjects: [5]}";
        assert_eq!(
            changed(object),
            "setting namespace on (cluster)role binding subjects: looking up name on (cluster)role binding \
             subject: wrong node kind: expected MappingNode but got ScalarNode"
        );
        let object = object.replace("[5]", "{}");
        assert!(changed(&object).ends_with("expected SequenceNode but got MappingNode"));
    }

    #[test]
    fn existing_namespaces_may_stay() {
        let config = testing::config("{metadata: {namespace: team}, unsetOnly: true}");
        let namespace = Namespace::from_config(&config).unwrap();
        let object =
            |own: &str| format!("{{apiVersion: v1, kind: A, metadata: {{name: x, namespace: {own}}}}}");
        assert!(transformed(&object("old"), &namespace).ends_with("namespace: old\n"));
        for unset in ["null", "''"] {
            assert!(
                transformed(&object(unset), &namespace).ends_with("namespace: team\n"),
                "{unset}"
            );
        }
    }

    #[test]
    fn objects_that_become_equal_are_refused() {
        let objects = "{apiVersion: v1, kind: A, metadata: {name: x, namespace: a}}\n---\n\
            {apiVersion: v1, kind: A, metadata: {name: x, namespace: b}}";
        assert_eq!(
            changed(objects),
            "namespace transformation produces ID conflict: [A.v1.[noGrp]/x.a A.v1.[noGrp]/x.b] are both \
             A.v1.[noGrp]/x.team now"
        );
    }

    #[test]
    fn fields_that_are_not_scalars_are_refused() {
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {ref: {namespace: {}}}}";
        let error = changed(object);
        assert!(
            error.starts_with("namespace field specs must target scalar nodes: considering"),
            "{error}"
        );
    }

    #[test]
    fn namespaces_set_by_helm_stay() {
        let mut resources =
            testing::objects("{apiVersion: v1, kind: A, metadata: {name: x, namespace: chart}}");
        for resource in resources.iter_mut() {
            resource.history.from_helm = true;
        }
        testing::ctx(&[], crate::Profile::default(), |ctx| {
            namespace().transform(&mut resources, ctx)
        })
        .unwrap();
        assert!(testing::text(&resources).ends_with("namespace: chart\n"));
    }
}
