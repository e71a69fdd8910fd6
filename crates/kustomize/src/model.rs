//! A kustomization file as data. [`decode`] reads it; the modules that use a field give it its meaning.

pub(crate) mod configs;
pub(crate) mod decode;
mod rewrite;
pub(crate) mod shape;
pub(crate) mod shapes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Deserialize;
use tree::TreePath;

use crate::{fieldspec::FieldSpec, id::Gvk};

pub(crate) use decode::load;
pub use decode::{FILE_NAMES, find};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub(crate) enum KustomizationKind {
    #[default]
    Kustomization,
    /// Transforms the objects of the kustomization that names it.
    Component,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Kustomization {
    pub(crate) file: TreePath,
    /// The line of each field that is set.
    pub(crate) lines: BTreeMap<String, u32>,
    pub(crate) fields: Fields,
}

impl Kustomization {
    /// Returns the line of a field; 1 if it isn't set.
    pub(crate) fn line(&self, field: &str) -> u32 {
        self.lines.get(field).copied().unwrap_or(1)
    }
}

/// The fields of a kustomization file, with the deprecated ones moved to their replacements.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Fields {
    pub(crate) kind: KustomizationKind,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    pub(crate) configurations: Vec<String>,
    pub(crate) generators: Vec<String>,
    pub(crate) transformers: Vec<String>,
    pub(crate) validators: Vec<String>,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json6902: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) replacements: Vec<ReplacementEntry>,
    pub(crate) vars: Vec<Var>,
    pub(crate) config_map_generator: Vec<GeneratorArgs>,
    pub(crate) secret_generator: Vec<GeneratorArgs>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) helm_globals: Option<yaml::Map>,
    pub(crate) helm_charts: Vec<yaml::Map>,
    pub(crate) openapi: BTreeMap<String, String>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) build_metadata: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Label {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) include_selectors: bool,
    pub(crate) include_templates: bool,
    /// A field of version 5.8.3 only.
    pub(crate) include_volume_claim_templates: bool,
    pub(crate) fields: Vec<Field>,
}

/// A field spec, as written in a kustomization or a configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Field {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) path: String,
    pub(crate) create: bool,
}

impl From<Field> for FieldSpec {
    fn from(field: Field) -> Self {
        Self {
            gvk: Gvk {
                group: field.group.into(),
                version: field.version.into(),
                kind: field.kind.into(),
            },
            path: field.path.into(),
            create: field.create,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Patch {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) options: BTreeMap<String, bool>,
}

/// Empty parts select everything. The user of the selector decides if others are patterns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Selector {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) label_selector: String,
    pub(crate) annotation_selector: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) new_tag: String,
    pub(crate) tag_suffix: String,
    pub(crate) digest: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) count: i64,
}

/// A file that holds replacements, or one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplacementEntry {
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) replacement: Replacement,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Replacement {
    pub(crate) source: Option<ReplacementSource>,
    pub(crate) source_value: Option<String>,
    pub(crate) targets: Vec<ReplacementTarget>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplacementSource {
    #[serde(flatten)]
    pub(crate) selector: Selector,
    pub(crate) field_path: String,
    pub(crate) options: Option<FieldOptions>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReplacementTarget {
    pub(crate) select: Option<Selector>,
    pub(crate) reject: Vec<Selector>,
    pub(crate) field_paths: Vec<String>,
    pub(crate) options: Option<FieldOptions>,
}

/// The part of a field that a replacement reads or writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FieldOptions {
    pub(crate) delimiter: String,
    pub(crate) index: i64,
    /// Accepted and without effect, as in the original.
    pub(crate) encoding: String,
    pub(crate) create: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Var {
    pub(crate) name: String,
    #[serde(rename = "objref")]
    pub(crate) object: VarObject,
    #[serde(rename = "fieldref")]
    pub(crate) field: VarField,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VarObject {
    pub(crate) api_version: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VarField {
    #[serde(rename = "fieldPath", alias = "fieldpath")]
    pub(crate) field_path: String,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GeneratorArgs {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) behavior: String,
    pub(crate) literals: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) envs: Vec<String>,
    /// Secrets only.
    #[serde(rename = "type")]
    pub(crate) secret_type: String,
    pub(crate) options: Option<GeneratorOptions>,
}

/// `generatorOptions`, or the `options` of one generator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) disable_name_suffix_hash: bool,
    pub(crate) immutable: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SortOptions {
    pub(crate) order: String,
    pub(crate) legacy_sort_options: Option<LegacySortOptions>,
}

/// The kinds that come first and last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LegacySortOptions {
    pub(crate) order_first: Vec<String>,
    pub(crate) order_last: Vec<String>,
}
