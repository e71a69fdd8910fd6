//! Normalization: brings two states of an object into a form in which only differences that matter are left.

use std::fmt::Display;

use go::regexp::{Pattern, PatternQuota};
use yaml::{Map, Value};

use crate::{
    Error, ObjectRef,
    jsonpath::{JsonPath, Meter},
    meta, path,
    rules::IgnoreRule,
    vocabulary::{Vocabulary, is_marked},
};

/// The rules about differences of an object, as strings.
#[derive(Debug, Clone, Default)]
pub struct IgnoreTexts {
    everything: bool,
    texts: Vec<Text>,
}

#[derive(Debug, Clone)]
struct Text {
    /// Annotation or field of the project.
    origin: String,
    /// A JSON path or a regular expression.
    text: String,
    is_pattern: bool,
}

impl IgnoreTexts {
    /// Reads the annotations of the local object, by the names of the vocabulary, and the rules that match it.
    #[must_use]
    pub fn of<'r>(
        local: &Value,
        vocabulary: &Vocabulary,
        rules: impl IntoIterator<Item = &'r IgnoreRule>,
    ) -> Self {
        let mut all = Self {
            everything: is_marked(local, vocabulary.ignore_diff),
            texts: Vec::new(),
        };
        let reference = ObjectRef::of(local).ok();
        let is_meant = |rule: &&IgnoreRule| {
            reference
                .as_ref()
                .is_some_and(|object| rule.objects.matches(object))
        };
        for rule in rules.into_iter().filter(is_meant) {
            let origin = vocabulary.ignore_diff_rules;
            rule.paths.iter().for_each(|text| all.push(origin, text, false));
            rule.path_patterns
                .iter()
                .for_each(|text| all.push(origin, text, true));
        }
        let names = [
            (vocabulary.ignore_diff_field, false),
            (vocabulary.ignore_diff_field_regex, true),
        ];
        for (name, is_pattern) in names {
            let annotations = name.map(|name| meta::numbered(local, name));
            for (annotation, text) in annotations.unwrap_or_default() {
                all.push(&format!("annotation {annotation}"), text, is_pattern);
            }
        }
        all
    }

    fn push(&mut self, origin: &str, text: &str, is_pattern: bool) {
        self.texts.push(Text {
            origin: origin.to_owned(),
            text: text.to_owned(),
            is_pattern,
        });
    }

    /// Returns true if there is nothing to compile and to search for, so that comparisons take no longer than without rules.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns true if nothing is ignored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.everything && self.texts.is_empty()
    }

    /// Compiles the rules. The patterns have 32 MiB together.
    ///
    /// # Errors
    /// Fails when a JSON path or a regular expression does not parse, or is too large.
    pub fn compile(&self) -> Result<Ignore, Error> {
        let mut ignore = Ignore {
            everything: self.everything,
            ..Ignore::default()
        };
        let mut quota = PatternQuota::default();
        for Text {
            origin,
            text,
            is_pattern,
        } in &self.texts
        {
            match is_pattern {
                false => {
                    let parsed = JsonPath::parse(text).map_err(|reason| path_error(origin, text, &reason))?;
                    ignore.paths.push((origin.clone(), text.clone(), parsed));
                }
                true => {
                    let compiled = quota
                        .compile(text)
                        .map_err(|reason| pattern_error(origin, text, &reason))?;
                    ignore.patterns.push((origin.clone(), text.clone(), compiled));
                }
            }
        }
        Ok(ignore)
    }
}

