//! The schema of fields: the built-in tables, and the `openapi` field, which adds to or replaces them.

mod custom;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use tree::Budget;

use crate::{Error, error::Step, options::OpenApi, tables};

use custom::{Custom, Definition, InvalidSchema};

/// The only version of Kubernetes whose schema is built in.
const BUILT_IN: &str = "v1.21.2";

/// The group whose kinds stay known, whatever replaces the built-in schema.
const OWN_GROUP: &str = "kustomize.config.k8s.io/";

/// Maximum number of `$ref`s that are followed in a row.
const MAX_HOPS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// True once a kustomization has chosen a schema; the first one decides.
    is_set: bool,
    custom: Option<Result<Custom, InvalidSchema>>,
    beside: Beside,
    /// True once an object was read whose kind the built-in schema doesn't know.
    saw_unknown: bool,
}

/// The role of the built-in schema next to a custom one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Beside {
    #[default]
    Replaced,
    /// It is used for kinds that the custom one doesn't know.
    Second,
    /// The custom one is used for kinds that it doesn't know.
    First,
}

/// The schema of a field, or of a whole object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'s> {
    BuiltIn {
        keys: Option<&'static [&'static str]>,
        target: Option<&'static tables::Type>,
    },
    Custom(&'s Schema, Definition<'s>),
}

impl Schema {
    /// Records the kind of an object that was read, and returns true if a custom schema says that it is cluster-scoped.
    ///
    /// quirk: before the original knows a custom schema, it falls back to the built-in one for unknown kinds, and then keeps
    /// it.
    pub(crate) fn note_kind(&mut self, api_version: &str, kind: &str) -> bool {
        let counts = self.custom.is_some() || !(self.is_set || self.saw_unknown);
        if !counts || tables::namespaced(api_version, kind).is_some() {
            return false;
        }
        self.saw_unknown |= !self.is_set;
        let custom = self.custom.as_ref().and_then(|custom| custom.as_ref().ok());
        custom.is_some_and(|custom| custom.is_cluster_scoped(api_version, kind))
    }

