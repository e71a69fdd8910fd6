//! The fields of applied objects that are left to others. Pure.

use std::collections::BTreeMap;

use api::kustomize::{IgnoreRule, ObjectSelector};
use apply::IgnoredFields;
use go::regexp::{Regexp, RegexpError};
use kustomize::{InvalidSelector, LabelSelector};
use objects::{
    ObjectRef,
    ignored::{InvalidPointer, Pointer},
    meta,
};
use yaml::Value;

/// A rule that is not valid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRule {
    #[error("ignore[{at}].paths: {error}")]
    Path { at: usize, error: InvalidPointer },
    #[error("ignore[{at}].target.{field}: {error}")]
    Pattern {
        at: usize,
        field: &'static str,
        error: RegexpError,
    },
    #[error("ignore[{at}].target.{field}: {error}")]
    Selector {
        at: usize,
        field: &'static str,
        error: InvalidSelector,
    },
}

/// The compiled rules of a spec.
#[derive(Debug)]
pub struct IgnoreRules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    paths: Vec<Pointer>,
    /// All objects if absent.
    target: Option<Target>,
}

#[derive(Debug)]
struct Target {
    group: Option<Regexp>,
    version: Option<Regexp>,
    kind: Option<Regexp>,
    name: Option<Regexp>,
    namespace: Option<Regexp>,
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl IgnoreRules {
    /// Compiles rules; `None` if there are none.
    ///
    /// # Errors
    /// If a pointer, a pattern or a selector is invalid.
    pub fn compile(rules: &[IgnoreRule]) -> Result<Option<Self>, InvalidRule> {
        if rules.is_empty() {
            return Ok(None);
        }
        let compiled = rules.iter().enumerate().map(|(at, rule)| {
            let paths = rule.paths.iter().map(|path| Pointer::parse(path));
            let target = rule.target.as_ref().map(|target| Target::compile(at, target));
            Ok(Rule {
                paths: paths
                    .collect::<Result<_, _>>()
                    .map_err(|error| InvalidRule::Path { at, error })?,
                target: target.transpose()?,
            })
        });
        compiled.collect::<Result<_, _>>().map(|rules| Some(Self(rules)))
    }
}

impl IgnoredFields for IgnoreRules {
    fn of(&self, manifest: &Value, live: &Value) -> Vec<Pointer> {
        let Ok(reference) = ObjectRef::of(manifest) else {
            return Vec::new();
        };
        let meant = self.0.iter().filter(|rule| {
            let target = rule.target.as_ref();
            target.is_none_or(|target| target.fits(&reference, (manifest, live)))
        });
        meant.flat_map(|rule| rule.paths.iter().cloned()).collect()
    }
}

impl Target {
    fn compile(at: usize, target: &ObjectSelector) -> Result<Self, InvalidRule> {
        let pattern = |field, text: &Option<String>| {
            let text = text.as_deref().filter(|text| !text.is_empty());
            let compiled = text.map(|text| Regexp::compile(&format!("^(?:{text})$")));
            compiled
                .transpose()
                .map_err(|error| InvalidRule::Pattern { at, field, error })
        };
        let selector = |field, text: &Option<String>| {
            let parsed = LabelSelector::parse(text.as_deref().unwrap_or_default());
            parsed.map_err(|error| InvalidRule::Selector { at, field, error })
        };
        Ok(Self {
            group: pattern("group", &target.group)?,
            version: pattern("version", &target.version)?,
            kind: pattern("kind", &target.kind)?,
            name: pattern("name", &target.name)?,
            namespace: pattern("namespace", &target.namespace)?,
            labels: selector("labelSelector", &target.label_selector)?,
            annotations: selector("annotationSelector", &target.annotation_selector)?,
        })
    }

    /// Returns true if an object is selected. Its labels and annotations are those that it has after an apply, as in the original.
    fn fits(&self, reference: &ObjectRef, (manifest, live): (&Value, &Value)) -> bool {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let identity = [
            (&self.group, reference.group.as_str()),
            (&self.version, &reference.version),
            (&self.kind, &reference.kind),
            (&self.name, &reference.name),
            (&self.namespace, namespace),
        ];
        let is_meant =
            |(pattern, text): (&Option<Regexp>, &str)| pattern.as_ref().is_none_or(|one| one.is_match(text));
        let selects = |selector: &LabelSelector, field: &str| {
            selector.is_empty() || selector.fits(&strings(field, [live, manifest]))
        };
        identity.into_iter().all(is_meant)
            && selects(&self.labels, "labels")
            && selects(&self.annotations, "annotations")
    }
}

/// Returns the strings of a map in the metadata of objects; later ones take precedence.
fn strings(field: &str, objects: [&Value; 2]) -> BTreeMap<String, String> {
    let maps = objects
        .into_iter()
        .filter_map(|object| meta::metadata(object)?.get_map(field));
    let entries = maps.flat_map(|map| map.iter());
    let entries = entries.filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())));
    entries.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn compile(rules: Json) -> Result<Option<IgnoreRules>, InvalidRule> {
        let rules: Vec<IgnoreRule> = serde_json::from_value(rules).unwrap();
        IgnoreRules::compile(&rules)
    }

    fn ignored(target: Json) -> usize {
        let mut rule = json!({ "paths": ["/spec/replicas", "/spec/paused"] });
        if !target.is_null() {
            rule["target"] = target;
        }
        let rules = compile(json!([rule])).unwrap().unwrap();
        let object = |labels: Json| {
            Value::from_json(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": "shop-1", "namespace": "apps", "labels": labels, "annotations": { "a": "b" } },
            }))
        };
        rules
            .of(
                &object(json!({ "app": "shop" })),
                &object(json!({ "app": "x", "team": "t" })),
            )
            .len()
    }

    #[test]
    fn rules_are_for_the_objects_of_their_targets() {
        for (target, meant) in [
            (json!(null), true),
            (json!({}), true),
            (
                json!({ "kind": "Deployment", "group": "apps", "version": "v1" }),
                true,
            ),
            (json!({ "kind": "Deploy" }), false),
            (json!({ "name": "shop-.*", "namespace": "app|apps" }), true),
            (json!({ "namespace": "app" }), false),
            (json!({ "group": "batch" }), false),
            (json!({ "labelSelector": "app=shop,team" }), true),
            (json!({ "labelSelector": "!team" }), false),
            (json!({ "annotationSelector": "a in (b,c)" }), true),
            (json!({ "annotationSelector": "a=c" }), false),
        ] {
            assert_eq!(ignored(target.clone()), if meant { 2 } else { 0 }, "{target}");
        }
    }

    #[test]
    fn invalid_rules_are_refused() {
        assert!(compile(json!([])).unwrap().is_none());
        for (rule, expected) in [
            (
                json!({ "paths": ["a"] }),
                "ignore[0].paths: \"a\" is not a JSON pointer",
            ),
            (
                json!({ "paths": ["/a"], "target": { "kind": "(" } }),
                "ignore[0].target.kind: error parsing regexp",
            ),
            (
                json!({ "paths": ["/a"], "target": { "labelSelector": "a=b=c" } }),
                "ignore[0].target.labelSelector: ",
            ),
            (
                json!({ "paths": ["/metadata/name"] }),
                "ignore[0].paths: \"/metadata/name\" covers the identity",
            ),
        ] {
            let error = compile(json!([rule])).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
