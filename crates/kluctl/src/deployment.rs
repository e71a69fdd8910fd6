//! `deployment.yaml`.

use tree::TreePath;
use yaml::{Map, Value};

use crate::{Error, fields::Fields};

/// What is obeyed of a deployment project, apart from its variables.
#[derive(Debug)]
pub(crate) struct Deployment {
    pub(crate) when: String,
    pub(crate) tags: Vec<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) namespace: Option<String>,
}

/// An entry of `deployments`, apart from its variables.
#[derive(Debug)]
pub(crate) struct ItemConfig {
    pub(crate) source: Source,
    pub(crate) when: String,
    pub(crate) tags: Vec<String>,
    pub(crate) barrier: bool,
    pub(crate) wait_readiness: bool,
    pub(crate) message: Option<String>,
}

/// Where the objects of an item come from.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// A directory with manifests.
    Path(String),
    /// Another project of the same tree.
    Include(String),
    /// Nowhere.
    Nothing,
}

const FIELDS: &[&str] = &[
    "vars",
    "when",
    "deployments",
    "commonLabels",
    "overrideNamespace",
    "tags",
];
const NOT_OBEYED: &[&str] = &[
    "commonAnnotations",
    "ignoreForDiff",
    "conflictResolution",
    "args",
    "deleteByLabels",
    "includes",
    "kustomizeDirs",
    "sealedSecrets",
    "templateExcludes",
];
const ITEM_FIELDS: &[&str] = &[
    "path",
    "include",
    "barrier",
    "message",
    "when",
    "tags",
    "vars",
    "waitReadiness",
];
const ITEM_NOT_OBEYED: &[&str] = &[
    "git",
    "oci",
    "deleteObjects",
    "waitReadinessObjects",
    "recursive",
    "args",
    "passVars",
    "onlyRender",
    "alwaysDeploy",
    "skipDeleteIfTags",
    "renderedObjects",
    "renderedHelmChartConfig",
    "renderedInclude",
];

impl Deployment {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self, Error> {
        fields.check(FIELDS, NOT_OBEYED)?;
        Ok(Self {
            when: fields.string("when")?.unwrap_or_default(),
            tags: fields.strings("tags")?,
            labels: fields.string_map("commonLabels")?,
            namespace: fields.filled_string("overrideNamespace")?,
        })
    }
}

impl ItemConfig {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self, Error> {
        fields.check(ITEM_FIELDS, ITEM_NOT_OBEYED)?;
        let source = match (fields.filled_string("path")?, fields.filled_string("include")?) {
            (Some(path), None) => Source::Path(path),
            (None, Some(include)) => Source::Include(include),
            (None, None) => Source::Nothing,
            (Some(_), Some(_)) => {
                let problem = "only one of path, include, git and oci can be set at the same time";
                return Err(fields.invalid("include", problem));
            }
        };
        let wait_readiness = fields.boolean("waitReadiness")?;
        if wait_readiness && !matches!(source, Source::Path(_)) {
            let problem = "only kustomize deployments are allowed to have waitReadiness set";
            return Err(fields.invalid("waitReadiness", problem));
        }
        let mut tags = fields.strings("tags")?;
        if tags.is_empty() {
            tags.extend(source.default_tag());
        }
        Ok(Self {
            source,
            when: fields.string("when")?.unwrap_or_default(),
            tags,
            barrier: fields.boolean("barrier")?,
            wait_readiness,
            message: fields.filled_string("message")?,
        })
    }
}

impl Source {
    /// The last component of the path.
    fn default_tag(&self) -> Option<String> {
        let (Self::Path(path) | Self::Include(path)) = self else {
            return None;
        };
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        (!matches!(name, "" | "." | "..")).then(|| name.to_owned())
    }
}

/// A project without a file deploys its own directory.
pub(crate) fn implicit() -> Value {
    let mut item = Map::new();
    item.insert("path", ".");
    let mut project = Map::new();
    project.insert("deployments", vec![Value::Map(item)]);
    Value::Map(project)
}

/// The name of the file that an implicit project stands for.
pub(crate) fn implicit_file(dir: &TreePath) -> TreePath {
    dir.child("deployment.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_tag_is_the_name_of_the_directory() {
        for (path, tag) in [
            ("a/b", Some("b")),
            ("./x/", Some("x")),
            (".", None),
            ("../..", None),
            ("c", Some("c")),
        ] {
            assert_eq!(
                Source::Path(path.to_owned()).default_tag().as_deref(),
                tag,
                "{path}"
            );
        }
        assert_eq!(Source::Nothing.default_tag(), None);
    }
}
