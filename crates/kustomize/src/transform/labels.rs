//! Sets labels, and the selectors and templates that go with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{decode, pairs::Pairs};
use crate::{
    Error,
    config::Config,
    error::Context as _,
    fieldspec::{FieldSpec, merge_all, merge_one},
    model::{Field, Label, configs},
    options::Profile,
};

const METADATA: FieldSpec = FieldSpec::row("", "", "", "metadata/labels", true);

/// Makes the transformer of `commonLabels`.
pub(crate) fn common(labels: &BTreeMap<String, String>, tables: &Config) -> Pairs {
    Pairs {
        pairs: labels.clone(),
        specs: tables.common_labels.clone(),
    }
}

/// Makes the transformer of an entry of `labels`. Fails if its fields are in the tables too, with another `create`.
pub(crate) fn of(label: &Label, tables: &Config, profile: Profile) -> Result<Pairs, Error> {
    Ok(Pairs {
        pairs: label.pairs.clone(),
        specs: specs(label, tables, profile).context(|| "failed to merge labels")?,
    })
}

fn specs(label: &Label, tables: &Config, profile: Profile) -> Result<Vec<FieldSpec>, Error> {
    let mut specs: Vec<_> = label.fields.iter().cloned().map(FieldSpec::from).collect();
    merge_all(&mut specs, &tables.labels)?;
    if label.include_selectors {
        merge_all(&mut specs, &tables.common_labels)?;
        return Ok(specs);
    }
    // Up to 5.8.1, claim templates were templates like the others.
    let claims_apart = profile > Profile::V5_8_1;
    for row in &tables.template_labels {
        let wanted = if claims_apart && row.path.contains("volumeClaimTemplates") {
            label.include_volume_claim_templates
        } else {
            label.include_templates
        };
        if wanted {
            merge_one(&mut specs, row.clone()).context(|| "failed to merge template fieldSpec")?;
        }
    }
    merge_one(&mut specs, METADATA)?;
    Ok(specs)
}

/// Reads a `LabelTransformer`.
pub(crate) fn from_config(config: &yaml::Value) -> Result<Pairs, Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Settings {
        labels: BTreeMap<String, String>,
        field_specs: Vec<Field>,
    }
    let settings: Settings = decode::config(config, &configs::LABELS)?;
    Ok(Pairs {
        pairs: settings.labels,
        specs: settings.field_specs.into_iter().map(FieldSpec::from).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::shapes,
        transform::testing::{self, tables, transformed},
    };

    fn label(text: &str) -> Label {
        decode::config(&testing::config(text), &shapes::LABEL).unwrap()
    }

    fn paths(label: &Label, profile: Profile) -> Vec<String> {
        let pairs = of(label, &tables(), profile).unwrap();
        pairs.specs.iter().map(|spec| spec.path.to_string()).collect()
    }

    #[test]
    fn label_entries_choose_their_fields() {
        let claims = "spec/volumeClaimTemplates[]/metadata/labels";
        let templates = "spec/template/metadata/labels";
        let own = label("{fields: [{path: own, kind: A}], includeTemplates: true}");
        let cases: &[(&str, Profile, &[&str])] = &[
            ("{}", Profile::V5_8_1, &["metadata/labels"]),
            (
                "{includeSelectors: true, includeTemplates: true}",
                Profile::V5_8_1,
                &["metadata/labels", "spec/selector"],
            ),
            (
                "{includeTemplates: true}",
                Profile::V5_8_1,
                &["metadata/labels", templates, claims],
            ),
            (
                "{includeTemplates: true}",
                Profile::V5_8_3,
                &["metadata/labels", templates],
            ),
            (
                "{includeVolumeClaimTemplates: true}",
                Profile::V5_8_3,
                &[claims, "metadata/labels"],
            ),
        ];
        for (text, profile, expected) in cases {
            assert_eq!(paths(&label(text), *profile), *expected, "{text}");
        }
        assert_eq!(
            paths(&own, Profile::V5_8_1),
            ["own", "metadata/labels", templates, claims]
        );
    }

    #[test]
    fn fields_that_contradict_the_tables_are_refused() {
        let label = label("{fields: [{path: metadata/labels}]}");
        let error = of(&label, &tables(), Profile::V5_8_1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failed to merge labels: conflicting fieldspecs"
        );
    }

    #[test]
    fn labels_are_set_where_they_are_created_or_found() {
        let pairs = [("a".to_owned(), "1".to_owned())].into();
        let labels = common(&pairs, &tables());
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, labels: null}, spec: {selector: {b: c}}}";
        let expected =
            "metadata:\n  labels:\n    a: \"1\"\n  name: x\nspec:\n  selector:\n    a: \"1\"\n    b: c\n";
        assert!(transformed(object, &labels).ends_with(expected));
        let object = "{apiVersion: v1, kind: A, metadata: {name: x, labels: [a]}}";
        assert_eq!(
            transformed(object, &labels),
            "considering field 'metadata/labels' of object A.v1.[noGrp]/x.[noNs]: wrong node kind: expected \
             MappingNode but got SequenceNode"
        );
    }

    #[test]
    fn selectors_follow_a_label_that_was_added_with_them() {
        let tables = Config {
            common_labels: vec![METADATA, testing::row("spec/selector", true)],
            ..Config::default()
        };
        let pairs = |text: &str| [("a".to_owned(), text.to_owned())].into();
        let later = Pairs {
            pairs: pairs("2"),
            specs: vec![METADATA],
        };
        let after = |object: &str| {
            let resources =
                testing::transformed_all(object, &[&common(&pairs("1"), &tables), &later]).unwrap();
            testing::text(&resources)
        };
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        assert!(
            after(object).ends_with("labels:\n    a: \"2\"\n  name: x\nspec:\n  selector:\n    a: \"2\"\n")
        );
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {selector: {a: b}}}";
        assert!(
            after(object).ends_with("labels:\n    a: \"2\"\n  name: x\nspec:\n  selector:\n    a: \"1\"\n")
        );
    }

    #[test]
    fn a_configuration_has_its_own_fields() {
        let config = testing::config("{labels: {a: b}, fieldSpecs: [{path: spec/labels, create: true}]}");
        let labels = from_config(&config).unwrap();
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}}";
        assert!(transformed(object, &labels).ends_with("name: x\nspec:\n  labels:\n    a: b\n"));
    }
}