fn path_error(origin: &str, path: &str, reason: &impl Display) -> Error {
    Error::JsonPath {
        origin: origin.to_owned(),
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

fn pattern_error(origin: &str, pattern: &str, reason: &impl Display) -> Error {
    Error::Pattern {
        origin: origin.to_owned(),
        pattern: pattern.to_owned(),
        reason: reason.to_string(),
    }
}

/// The compiled rules about differences of an object, and the work that all its normalizations have left.
#[derive(Debug, Default)]
pub struct Ignore {
    everything: bool,
    /// With their origins and sources.
    paths: Vec<(String, String, JsonPath)>,
    patterns: Vec<(String, String, Pattern)>,
    meter: Meter,
}

impl Ignore {
    /// Reads and compiles the rules of an object.
    ///
    /// # Errors
    /// As [`IgnoreTexts::compile`].
    pub fn of<'r>(
        local: &Value,
        vocabulary: &Vocabulary,
        rules: impl IntoIterator<Item = &'r IgnoreRule>,
    ) -> Result<Self, Error> {
        IgnoreTexts::of(local, vocabulary, rules).compile()
    }

    fn apply(&mut self, object: &mut Value) -> Result<(), Error> {
        if self.everything {
            *object = Value::Map(Map::new());
            return Ok(());
        }
        for (origin, text, parsed) in &self.paths {
            let found = parsed
                .find_within(object, &mut self.meter)
                .map_err(|reason| path_error(origin, text, &reason))?;
            path::remove_all(object, found);
        }
        if !self.patterns.is_empty() {
            let (patterns, meter) = (&self.patterns, &mut self.meter);
            let mut matching = Vec::new();
            path::each_leaf(object, &mut |leaf, text| {
                if is_ignored(text, patterns, meter)? {
                    matching.push(leaf.to_vec());
                }
                Ok::<_, Error>(())
            })?;
            path::remove_all(object, matching);
        }
        Ok(())
    }
}

fn is_ignored(path: &str, patterns: &[(String, String, Pattern)], meter: &mut Meter) -> Result<bool, Error> {
    for (origin, text, pattern) in patterns {
        let found = meter.is_match(pattern, path);
        if found.map_err(|reason| pattern_error(origin, text, &reason))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the object without the fields that the API server and controllers add, and without the ignored ones.
///
/// # Errors
/// Fails when the ignored JSON paths match too many values, or the patterns search too much text, in all states of the object together.
pub fn normalize(object: &Value, ignore: &mut Ignore) -> Result<Value, Error> {
    let mut object = object.clone();
    whole_numbers(&mut object);
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let Some(root) = object.as_map_mut() {
        root.remove("status");
        normalize_metadata(root);
    }
    for labels in [
        &["spec", "template", "metadata", "labels"][..],
        &["spec", "selector", "matchLabels"],
    ] {
        if let Some(labels) = object.pointer_mut(labels).and_then(Value::as_map_mut) {
            labels.remove("controller-uid");
            labels.remove("batch.kubernetes.io/controller-uid");
        }
    }
    match kind.as_str() {
        "Deployment" | "StatefulSet" | "DaemonSet" | "Job" => {
            let containers = object.pointer_mut(&["spec", "template", "spec", "containers"]);
            for container in containers.and_then(Value::as_seq_mut).into_iter().flatten() {
                normalize_environment(container);
            }
        }
        "Secret" | "ConfigMap" => drop_empty_data(&mut object),
        "ServiceAccount" => drop_generated_secrets(&mut object),
        _ => {}
    }
    ignore.apply(&mut object)?;
    Ok(object)
}

/// Turns whole numbers into integers, so that `1` and `1.0` are equal.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Float(float) if float.fract() == 0.0 && float.abs() < 9e15 => {
            *value = Value::Int(*float as i64);
        }
        Value::Map(map) => map.values_mut().for_each(whole_numbers),
        Value::Seq(items) => items.iter_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn normalize_metadata(root: &mut Map) {
    let Some(metadata) = root.get_or_insert_map("metadata") else {
        return;
    };
    for field in [
        "managedFields",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "selfLink",
        "uid",
    ] {
        metadata.remove(field);
    }
    metadata.get_or_insert_map("labels");
    if let Some(annotations) = metadata.get_or_insert_map("annotations") {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// Turns lists of environment variables into maps by name, so that a difference names the variable.
fn normalize_environment(container: &mut Value) {
    let Some(container) = container.as_map_mut() else {
        return;
    };
    if let Some(by_name) = container
        .get("env")
        .and_then(Value::as_seq)
        .and_then(variables_by_name)
    {
        container.insert("env", by_name);
    }
    if let Some(sources) = container
        .get("envFrom")
        .and_then(Value::as_seq)
        .map(sources_by_name)
    {
        container.insert("envFrom", sources);
    }
}

fn variables_by_name(list: &[Value]) -> Option<Map> {
    let mut map = Map::new();
    for variable in list {
        let name = variable.get("name")?.as_str()?;
        if map.insert(name, variable.clone()).is_some() {
            return None;
        }
    }
    Some(map)
}

fn sources_by_name(list: &[Value]) -> Map {
    let mut map = Map::new();
    let mut unknown = Vec::new();
    for source in list {
        let key = ["configMapRef", "secretRef"]
            .into_iter()
            .find_map(|kind| Some(format!("{kind}/{}", source.pointer(&[kind, "name"])?.as_str()?)));
        match key {
            Some(key) => {
                map.insert(key, source.clone());
            }
            None => unknown.push(source.clone()),
        }
    }
    if !unknown.is_empty() {
        map.insert("unknown", unknown);
    }
    map
}

fn drop_empty_data(object: &mut Value) {
    let Some(root) = object.as_map_mut() else { return };
    if root
        .get("data")
        .is_some_and(|data| data.is_null() || data.as_map().is_some_and(Map::is_empty))
    {
        root.remove("data");
    }
}

/// Removes the names of generated token Secrets, which old clusters add.
fn drop_generated_secrets(object: &mut Value) {
    let prefix = format!("{}-", meta::text(object, "name").unwrap_or_default());
    let Some(secrets) = object.get_mut("secrets").and_then(Value::as_seq_mut) else {
        return;
    };
    secrets.retain(|secret| {
        secret
            .get("name")
            .and_then(Value::as_str)
            .is_some_and(|name| !name.starts_with(&prefix))
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::tests::EXAMPLE;
    use serde_json::{Value as Json, json};

    #[track_caller]
    fn check(object: Json, expected: Json) {
        let mut expected = expected;
        for field in ["labels", "annotations"] {
            if expected["metadata"].get(field).is_none() {
                expected["metadata"][field] = json!({});
            }
        }
        let normalized = normalize(&Value::from_json(object), &mut Ignore::default()).unwrap();
        assert_eq!(normalized, Value::from_json(expected));
    }

    #[test]
    fn normalize_drops_fields_of_the_server() {
        check(
            json!({"kind": "A", "status": {"x": 1}, "spec": {"n": 2.0}, "metadata": {"name": "a", "uid": "u",
                "resourceVersion": "1", "generation": 3, "creationTimestamp": "now", "managedFields": [],
                "selfLink": "/", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "k": "v"}}}),
            json!({"kind": "A", "spec": {"n": 2}, "metadata": {"name": "a", "annotations": {"k": "v"}}}),
        );
        check(
            json!({"kind": "Job", "spec": {"selector": {"matchLabels": {"controller-uid": "u", "a": "b"}},
                "template": {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": "u"}}}}}),
            json!({"kind": "Job", "metadata": {}, "spec": {"selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {}}}}}),
        );
    }

    #[test]
    fn normalize_knows_the_lists_of_kinds() {
        check(
            json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [{
                "env": [{"name": "A", "value": "1"}, {"name": "B"}],
                "envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "c"}}, {"prefix": "p"}]}]}}}}),
            json!({"kind": "Deployment", "metadata": {}, "spec": {"template": {"spec": {"containers": [{
                "env": {"A": {"name": "A", "value": "1"}, "B": {"name": "B"}},
                "envFrom": {"secretRef/s": {"secretRef": {"name": "s"}},
                    "configMapRef/c": {"configMapRef": {"name": "c"}}, "unknown": [{"prefix": "p"}]}}]}}}}),
        );
        check(
            json!({"kind": "ConfigMap", "data": {}}),
            json!({"kind": "ConfigMap", "metadata": {}}),
        );
        check(
            json!({"kind": "Secret", "data": null}),
            json!({"kind": "Secret", "metadata": {}}),
        );
        check(
            json!({"kind": "ServiceAccount", "metadata": {"name": "s"},
                "secrets": [{"name": "s-token"}, {}, {"name": "mine"}]}),
            json!({"kind": "ServiceAccount", "metadata": {"name": "s"}, "secrets": [{"name": "mine"}]}),
        );
    }

    #[test]
    fn annotations_ignore_fields() {
        let annotated = |name: &str, value: &str| {
            Value::from_json(
                json!({"kind": "A", "metadata": {"annotations": {name: value}}, "spec": {"aa": 1, "bb": [1]}}),
            )
        };
        for (name, value, expected) in [
            ("example.com/ignore-diff-field", "spec.aa", json!({"bb": [1]})),
            ("example.com/ignore-diff-field-2", "spec.*", json!({})),
            (
                "example.com/ignore-diff-field-regex",
                r"spec\.b",
                json!({"aa": 1, "bb": []}),
            ),
            (
                "example.com/ignore-diff-field-regex",
                "nothing",
                json!({"aa": 1, "bb": [1]}),
            ),
        ] {
            let local = annotated(name, value);
            let normalized = normalize(&local, &mut Ignore::of(&local, &EXAMPLE, &[]).unwrap()).unwrap();
            assert_eq!(
                normalized.get("spec"),
                Some(&Value::from_json(expected)),
                "{name}: {value}"
            );
        }
        let local = annotated("example.com/ignore-diff", "true");
        assert_eq!(
            normalize(&local, &mut Ignore::of(&local, &EXAMPLE, &[]).unwrap()).unwrap(),
            Value::from_json(json!({}))
        );
        assert!(Ignore::of(&annotated("example.com/ignore-diff-field", "a-b"), &EXAMPLE, &[]).is_err());
        assert!(
            Ignore::of(
                &annotated("example.com/ignore-diff-field-regex", "("),
                &EXAMPLE,
                &[]
            )
            .is_err()
        );
    }

    #[test]
    fn rules_ignore_fields_of_matching_objects() {
        let object = Value::from_json(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c",
            "labels": {"example.com/tag-0": "a", "team": "t"}}, "data": {"a": "1", "bb": "2"}}),
        );
        let rule = |kind: &str, path: &str, pattern: &str| IgnoreRule {
            objects: crate::rules::ObjectPattern {
                kind: Some(kind.to_owned()),
                ..Default::default()
            },
            paths: Some(path.to_owned())
                .filter(|path| !path.is_empty())
                .into_iter()
                .collect(),
            path_patterns: Some(pattern.to_owned())
                .filter(|pattern| !pattern.is_empty())
                .into_iter()
                .collect(),
        };
        let mut rules = vec![
            rule("Secret", "data.bb", ""),
            rule("ConfigMap", "", r#"\["a"\]$"#),
        ];
        rules.push(rule("ConfigMap", "", r#"^metadata\.labels\["example"#));
        let normalized = normalize(&object, &mut Ignore::of(&object, &EXAMPLE, &rules).unwrap()).unwrap();
        assert_eq!(
            normalized.get("data"),
            Some(&Value::from_json(json!({"bb": "2"})))
        );
        assert_eq!(
            normalized.pointer(&["metadata", "labels"]),
            Some(&Value::from_json(json!({"team": "t"})))
        );
        let broken = Ignore::of(&object, &EXAMPLE, &[rule("ConfigMap", "a-b", "")]).unwrap_err();
        assert!(
            broken
                .to_string()
                .starts_with("ignoreForDiff: 'a-b' is not a valid JSON path"),
            "{broken}"
        );
    }
}
