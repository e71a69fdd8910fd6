//! The variables of a substitution, from the spec and from ConfigMaps and Secrets of its namespace.

use std::{collections::BTreeMap, iter, ops::Range};

use api::kustomize::{KustomizationSpec, SubstituteReference};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use yaml::Value;

/// The pattern of names, as messages have it.
const NAME: &str = "^[_[:alpha:]][_[:alpha:][:digit:]]*$";
/// Text in place of a secret string.
const MASK: &str = "*****";

/// Reads ConfigMaps and Secrets.
pub trait ReadConfigs: Send {
    /// Reads an object of kind ConfigMap or Secret; `None` if it does not exist.
    fn read(
        &mut self,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<Value>, cluster::Error>> + Send;
}

/// The variables, and the values of Secrets among them, which are not shown.
#[derive(Clone, Default)]
pub struct Variables {
    pub values: BTreeMap<String, String>,
    pub secrets: Vec<String>,
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Variables {
    /// Replaces the values of Secrets in a message.
    #[must_use]
    pub fn redact(&self, message: &str) -> String {
        redact(message, &self.secrets)
    }
}

/// Replaces secret strings in a message. Where some overlap, or one contains another, all that any of them covers is replaced. Pure.
#[must_use]
pub fn redact(message: &str, secrets: &[String]) -> String {
    let found = secrets.iter().flat_map(|secret| occurrences(message, secret));
    let mut covered: Vec<Range<usize>> = found.collect();
    covered.sort_unstable_by_key(|range| range.start);
    let (mut redacted, mut end) = (String::with_capacity(message.len()), 0);
    for range in covered {
        if range.start >= end {
            redacted.push_str(message.get(end..range.start).unwrap_or_default());
            redacted.push_str(MASK);
        }
        end = end.max(range.end);
    }
    redacted.push_str(message.get(end..).unwrap_or_default());
    redacted
}

/// Returns all occurrences of a string, which may overlap; none of an empty one.
fn occurrences<'t>(text: &'t str, searched: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
    let mut from = 0;
    iter::from_fn(move || {
        let first = searched.chars().next()?;
        let start = from + text.get(from..)?.find(searched)?;
        from = start + first.len_utf8();
        Some(start..start + searched.len())
    })
}

/// Returns the error about the first variable with an invalid name; `None` if all are valid. Pure.
pub(crate) fn invalid_name<'n>(mut names: impl Iterator<Item = &'n String>) -> Option<String> {
    let name = names.find(|name| !is_name(name))?;
    Some(format!("'{name}' var name is invalid, must match '{NAME}'"))
}

