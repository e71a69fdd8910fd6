//! The fields of applied objects that are left to others.

use std::collections::BTreeMap;

use api::{
    Fault, Reason,
    kustomize::{IgnoreRule, ObjectSelector},
};
use apply::IgnoredFields;
use go::regexp::{Pattern, PatternQuota, RegexpError};
use kustomize::{InvalidSelector, LabelSelector};
use limits::compute;
use objects::{
    Error, ObjectRef,
    ignored::{InvalidPointer, Pointer},
    jsonpath::Meter,
    meta,
};
use yaml::Value;

use crate::check;

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
    /// Group, version, kind, name and namespace.
    identity: [Option<(String, Pattern)>; 5],
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl IgnoreRules {
    /// Compiles the rules of a Kustomization on a thread of its namespace; `None` if there are none.
    ///
    /// # Errors
    /// A stalling fault if a pointer, a pattern or a selector is invalid, or the patterns are too large; one that is retried if there is no
    /// thread.
    pub async fn compile_for(namespace: &str, rules: &[IgnoreRule]) -> Result<Option<Self>, Fault> {
        if rules.is_empty() {
            return Ok(None);
        }
        let rules = rules.to_vec();
        let compiled = compute(namespace, move |_| Self::compile(&rules));
        let missing = || Fault::retry(Reason::InternalError, "the ignore rules cannot be compiled now");
        let compiled = compiled.await.ok_or_else(missing)?;
        compiled.map_err(|error| check::invalid_ignored(&error))
    }

    /// Compiles rules; `None` if there are none. Their patterns have 32 MiB together.
    ///
    /// # Errors
    /// If a pointer, a pattern or a selector is invalid, or the patterns are too large.
    pub fn compile(rules: &[IgnoreRule]) -> Result<Option<Self>, InvalidRule> {
        if rules.is_empty() {
            return Ok(None);
        }
        let mut quota = PatternQuota::default();
        let compiled = rules.iter().enumerate().map(|(at, rule)| {
            let paths = rule.paths.iter().map(|path| Pointer::parse(path));
            let target = rule.target.as_ref();
            let target = target.map(|target| Target::compile(at, target, &mut quota));
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
    fn of(&self, manifest: &Value, live: &Value) -> Result<Vec<Pointer>, Error> {
        let (reference, mut meter) = (ObjectRef::of(manifest)?, Meter::default());
        let mut pointers = Vec::new();
        for rule in &self.0 {
            let is_meant = match &rule.target {
                Some(target) => target.fits(&reference, (manifest, live), &mut meter)?,
                None => true,
            };
            if is_meant {
                pointers.extend(rule.paths.iter().cloned());
            }
        }
        Ok(pointers)
    }
}

impl Target {
    fn compile(at: usize, target: &ObjectSelector, quota: &mut PatternQuota) -> Result<Self, InvalidRule> {
        let mut pattern = |field, text: &Option<String>| {
            let Some(text) = text.as_deref().filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            let compiled = quota.compile(&format!("^(?:{text})$"));
            let compiled = compiled.map_err(|error| InvalidRule::Pattern { at, field, error })?;
            Ok(Some((text.to_owned(), compiled)))
        };
        let selector = |field, text: &Option<String>| {
            let parsed = LabelSelector::parse(text.as_deref().unwrap_or_default());
            parsed.map_err(|error| InvalidRule::Selector { at, field, error })
        };
        Ok(Self {
            identity: [
                pattern("group", &target.group)?,
                pattern("version", &target.version)?,
                pattern("kind", &target.kind)?,
                pattern("name", &target.name)?,
                pattern("namespace", &target.namespace)?,
            ],
            labels: selector("labelSelector", &target.label_selector)?,
            annotations: selector("annotationSelector", &target.annotation_selector)?,
        })
    }

    /// Returns true if an object is selected. Its labels and annotations are those that it has after an apply, as in the original. Fails when
    /// the patterns search too much text.
    fn fits(
        &self,
        reference: &ObjectRef,
        (manifest, live): (&Value, &Value),
        meter: &mut Meter,
    ) -> Result<bool, Error> {
        let texts = [
            reference.group.as_str(),
            &reference.version,
            &reference.kind,
            &reference.name,
            reference.namespace.as_deref().unwrap_or_default(),
        ];
        for (pattern, text) in self.identity.iter().zip(texts) {
            let Some((source, pattern)) = pattern else {
                continue;
            };
            let found = meter.is_match(pattern, text).map_err(|reason| Error::Pattern {
                origin: "spec.ignore[].target".to_owned(),
                pattern: source.clone(),
                reason: reason.to_string(),
            });
            if !found? {
                return Ok(false);
            }
        }
        let selects = |selector: &LabelSelector, field: &str| {
            selector.is_empty() || selector.fits(&strings(field, [live, manifest]))
        };
        Ok(selects(&self.labels, "labels") && selects(&self.annotations, "annotations"))
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
            .unwrap()
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
    fn patterns_of_all_rules_share_their_memory_and_their_work() {
        let rules = |count: usize, name: &str| {
            let rule = |_| json!({ "paths": ["/spec"], "target": { "name": name } });
            compile((0..count).map(rule).collect())
        };
        let refused = rules(2_000, "(a|b){1000}x?").unwrap_err().to_string();
        assert!(refused.contains("too many"), "{refused}");
        let rules = rules(100, "(?:a?){900}(?:a?){900}b").unwrap().unwrap();
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a".repeat(100_000) },
        });
        let object = Value::from_json(object);
        let refused = rules.of(&object, &object).unwrap_err().to_string();
        assert!(refused.contains("too much text"), "{refused}");
    }

    #[tokio::test]
    async fn rules_are_compiled_on_another_thread_and_invalid_ones_stall() {
        // They take much longer than a poll.
        let costly = json!({ "paths": ["/a"], "target": { "name": "(?:a?){900}(?:a?){900}b" } });
        let mut rules = vec![costly; 20];
        rules.push(json!({ "paths": ["a.b"] }));
        let rules: Vec<IgnoreRule> = serde_json::from_value(Json::Array(rules)).unwrap();
        let mut compiled = Box::pin(IgnoreRules::compile_for("apps", &rules));
        assert!(futures::FutureExt::now_or_never(&mut compiled).is_none());
        let fault = compiled.await.unwrap_err();
        assert_eq!(
            (fault.class, fault.reason),
            (api::Class::Stall, Reason::InvalidSpec)
        );
        assert_eq!(
            fault.message,
            "spec.ignore[20].paths: \"a.b\" is not a JSON pointer: it has to begin with '/', as in '/spec/replicas'"
        );
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
