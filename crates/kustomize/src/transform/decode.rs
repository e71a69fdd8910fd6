//! Reads the configuration of a built-in generator or transformer, whose shape is one of [`crate::model::configs`].

use serde::de::DeserializeOwned;
use yaml::Value;

use crate::{
    Error, Profile,
    error::Step,
    model::shape::{self, Rules, Struct, Type},
};

/// Go is not strict here: unknown fields are ignored, and numbers and booleans become strings.
const RULES: Rules = Rules {
    strict: false,
    coerce: true,
    profile: Profile::V5_8_3,
};

pub(crate) fn config<T: DeserializeOwned>(config: &Value, of: &'static Struct) -> Result<T, Error> {
    shape::decode(config, &Type::Struct(of), RULES).map_err(|mismatch| {
        let problem = mismatch.problem;
        Error::new(
            Step::Plugin,
            format!("error unmarshaling JSON: while decoding JSON: {problem}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::{model::configs, transform::testing};

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Labels {
        labels: BTreeMap<String, String>,
        field_specs: Option<Vec<FieldSpec>>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct FieldSpec {
        kind: String,
        path: String,
        create: bool,
    }

    fn labels(text: &str) -> Result<Labels, String> {
        config(&testing::config(text), &configs::LABELS).map_err(|error| error.to_string())
    }

    #[test]
    fn plugin_configurations_allow_unknown_fields() {
        let read = labels(
            "{Labels: {a: true, b: null, c: x}, other: [1], fieldSPECS: [{path: 1, create: null}, null]}",
        );
        let texts = [("a", "true"), ("b", ""), ("c", "x")];
        let spec = FieldSpec {
            path: "1".into(),
            ..FieldSpec::default()
        };
        let expected = Labels {
            labels: texts.map(|(key, text)| (key.into(), text.into())).into(),
            field_specs: Some(vec![spec, FieldSpec::default()]),
        };
        assert_eq!(read.unwrap(), expected);
        assert_eq!(
            labels("{labels: null, fieldSpecs: null}").unwrap(),
            Labels::default()
        );
    }

    #[test]
    fn wrong_types_are_refused() {
        for (text, place) in [
            (
                "{fieldSpecs: [{create: 1}]}",
                "FieldSpec.fieldSpecs.create of type bool",
            ),
            ("{fieldSpecs: {}}", "LabelTransformerPlugin.fieldSpecs"),
            ("{fieldSpecs: [{path: [a]}]}", "fieldSpecs.path"),
            (
                "{labels: a}",
                "LabelTransformerPlugin.labels of type map[string]string",
            ),
            ("[]", "Go value of type builtins.LabelTransformerPlugin"),
        ] {
            let error = labels(text).unwrap_err();
            assert!(error.contains("cannot unmarshal"), "{text}: {error}");
            assert!(error.contains(place), "{text}: {error}");
        }
    }
}
