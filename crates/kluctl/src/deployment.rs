//! `deployment.yaml`.

mod outline;
mod rules;

use objects::rules::Rules;
use tree::{Budget, TreePath};
use yaml::{Map, Value};

use crate::{
    Error, ObjectSelector,
    fields::Fields,
    source::{self, Remote},
    vars,
};

pub use outline::Outline;
pub(crate) use outline::{ItemOutline, ProjectOutline};
pub(crate) use rules::STEPS_OF_A_PATTERN;

/// A decoded `deployment.yaml`, without its variables.
#[derive(Debug)]
pub(crate) struct Deployment {
    pub(crate) when: String,
    pub(crate) tags: Vec<String>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) annotations: Vec<(String, String)>,
    pub(crate) namespace: Option<String>,
    pub(crate) rules: Rules,
}

/// An entry of `deployments`, without its variables.
#[derive(Debug)]
pub(crate) struct ItemConfig {
    pub(crate) source: ItemSource,
    pub(crate) when: String,
    pub(crate) tags: Vec<String>,
    pub(crate) barrier: bool,
    pub(crate) wait_readiness: bool,
    pub(crate) message: Option<String>,
    pub(crate) delete_objects: Vec<ObjectSelector>,
    pub(crate) wait_readiness_objects: Vec<ObjectSelector>,
    pub(crate) recursive: bool,
    pub(crate) only_render: bool,
    pub(crate) always_deploy: bool,
    pub(crate) skip_delete_if_tags: bool,
    pub(crate) args: Map,
    /// True if a library sees the variables of the including project.
    pub(crate) pass_vars: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ItemSource {
    Path(String),
    /// Another project of the same tree.
    Include(String),
    /// A project of another source.
    Remote(Remote),
    /// A barrier or the like.
    Nothing,
}

const FIELDS: &[&str] = &[
    "vars",
    "when",
    "deployments",
    "commonLabels",
    "commonAnnotations",
    "overrideNamespace",
    "tags",
    "ignoreForDiff",
    "conflictResolution",
];
const NOT_OBEYED: &[&str] = &[
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
    "git",
    "oci",
    "barrier",
    "message",
    "when",
    "tags",
    "vars",
    "waitReadiness",
    "deleteObjects",
    "waitReadinessObjects",
    "recursive",
    "args",
    "passVars",
    "onlyRender",
    "alwaysDeploy",
    "skipDeleteIfTags",
];
/// Fields that appear in results only.
const RESULTS: [&str; 3] = ["renderedObjects", "renderedHelmChartConfig", "renderedInclude"];

impl Deployment {
    pub(crate) fn decode(fields: &Fields<'_>, budget: &Budget) -> Result<Self, Error> {
        fields.check(FIELDS, NOT_OBEYED)?;
        vars::check(fields)?;
        Ok(Self {
            when: fields.string("when")?.unwrap_or_default(),
            tags: fields.strings("tags")?,
            labels: fields.string_map("commonLabels")?,
            annotations: fields.string_map("commonAnnotations")?,
            namespace: fields.filled_string("overrideNamespace")?,
            rules: rules::decode(fields, budget)?,
        })
    }
}

impl ItemConfig {
    pub(crate) fn decode(fields: &Fields<'_>) -> Result<Self, Error> {
        if let Some(field) = RESULTS.iter().find(|field| fields.map.contains_key(field)) {
            return Err(fields.invalid(field, format!("{field} is not allowed here")));
        }
        fields.check(ITEM_FIELDS, &[])?;
        vars::check(fields)?;
        let item = Self {
            source: source_of(fields)?,
            when: fields.string("when")?.unwrap_or_default(),
            tags: fields.strings("tags")?,
            barrier: fields.boolean("barrier")?,
            wait_readiness: fields.boolean("waitReadiness")?,
            message: fields.filled_string("message")?,
            delete_objects: rules::each(fields, "deleteObjects", selector)?,
            wait_readiness_objects: rules::each(fields, "waitReadinessObjects", selector)?,
            recursive: fields.boolean("recursive")?,
            only_render: fields.boolean("onlyRender")?,
            always_deploy: fields.boolean("alwaysDeploy")?,
            skip_delete_if_tags: fields.boolean("skipDeleteIfTags")?,
            args: fields.map("args")?.cloned().unwrap_or_default(),
            pass_vars: fields.boolean("passVars")?,
        };
        item.check(fields)?;
        Ok(item.with_default_tag())
    }

    /// Refuses conflicting fields.
    fn check(&self, fields: &Fields<'_>) -> Result<(), Error> {
        let manifests = matches!(self.source, ItemSource::Path(_));
        let project = matches!(self.source, ItemSource::Include(_) | ItemSource::Remote(_));
        for (wrong, field, problem) in [
            (
                self.wait_readiness && !manifests,
                "waitReadiness",
                "only kustomize deployments are allowed to have waitReadiness set",
            ),
            (
                self.recursive && !manifests,
                "recursive",
                "only kustomize deployments are allowed to have recursive set",
            ),
            (
                !self.args.is_empty() && !project,
                "args",
                "args are only allowed when another project is included",
            ),
            (
                self.pass_vars && !project,
                "passVars",
                "passVars is only allowed when another project is included",
            ),
        ] {
            if wrong {
                return Err(fields.invalid(field, problem));
            }
        }
        Ok(())
    }

    fn with_default_tag(mut self) -> Self {
        if self.tags.is_empty() {
            self.tags.extend(self.source.default_tag());
        }
        self
    }
}

fn source_of(fields: &Fields<'_>) -> Result<ItemSource, Error> {
    let found = [
        ("path", fields.filled_string("path")?.map(ItemSource::Path)),
        (
            "include",
            fields.filled_string("include")?.map(ItemSource::Include),
        ),
        ("git", source::git(fields, "git")?.map(ItemSource::Remote)),
        ("oci", source::oci(fields, "oci")?.map(ItemSource::Remote)),
    ];
    let mut found = found
        .into_iter()
        .filter_map(|(field, source)| Some((field, source?)));
    match (found.next(), found.next()) {
        (_, Some((field, _))) => {
            let problem = "only one of path, include, git and oci can be set at the same time";
            Err(fields.invalid(field, problem))
        }
        (Some((_, source)), None) => Ok(source),
        (None, None) => Ok(ItemSource::Nothing),
    }
}

/// Decodes a selector of objects that an item deletes or waits for.
fn selector(fields: &Fields<'_>) -> Result<ObjectSelector, Error> {
    fields.check(&["group", "kind", "name", "namespace"], &[])?;
    let selector = ObjectSelector {
        group: fields.filled_string("group")?,
        kind: fields.filled_string("kind")?,
        name: fields.filled_string("name")?.unwrap_or_default(),
        namespace: fields.filled_string("namespace")?,
    };
    if selector.group.is_none() && selector.kind.is_none() {
        return Err(fields.invalid("", "at least one of group or kind must be set"));
    }
    if selector.name.is_empty() {
        return Err(fields.invalid("name", format!("{} is required", fields.path_of("name"))));
    }
    Ok(selector)
}

impl ItemSource {
    /// Returns the last component of the path.
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
    fn default_tag_is_the_directory_name() {
        for (path, tag) in [
            ("a/b", Some("b")),
            ("./x/", Some("x")),
            (".", None),
            ("../..", None),
            ("c", Some("c")),
        ] {
            assert_eq!(
                ItemSource::Path(path.to_owned()).default_tag().as_deref(),
                tag,
                "{path}"
            );
        }
        assert_eq!(ItemSource::Nothing.default_tag(), None);
    }
}
