//! Adds a prefix or a suffix to names.

use serde::Deserialize;
use yaml::node::{Content, Tag};

use super::{decode, set};
use crate::{
    Error,
    error::Step,
    fieldspec::{Create, FieldSpec},
    id::Gvk,
    model::{Field, configs},
    resmap::ResMap,
    resource::{self, Resource},
    transform::{PluginContext, Transformer},
};

/// The kinds whose names have a fixed meaning.
const LEFT_ALONE: [Gvk; 3] = [
    Gvk::of("", "", "CustomResourceDefinition"),
    Gvk::of("apiregistration.k8s.io", "", "APIService"),
    Gvk::of("", "", "Namespace"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Prefix,
    Suffix,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Affix {
    side: Side,
    text: String,
    specs: Vec<FieldSpec>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    prefix: String,
    suffix: String,
    field_specs: Option<Vec<Field>>,
}

impl Affix {
    /// Makes the transformer of `namePrefix` or `nameSuffix`.
    pub(crate) fn new(side: Side, text: &str, specs: &[FieldSpec]) -> Self {
        Self {
            side,
            text: text.to_owned(),
            specs: specs.to_vec(),
        }
    }

    /// Reads a `PrefixTransformer` or `SuffixTransformer`. Fails if a value is of the wrong type, or it names no fields.
    pub(crate) fn from_config(side: Side, config: &yaml::Value) -> Result<Self, Error> {
        let of = match side {
            Side::Prefix => &configs::PREFIX,
            Side::Suffix => &configs::SUFFIX,
        };
        let settings: Settings = decode::config(config, of)?;
        let Some(fields) = settings.field_specs else {
            return Err(Error::new(Step::Plugin, "fieldSpecs is not expected to be nil"));
        };
        Ok(Self {
            side,
            text: match side {
                Side::Prefix => settings.prefix,
                Side::Suffix => settings.suffix,
            },
            specs: fields.into_iter().map(FieldSpec::from).collect(),
        })
    }

    fn apply(&self, resource: &mut Resource, ctx: &PluginContext<'_>) -> Result<(), Error> {
        let original = resource.original_id();
        if LEFT_ALONE.iter().any(|kind| original.gvk.is_selected_by(kind)) {
            return Ok(());
        }
        for spec in &self.specs {
            if !original.gvk.is_selected_by(&spec.gvk) {
                continue;
            }
            if spec.path == "metadata/name" {
                self.remember(resource);
            }
            set::visit(resource, spec, Create::Scalar(Some(Tag::Str)), &mut |node| {
                let old = match &node.content {
                    Content::Scalar(scalar) => &*scalar.text,
                    _ => "",
                };
                let text = match self.side {
                    Side::Prefix => format!("{}{old}", self.text),
                    Side::Suffix => format!("{old}{}", self.text),
                };
                ctx.grow(&self.text)?;
                set::scalar(node, &text, None)
            })?;
        }
        Ok(())
    }

    fn remember(&self, resource: &mut Resource) {
        if self.text.is_empty() {
            return;
        }
        let affixes = match self.side {
            Side::Prefix => &mut resource.history.prefixes,
            Side::Suffix => &mut resource.history.suffixes,
        };
        resource::push(affixes, self.text.as_str().into());
        resource.store_previous_id();
    }
}

impl Transformer for Affix {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        for resource in resources.iter_mut() {
            ctx.step(self.specs.len())?;
            self.apply(resource, ctx)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::testing::{self, transformed, transformed_all};

    fn affix(side: Side, text: &str) -> Affix {
        Affix::new(side, text, &[testing::row("metadata/name", false)])
    }

    #[test]
    fn names_get_longer_on_either_side() {
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        let resources = transformed_all(
            object,
            &[
                &affix(Side::Prefix, "in-"),
                &affix(Side::Suffix, "-in"),
                &affix(Side::Prefix, "out-"),
            ],
        );
        let resources = resources.unwrap();
        let resource = resources.get(0).unwrap();
        assert_eq!(resource.name(), "out-in-x-in");
        assert_eq!(resource.original_id().name, "x");
        let previous: Vec<_> = resource.previous_ids().map(|id| id.name).collect();
        assert_eq!(previous, ["x", "in-x", "in-x-in"]);
        assert_eq!(resource.history.prefixes, ["in-", "out-"]);
        assert_eq!(resource.history.suffixes, ["-in"]);
    }

    #[test]
    fn prefixes_skip_certain_kinds() {
        let prefix = affix(Side::Prefix, "p-");
        for (api_version, kind, expected) in [
            ("v1", "Namespace", "x"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x"),
            ("apiregistration.k8s.io/v1", "APIService", "x"),
            ("example.com/v1", "APIService", "p-x"),
        ] {
            let object = format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: x}}}}");
            let resources = transformed_all(&object, &[&prefix]).unwrap();
            assert_eq!(resources.get(0).unwrap().name(), expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn a_configuration_may_be_about_other_fields() {
        let config = testing::config(
            "{suffix: 5, fieldSpecs: [{path: spec/a, create: true}, {kind: B, path: spec/b}]}",
        );
        let suffix = Affix::from_config(Side::Suffix, &config).unwrap();
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {b: c}}";
        let resources = transformed_all(object, &[&suffix]).unwrap();
        assert!(testing::text(&resources).ends_with("spec:\n  a: 5\n  b: c\n"));
        assert!(resources.get(0).unwrap().history.previous.is_empty());
        let error = Affix::from_config(Side::Suffix, &testing::config("{suffix: a}")).unwrap_err();
        assert_eq!(error.to_string(), "fieldSpecs is not expected to be nil");
    }

    #[test]
    fn names_that_are_not_scalars_are_refused() {
        let prefix = Affix::new(Side::Prefix, "p-", &[testing::row("spec", false)]);
        let error = transformed(
            "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {}}",
            &prefix,
        );
        assert!(
            error.ends_with("expected ScalarNode but got MappingNode"),
            "{error}"
        );
    }

    #[test]
    fn empty_prefix_is_not_recorded() {
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        let resources = transformed_all(object, &[&affix(Side::Prefix, "")]).unwrap();
        assert!(resources.get(0).unwrap().history.previous.is_empty());
    }
}
