//! The tables of the fields that transformers change, and the files that add rows to them.

pub(crate) mod crds;
#[cfg(test)]
mod tests;

use serde::Deserialize;
use tree::{Budget, TreePath};

use crate::{
    Error, Profile,
    error::Context as _,
    fieldspec::{FieldSpec, NameReference, merge_all},
    id::Gvk,
    model::{
        Field,
        decode::{file_as, strict},
        shape::{Rules, Type},
        shapes,
    },
    tables::rows,
    transform::PluginContext,
};

/// The tables of a kustomization: the built-in rows, and the rows of `configurations` and `crds`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<NameReference>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

impl Config {
    pub(crate) fn built_in() -> Self {
        Self {
            name_prefix: rows::NAME_PREFIX.to_vec(),
            name_suffix: rows::NAME_SUFFIX.to_vec(),
            namespace: rows::NAMESPACE.to_vec(),
            common_labels: rows::COMMON_LABELS.to_vec(),
            template_labels: rows::TEMPLATE_LABELS.to_vec(),
            labels: Vec::new(),
            common_annotations: rows::COMMON_ANNOTATIONS.to_vec(),
            name_reference: rows::NAME_REFERENCES.to_vec(),
            var_reference: rows::VAR_REFERENCE.to_vec(),
            images: rows::IMAGES.to_vec(),
            replicas: rows::REPLICAS.to_vec(),
        }
    }

    /// Returns the built-in tables with the rows of the files that a kustomization names.
    pub(crate) fn load(files: &[String], ctx: &PluginContext<'_>) -> Result<Self, Error> {
        let mut own = Self::default();
        for file in files {
            let (text, path) = ctx.loader.load(file)?;
            let run = ctx.run;
            own.merge(&Self::read(&text, &path, run.budget, run.options.profile)?, ctx)?;
        }
        let mut config = Self::built_in();
        config.merge(&own, ctx)?;
        Ok(config)
    }

    /// Adds the rows of another configuration. An existing row is not added again; its `create` must be equal.
    pub(crate) fn merge(&mut self, other: &Self, ctx: &PluginContext<'_>) -> Result<(), Error> {
        let tables = [
            ("NamePrefix", &mut self.name_prefix, &other.name_prefix),
            ("NameSuffix", &mut self.name_suffix, &other.name_suffix),
            ("NameSpace", &mut self.namespace, &other.namespace),
            (
                "CommonAnnotations",
                &mut self.common_annotations,
                &other.common_annotations,
            ),
            ("CommonLabels", &mut self.common_labels, &other.common_labels),
            ("Labels", &mut self.labels, &other.labels),
            (
                "TemplateLabels",
                &mut self.template_labels,
                &other.template_labels,
            ),
            ("VarReference", &mut self.var_reference, &other.var_reference),
            ("Images", &mut self.images, &other.images),
            ("Replicas", &mut self.replicas, &other.replicas),
        ];
        for (name, own, new) in tables {
            compare(own, new, ctx)?;
            merge(own, new).context(|| format!("failed to merge {name} fieldSpec"))?;
        }
        compare(&self.name_reference, &other.name_reference, ctx)?;
        merge_references(&mut self.name_reference, &other.name_reference)
            .context(|| "failed to merge NameReference fieldSpec")
    }

    /// Reads a file that a kustomization names.
    fn read(text: &[u8], file: &TreePath, budget: &Budget, profile: Profile) -> Result<Self, Error> {
        let document = strict(text, file, budget)?;
        let rules = Rules {
            strict: true,
            coerce: true,
            profile,
        };
        let of = Type::Struct(&shapes::TRANSFORMER_CONFIG);
        let written: File = file_as(&document, &of, rules, file)?;
        Ok(written.into())
    }
}

/// Adds rows to a table. Most tables are the built-in ones, which add nothing to each other.
fn merge(own: &mut Vec<FieldSpec>, new: &[FieldSpec]) -> Result<(), Error> {
    if new.is_empty() || own == new {
        return Ok(());
    }
    merge_all(own, new)?;
    own.sort_by_cached_key(|row| row.gvk.rank());
    Ok(())
}

/// Counts the comparisons of each new row with the old ones and those before it.
fn compare<T: PartialEq + Rows>(own: &[T], new: &[T], ctx: &PluginContext<'_>) -> Result<(), Error> {
    if own == new {
        return Ok(());
    }
    let rows = |table: &[T]| table.iter().map(Rows::count).sum::<usize>();
    let pairs = rows(new).saturating_mul(rows(own) + rows(new));
    ctx.run.step(pairs as u64, ctx.loader.root())
}

/// The number of rows of an entry of a table.
trait Rows {
    fn count(&self) -> usize;
}

impl Rows for FieldSpec {
    fn count(&self) -> usize {
        1
    }
}

impl Rows for NameReference {
    fn count(&self) -> usize {
        1 + self.fields.len()
    }
}

/// Adds name references; those to the same kind are joined.
fn merge_references(own: &mut Vec<NameReference>, new: &[NameReference]) -> Result<(), Error> {
    if new.is_empty() || own == new {
        return Ok(());
    }
    for reference in new {
        match own.iter_mut().find(|old| old.target == reference.target) {
            Some(old) if old.fields == reference.fields => {}
            Some(old) => merge_all(old.fields.to_mut(), &reference.fields)?,
            None => own.push(reference.clone()),
        }
    }
    own.sort_by_cached_key(|reference| reference.target.rank());
    Ok(())
}

/// A file of `configurations`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    name_prefix: Vec<Field>,
    name_suffix: Vec<Field>,
    namespace: Vec<Field>,
    common_labels: Vec<Field>,
    template_labels: Vec<Field>,
    labels: Vec<Field>,
    common_annotations: Vec<Field>,
    name_reference: Vec<Target>,
    var_reference: Vec<Field>,
    images: Vec<Field>,
    replicas: Vec<Field>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Target {
    group: String,
    version: String,
    kind: String,
    field_specs: Vec<Field>,
}

impl From<File> for Config {
    fn from(file: File) -> Self {
        let rows = |fields: Vec<Field>| -> Vec<FieldSpec> {
            let mut rows: Vec<FieldSpec> = fields.into_iter().map(FieldSpec::from).collect();
            rows.sort_by_cached_key(|row| row.gvk.rank());
            rows
        };
        let mut name_reference: Vec<_> = file.name_reference.into_iter().map(NameReference::from).collect();
        name_reference.sort_by_cached_key(|reference| reference.target.rank());
        Self {
            name_prefix: rows(file.name_prefix),
            name_suffix: rows(file.name_suffix),
            namespace: rows(file.namespace),
            common_labels: rows(file.common_labels),
            template_labels: rows(file.template_labels),
            labels: rows(file.labels),
            common_annotations: rows(file.common_annotations),
            name_reference,
            var_reference: rows(file.var_reference),
            images: rows(file.images),
            replicas: rows(file.replicas),
        }
    }
}

impl From<Target> for NameReference {
    fn from(target: Target) -> Self {
        Self {
            target: Gvk {
                group: target.group.into(),
                version: target.version.into(),
                kind: target.kind.into(),
            },
            fields: target.field_specs.into_iter().map(FieldSpec::from).collect(),
        }
    }
}