fn is_name(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// Reads the variables of a spec. Later objects take precedence over earlier ones, and the spec over all.
///
/// # Errors
/// In words: an object is missing or can't be read, or a value of a Secret is invalid.
pub async fn read(
    spec: &KustomizationSpec,
    namespace: &str,
    configs: &mut impl ReadConfigs,
) -> Result<Variables, String> {
    let mut variables = Variables::default();
    let Some(post_build) = &spec.post_build else {
        return Ok(variables);
    };
    for reference in &post_build.substitute_from {
        let (kind, name) = (&reference.kind, &reference.name);
        let failed = |why: String| format!("substitute from '{kind}/{name}' error: {why}");
        match configs.read(kind, namespace, name).await {
            Ok(Some(object)) => add(&mut variables, reference, &object).map_err(failed)?,
            Ok(None) if reference.optional => {}
            Ok(None) => return Err(failed(format!("{kind} {namespace}/{name} not found"))),
            Err(error) => return Err(failed(error.to_string())),
        }
    }
    variables.values.extend(inline(spec).values);
    Ok(variables)
}

/// Returns the variables that the spec itself has. Pure.
#[must_use]
pub fn inline(spec: &KustomizationSpec) -> Variables {
    let post_build = spec.post_build.as_ref().into_iter();
    let given = post_build.flat_map(|post_build| &post_build.substitute);
    let given = given.map(|(name, value)| (name.clone(), value.replace('\n', "")));
    Variables {
        values: given.collect(),
        secrets: Vec::new(),
    }
}

fn add(variables: &mut Variables, reference: &SubstituteReference, object: &Value) -> Result<(), String> {
    let mut add = |name: &str, value: &str, is_secret: bool| {
        let value = value.replace('\n', "");
        if is_secret {
            variables.secrets.push(value.clone());
        }
        variables.values.insert(name.to_owned(), value);
    };
    if reference.kind == "Secret" {
        for (name, value) in secret_data(object)? {
            add(&name, &String::from_utf8_lossy(&value), true);
        }
        return Ok(());
    }
    let data = object.get("data").and_then(Value::as_map).into_iter();
    for (name, value) in data.flat_map(|data| data.iter()) {
        add(name, value.as_str().unwrap_or_default(), false);
    }
    Ok(())
}

/// Returns the decoded data of a Secret.
///
/// # Errors
/// In words: a value is not base64.
pub fn secret_data(secret: &Value) -> Result<Vec<(String, Vec<u8>)>, String> {
    let data = secret.get("data").and_then(Value::as_map).into_iter();
    let decode = |(name, value): (&str, &Value)| {
        let decoded = STANDARD.decode(value.as_str().unwrap_or_default());
        let decoded = decoded.map_err(|error| format!("{name}: {error}"))?;
        Ok((name.to_owned(), decoded))
    };
    data.flat_map(|data| data.iter()).map(decode).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(kind: &str) -> SubstituteReference {
        SubstituteReference {
            kind: kind.to_owned(),
            name: "vars".to_owned(),
            optional: false,
        }
    }

    #[test]
    fn later_objects_take_precedence_and_values_lose_their_line_breaks() {
        let mut variables = Variables::default();
        let map = Value::from_json(json!({ "data": { "a": "one\ntwo\n", "b": "map" } }));
        let secret = Value::from_json(json!({ "data": { "b": "c2VjcmV0Cg==" } }));
        add(&mut variables, &reference("ConfigMap"), &map).unwrap();
        add(&mut variables, &reference("Secret"), &secret).unwrap();
        assert_eq!(variables.values["a"], "onetwo");
        assert_eq!(variables.values["b"], "secret");
        assert_eq!(variables.redact("a secret onetwo"), "a ***** onetwo");
        assert!(!format!("{variables:?}").contains("secret"));
    }

    #[test]
    fn redaction_leaves_no_part_of_a_secret_that_contains_or_overlaps_another() {
        let redacted = |message: &str, secrets: &[&str]| {
            let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
            redact(message, &secrets)
        };
        for (message, secrets, expected) in [
            ("as admin123.", &["admin", "admin123"][..], "as *****."),
            ("as admin123.", &["admin123", "admin", "admin"], "as *****."),
            ("abcd", &["abc", "bcd"], "*****"),
            ("aaa", &["aa"], "*****"),
            ("abab", &["ab"], "**********"),
            ("plain", &["", "x"], "plain"),
            ("", &["x"], ""),
            ("größe", &["ö", "öß"], "gr*****e"),
        ] {
            assert_eq!(redacted(message, secrets), expected, "{secrets:?}");
        }
    }

    #[test]
    fn invalid_names_are_refused() {
        let names = ["a".to_owned(), "a.b".to_owned()];
        assert_eq!(
            invalid_name(names.iter()).as_deref(),
            Some("'a.b' var name is invalid, must match '^[_[:alpha:]][_[:alpha:][:digit:]]*$'")
        );
        assert_eq!(invalid_name(names[..1].iter()), None);
        for (name, valid) in [
            ("_a1", true),
            ("A", true),
            ("1a", false),
            ("", false),
            ("ä", false),
        ] {
            assert_eq!(is_name(name), valid, "{name}");
        }
    }
}
