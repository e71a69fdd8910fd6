//! Origins and transformations on objects, for `buildMetadata`, and the annotations that are removed at the end.

use std::{collections::BTreeMap, fmt, sync::Arc};

use yaml::node::Text;

use crate::{
    Error,
    origin::Origin,
    resmap::ResMap,
    resource::{Previous, Resource},
    run::Run,
};

const ORIGIN: &str = "config.kubernetes.io/origin";

const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Annotations for the original's own bookkeeping, which are removed here as well.
const INTERNAL: &[&str] = &[
    "internal.config.kubernetes.io/previousKinds",
    "internal.config.kubernetes.io/previousNames",
    "internal.config.kubernetes.io/prefixes",
    "internal.config.kubernetes.io/suffixes",
    "internal.config.kubernetes.io/previousNamespaces",
    "internal.config.kubernetes.io/allowNameChange",
    "internal.config.kubernetes.io/allowKindChange",
    "internal.config.kubernetes.io/refBy",
    "internal.config.kubernetes.io/generatorBehavior",
    "internal.config.kubernetes.io/needsHashSuffix",
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    "internal.config.kubernetes.io/helm-generated",
];

struct List<'a>(&'a [Arc<Origin>]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|origin| origin.write(f, "- ", "  "))
    }
}

/// Reads the history of an object from the annotations for the original's bookkeeping, which outputs of interrupted builds
/// have.
pub(crate) fn adopt(resource: &mut Resource) {
    let list = |name: &str| -> Vec<Text> {
        let name = format!("internal.config.kubernetes.io/{name}");
        let texts = resource.annotation(&name).map(|text| text.split(','));
        texts.into_iter().flatten().map(Text::from).collect()
    };
    let (names, kinds, namespaces) = (
        list("previousNames"),
        list("previousKinds"),
        list("previousNamespaces"),
    );
    let (prefixes, suffixes) = (list("prefixes"), list("suffixes"));
    // Lists of different lengths don't belong together.
    if names.len() == kinds.len() && names.len() == namespaces.len() {
        let previous = names.into_iter().zip(kinds).zip(namespaces);
        resource.history.previous = previous
            .map(|((name, kind), namespace)| Previous {
                kind,
                name,
                namespace,
            })
            .collect();
    }
    resource.history.prefixes = prefixes;
    resource.history.suffixes = suffixes;
}

/// Sets the origin of the objects that have none yet.
pub(crate) fn set_origin(resources: &mut ResMap, origin: &Arc<Origin>) {
    for resource in resources.iter_mut() {
        resource.history.origin.get_or_insert_with(|| origin.clone());
    }
}

/// Records a transformer on the objects: those without an origin come from it.
pub(crate) fn add_transformation(resources: &mut ResMap, origin: &Arc<Origin>) {
    for resource in resources.iter_mut() {
        // The original records it in the annotations, and writes all of them anew.
        resource.renew_annotations();
        if resource.history.origin.is_some() {
            resource.history.transformations.push(origin.clone());
        } else {
            resource.history.origin = Some(origin.clone());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    pub(crate) origins: bool,
    pub(crate) transformations: bool,
    pub(crate) managed_by: bool,
}

impl Wanted {
    pub(crate) fn of(fields: &[String]) -> Self {
        let has = |option: &str| fields.iter().any(|field| field == option);
        Self {
            origins: has("originAnnotations"),
            transformations: has("transformerAnnotations"),
            managed_by: has("managedByLabel"),
        }
    }
}

/// Writes the wanted annotations, and removes the original's own.
///
/// quirk: all annotations become strings, and an empty map of annotations is removed.
pub(crate) fn finish(resource: &mut Resource, wanted: Wanted, run: &Run<'_>) -> Result<(), Error> {
    let mut annotations = resource.metadata_map("annotations");
    annotations.retain(|name, _| !INTERNAL.contains(&name.as_str()));
    let origin = resource.history.origin.as_ref().map(ToString::to_string);
    put(&mut annotations, ORIGIN, wanted.origins, origin);
    let transformations = &resource.history.transformations;
    let noted = wanted.transformations && !transformations.is_empty();
    let transformations = noted.then(|| List(transformations).to_string());
    run.grow(transformations.as_ref().map_or(0, String::len), &resource.file)?;
    put(
        &mut annotations,
        TRANSFORMATIONS,
        wanted.transformations,
        transformations,
    );
    resource.set_metadata_map("annotations", &annotations);
    Ok(())
}

fn put(annotations: &mut BTreeMap<String, String>, name: &str, wanted: bool, text: Option<String>) {
    match text {
        Some(text) if wanted => {
            annotations.insert(name.to_owned(), text);
        }
        _ if !wanted => {
            annotations.remove(name);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_written_as_yaml() {
        let base = Origin::default().append("../base").append("m.yaml");
        assert_eq!(base.to_string(), "path: ../base/m.yaml\n");
        let made = Origin::default()
            .append("a")
            .builtin("kustomization.yaml", "ConfigMapGenerator");
        let expected = "configuredIn: a/kustomization.yaml\nconfiguredBy:\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n";
        assert_eq!(made.to_string(), expected);
        let list = List(&[made.into(), base.into()]).to_string();
        let expected = "- configuredIn: a/kustomization.yaml\n  configuredBy:\n    apiVersion: builtin\n    kind: ConfigMapGenerator\n- path: ../base/m.yaml\n";
        assert_eq!(list, expected);
    }
}
