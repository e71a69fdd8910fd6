//! Names of objects as the command line takes them.

use anyhow::{Result, bail, ensure};
use api::validation::{invalid_label, invalid_label_name, invalid_label_value};
use yaml::Map;

use crate::usage::split_list;

/// An object as `[KIND/]NAME[.NAMESPACE]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Empty if there is none.
    pub(super) kind: String,
    pub(super) name: String,
    /// Empty if there is none.
    pub(super) namespace: String,
}

impl Named {
    /// Parses `[KIND/]NAME`.
    pub(super) fn of_kind(text: &str) -> Self {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) if !name.contains('/') => (kind, name),
            _ => ("", text),
        };
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: String::new(),
        }
    }

    /// Parses `[KIND/]NAME[.NAMESPACE]`.
    pub(super) fn of_namespace(text: &str) -> Self {
        let mut named = Self::of_kind(text);
        if let Some((name, namespace)) = named.name.rsplit_once('.') {
            (named.name, named.namespace) = (name.to_owned(), namespace.to_owned());
        }
        named
    }

    /// Writes the kind as one of `kinds`, whose case doesn't matter on the command line.
    pub(super) fn one_of(mut self, what: &str, kinds: &[&str]) -> Result<Self> {
        let known = kinds.iter().find(|kind| kind.eq_ignore_ascii_case(&self.kind));
        let Some(known) = known else {
            bail!(
                "{what} kind '{}' is not supported, must be one of: {}",
                self.kind,
                kinds.join(", ")
            );
        };
        (*known).clone_into(&mut self.kind);
        Ok(self)
    }
}

/// Refuses names that an object created by `weir create` can't have.
pub(super) fn check_name(name: &str) -> Result<()> {
    ensure!(
        name.len() >= 2 && invalid_label(name).is_none(),
        "name '{name}' is invalid, it should adhere to standard defined in RFC 1123, the name can only contain alphanumeric characters \
         or '-'"
    );
    Ok(())
}

/// Parses the labels of `--label`.
pub(super) fn labels(flags: &[String]) -> Result<Map> {
    let mut labels = Map::new();
    for label in split_list(flags)? {
        let (name, value) = match label.split_once('=') {
            Some((name, value)) if !value.contains('=') => (name, value),
            _ => bail!("invalid label format '{label}', must be key=value"),
        };
        ensure!(
            invalid_label_name(name).is_none(),
            "invalid label '{name}': expected [PREFIX/]NAME with a name of at most 63 letters, digits, '-', '_' and '.', which begins \
             and ends with a letter or digit"
        );
        ensure!(
            invalid_label_value(value).is_none(),
            "invalid label value '{value}': expected at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or \
             digit"
        );
        labels.insert(name, value);
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_a_kind_a_name_and_a_namespace() {
        for (text, kind, name, namespace) in [
            ("app", "", "app", ""),
            ("app.apps", "", "app", "apps"),
            ("Bucket/app", "Bucket", "app", ""),
            ("Bucket/app.v1.apps", "Bucket", "app.v1", "apps"),
            ("a/b/c", "", "a/b/c", ""),
        ] {
            let named = Named::of_namespace(text);
            let parts = (&*named.kind, &*named.name, &*named.namespace);
            assert_eq!(parts, (kind, name, namespace), "{text}");
        }
        assert_eq!(Named::of_kind("Bucket/app.v1").name, "app.v1");
        let kinds = ["GitRepository", "Bucket"];
        assert_eq!(
            Named::of_kind("bucket/a").one_of("source", &kinds).unwrap().kind,
            "Bucket"
        );
        assert_eq!(
            Named::of_kind("pod/a")
                .one_of("source", &kinds)
                .unwrap_err()
                .to_string(),
            "source kind 'pod' is not supported, must be one of: GitRepository, Bucket"
        );
    }

    #[test]
    fn names_are_labels_of_at_least_two_characters() {
        for name in ["ab", "a-b", "0a", &"a".repeat(63)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["a", "A-b", "-a", "a-", "a.b", "", &"a".repeat(64)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn labels_are_lists_of_pairs() {
        let parsed = labels(&["a=1,example.com/b=".to_owned(), "c=x.y".to_owned()]).unwrap();
        assert_eq!(
            parsed,
            Map::from([("a", "1"), ("example.com/b", ""), ("c", "x.y")])
        );
        for wrong in ["a", "a=b=c", "=b", "-a=b", "a=-", "Example.com/a=b", "a/b/c=d"] {
            assert!(labels(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
