//! Sets annotations.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{decode, pairs::Pairs};
use crate::{
    Error,
    config::Config,
    fieldspec::FieldSpec,
    model::{Field, configs},
};

/// Makes the transformer of `commonAnnotations`.
pub(crate) fn common(annotations: &BTreeMap<String, String>, tables: &Config) -> Pairs {
    Pairs {
        pairs: annotations.clone(),
        specs: tables.common_annotations.clone(),
    }
}

/// Reads an `AnnotationsTransformer`.
pub(crate) fn from_config(config: &yaml::Value) -> Result<Pairs, Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Settings {
        annotations: BTreeMap<String, String>,
        field_specs: Vec<Field>,
    }
    let settings: Settings = decode::config(config, &configs::ANNOTATIONS)?;
    Ok(Pairs {
        pairs: settings.annotations,
        specs: settings.field_specs.into_iter().map(FieldSpec::from).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::testing::{self, transformed};

    #[test]
    fn annotations_are_strings_and_replace_older_ones() {
        let tables = Config {
            common_annotations: vec![
                testing::row("metadata/annotations", true),
                testing::row("spec/template/metadata/annotations", false),
            ],
            ..Config::default()
        };
        let pairs = [("a", "yes"), ("b", "2")].map(|(key, text)| (key.into(), text.into()));
        let annotations = common(&pairs.into(), &tables);
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, annotations: {b: old, c: 3}}, spec: {}}";
        let expected = "apiVersion: v1\nkind: A\nmetadata:\n  annotations:\n    a: \"yes\"\n    b: \"2\"\n    c: 3\n  name: x\nspec: {}\n";
        assert_eq!(transformed(object, &annotations), expected);
    }

    #[test]
    fn a_configuration_has_its_own_fields() {
        let config = testing::config(
            "{apiVersion: builtin, kind: AnnotationsTransformer, metadata: {name: n}, annotations: {a: 1},
              fieldSpecs: [{kind: A, path: spec/notes, create: true}]}",
        );
        let annotations = from_config(&config).unwrap();
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        assert!(transformed(object, &annotations).ends_with("name: x\nspec:\n  notes:\n    a: \"1\"\n"));
        let object = "{apiVersion: v1, kind: B, metadata: {name: x}}";
        assert!(!transformed(object, &annotations).contains("notes"));
    }
}