    /// Obeys the `openapi` field of a kustomization, with the content of the file that its `path` names. Only the outermost
    /// kustomization, for which `reset` is true, replaces an earlier schema. Fails if the field has a path and a version, or
    /// a version that isn't built in, or when the budget ends. An invalid schema is an error at its first use.
    pub(crate) fn set(
        &mut self,
        openapi: &BTreeMap<String, String>,
        document: Option<&[u8]>,
        reset: bool,
        mode: OpenApi,
        budget: &Budget,
    ) -> Result<(), Error> {
        if self.is_set && !reset {
            return Ok(());
        }
        let version = openapi.get("version");
        match (document, version) {
            (Some(_), Some(_)) => Err(Error::new(
                Step::Schema,
                "builtin version and custom schema provided, cannot use both",
            )),
            (Some(document), None) => {
                self.custom = Some(Custom::read(document, budget)?);
                self.beside = match mode {
                    OpenApi::Add => Beside::Second,
                    OpenApi::Replace if self.saw_unknown => Beside::First,
                    OpenApi::Replace => Beside::Replaced,
                };
                self.is_set = true;
                Ok(())
            }
            (None, Some(version)) if !version.is_empty() => {
                if version != BUILT_IN {
                    let problem = "the specified OpenAPI version is not built in";
                    return Err(Error::new(Step::Schema, problem));
                }
                self.custom = None;
                self.is_set = true;
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Returns the schema of the objects of a kind. Fails if the document of `openapi.path` is not a schema.
    pub(crate) fn root(&self, api_version: &str, kind: &str) -> Result<Option<Shape<'_>>, Error> {
        let built_in = || {
            let target = Some(tables::root(api_version, kind)?);
            Some(Shape::BuiltIn { keys: None, target })
        };
        let custom = match &self.custom {
            None => return Ok(built_in()),
            Some(Err(problem)) => {
                return Err(Error::new(
                    Step::Schema,
                    format!("invalid schema file: {problem}"),
                ));
            }
            Some(Ok(custom)) => custom,
        };
        let definition = custom
            .kind(api_version, kind)
            .map(|found| Shape::Custom(self, found));
        Ok(match self.beside {
            Beside::First => built_in().or(definition),
            Beside::Second => definition.or_else(built_in),
            Beside::Replaced if api_version.starts_with(OWN_GROUP) => built_in().or(definition),
            Beside::Replaced => definition,
        })
    }

    /// Follows `$ref` to its target.
    fn resolve<'s>(&'s self, mut definition: Definition<'s>) -> Option<Shape<'s>> {
        let custom = self.custom.as_ref()?.as_ref().ok()?;
        for _ in 0..MAX_HOPS {
            let Some(reference) = definition.reference() else {
                return Some(Shape::Custom(self, definition));
            };
            match custom.follow(reference) {
                Some(next) => definition = next,
                None if self.beside == Beside::Replaced => return None,
                None => return built_in(reference),
            }
        }
        None
    }
}

/// The types of the built-in schema that custom ones refer to, with a path to each in the tables.
const NAMED: &[(&str, &str, &str, &[&str])] = &[
    (
        "io.k8s.api.core.v1.PodTemplateSpec",
        "apps/v1",
        "Deployment",
        &["spec", "template"],
    ),
    ("io.k8s.api.core.v1.PodSpec", "v1", "Pod", &["spec"]),
    (
        "io.k8s.api.core.v1.Container",
        "v1",
        "Pod",
        &["spec", "containers"],
    ),
    (
        "io.k8s.api.core.v1.EphemeralContainer",
        "v1",
        "Pod",
        &["spec", "ephemeralContainers"],
    ),
    ("io.k8s.api.core.v1.ServiceSpec", "v1", "Service", &["spec"]),
    ("io.k8s.api.batch.v1.JobSpec", "batch/v1", "Job", &["spec"]),
    (
        "io.k8s.api.batch.v1.JobTemplateSpec",
        "batch/v1",
        "CronJob",
        &["spec", "jobTemplate"],
    ),
    (
        "io.k8s.api.apps.v1.DeploymentSpec",
        "apps/v1",
        "Deployment",
        &["spec"],
    ),
    (
        "io.k8s.api.apps.v1.StatefulSetSpec",
        "apps/v1",
        "StatefulSet",
        &["spec"],
    ),
    (
        "io.k8s.api.apps.v1.DaemonSetSpec",
        "apps/v1",
        "DaemonSet",
        &["spec"],
    ),
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "v1",
        "Pod",
        &["metadata"],
    ),
];

/// Returns the built-in schema under the name of a definition.
fn built_in(reference: &str) -> Option<Shape<'static>> {
    let name = reference.strip_prefix("#/definitions/")?;
    let (_, api_version, kind, path) = NAMED.iter().find(|row| row.0 == name)?;
    let root = tables::root(api_version, kind)?;
    let target = path
        .iter()
        .try_fold(root, |target, field| tables::target(target.field(field)?))?;
    Some(Shape::BuiltIn {
        keys: None,
        target: Some(target),
    })
}

impl<'s> Shape<'s> {
    /// Returns the schema of a field of a map.
    pub(crate) fn field(self, name: &str) -> Option<Shape<'s>> {
        match self {
            Self::BuiltIn { target, .. } => {
                let field = target?.field(name)?;
                Some(Self::BuiltIn {
                    keys: field.merge_keys(),
                    target: tables::target(field),
                })
            }
            Self::Custom(schema, definition) => schema.resolve(definition.field(name)?),
        }
    }

    pub(crate) fn elements(self) -> Option<Shape<'s>> {
        match self {
            Self::BuiltIn { target, .. } => Some(Self::BuiltIn { keys: None, target }),
            Self::Custom(schema, definition) => schema.resolve(definition.elements()?),
        }
    }

    /// Returns the keys by which the elements of a list are merged: none for a set of scalars, `None` for a list that is
    /// replaced.
    pub(crate) fn merge_keys(self) -> Option<Vec<&'s str>> {
        match self {
            Self::BuiltIn { keys, .. } => keys.map(<[_]>::to_vec),
            Self::Custom(_, definition) => definition.merge_keys(),
        }
    }
}
