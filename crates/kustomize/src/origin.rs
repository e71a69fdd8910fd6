//! Origins of objects, generators and transformers, as `buildMetadata` records them.

use std::fmt;

use yaml::Value;

use crate::{id::Id, remote};

/// The origin of an object, or of a generator or transformer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    /// The path of the file, from the directory that is built or the root of the repository.
    pub(crate) path: String,
    /// The repository, unless it is the one that is built.
    pub(crate) repository: String,
    /// Branch, tag or commit of the repository.
    pub(crate) reference: String,
    /// The file that configures the generator or transformer.
    pub(crate) configured_in: String,
    pub(crate) configured_by: Option<ConfiguredBy>,
}

/// The configuration of a generator or transformer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ConfiguredBy {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl Origin {
    /// Returns the origin of an entry of a kustomization of this origin.
    pub(crate) fn append(&self, entry: &str) -> Self {
        let mut appended = self.clone();
        let entry = match remote::parse(entry) {
            Ok(repository) => {
                appended.repository = repository.clone_spec();
                appended.reference = repository.reference.unwrap_or_default();
                appended.path.clear();
                repository.path
            }
            Err(_) => entry.to_owned(),
        };
        appended.path = clean(&appended.path, &entry);
        appended
    }

    /// Returns the origin of the output of a built-in generator or transformer.
    pub(crate) fn builtin(&self, file_name: &str, kind: &str) -> Self {
        Self {
            path: String::new(),
            configured_in: clean(&self.path, file_name),
            configured_by: Some(ConfiguredBy {
                api_version: "builtin".to_owned(),
                kind: kind.to_owned(),
                ..ConfiguredBy::default()
            }),
            ..self.clone()
        }
    }

    /// Returns the origin of the output of a plugin whose configuration has this origin.
    pub(crate) fn plugin(&self, config: &Id) -> Self {
        Self {
            path: String::new(),
            configured_in: self.path.clone(),
            configured_by: Some(ConfiguredBy {
                api_version: config.gvk.api_version(),
                kind: config.gvk.kind.clone().into_owned(),
                name: config.name.clone(),
                namespace: config.namespace.clone(),
            }),
            ..self.clone()
        }
    }

    /// Writes its fields as lines of YAML, each after `indent`, the first after `first`.
    pub(crate) fn write(&self, out: &mut dyn fmt::Write, first: &str, indent: &str) -> fmt::Result {
        let mut lead = first;
        let fields = [
            ("path", &self.path),
            ("repo", &self.repository),
            ("ref", &self.reference),
            ("configuredIn", &self.configured_in),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                writeln!(out, "{lead}{key}: {}", scalar(value))?;
                lead = indent;
            }
        }
        let Some(by) = &self.configured_by else {
            return Ok(());
        };
        writeln!(out, "{lead}configuredBy:")?;
        let fields = [
            ("apiVersion", &by.api_version),
            ("kind", &by.kind),
            ("name", &by.name),
            ("namespace", &by.namespace),
        ];
        for (key, value) in fields {
            if !value.is_empty() {
                writeln!(out, "{indent}  {key}: {}", scalar(value))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "", "")
    }
}

fn scalar(text: &str) -> String {
    yaml::print::goyaml(&Value::from(text)).trim_end().to_owned()
}

/// Joins paths, which may lead above their start.
fn clean(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_keeps_leading_parent_directories() {
        for (base, path, expected) in [
            ("", "a", "a"),
            ("a", "../b", "b"),
            ("", "../a", "../a"),
            ("..", "../a", "../../a"),
            ("a", ".", "a"),
        ] {
            assert_eq!(clean(base, path), expected, "{base} {path}");
        }
    }
}
