//! Tables and the files that add to them.

use super::*;
use crate::transform::testing;

fn file(text: &str) -> Result<Config, String> {
    let (path, budget) = (TreePath::default().join("c.yaml").unwrap(), Budget::default());
    Config::read(text.as_bytes(), &path, &budget, Profile::default()).map_err(|error| error.to_string())
}

fn merge(own: &mut Config, other: &Config) -> Result<(), Error> {
    testing::ctx(&[], Profile::default(), |ctx| own.merge(other, ctx))
}

fn paths(rows: &[FieldSpec]) -> Vec<String> {
    rows.iter()
        .map(|row| format!("{} {}", row.gvk.kind, row.path))
        .collect()
}

#[test]
fn built_in_rows_are_in_order_and_add_nothing_to_themselves() {
    let built_in = Config::built_in();
    let mut merged = Config::default();
    merge(&mut merged, &built_in).unwrap();
    assert_eq!(merged, built_in);
    merge(&mut merged, &built_in).unwrap();
    assert_eq!(merged, built_in);
    assert!(!merged.name_reference.is_empty() && !merged.var_reference.is_empty());
    // Also if one more row is searched for.
    merged.images.pop();
    merge(&mut merged, &built_in).unwrap();
    assert_eq!(merged.images.len(), built_in.images.len());
}

#[test]
fn rows_of_files_are_inserted_in_order() {
    let mut config =
        file("images: [{kind: Zoo, path: z}, {kind: Namespace, path: m}, {path: a}, {path: a}]").unwrap();
    assert_eq!(paths(&config.images), ["Namespace m", "Zoo z", " a", " a"]);
    let more = file("images: [{kind: Secret, path: s}, {kind: Zoo, path: z}]").unwrap();
    merge(&mut config, &more).unwrap();
    assert_eq!(
        paths(&config.images),
        ["Namespace m", "Secret s", "Zoo z", " a", " a"]
    );
    let conflict = merge(
        &mut config,
        &file("images: [{kind: Zoo, path: z, create: true}]").unwrap(),
    );
    let conflict = conflict.unwrap_err().to_string();
    assert_eq!(
        conflict,
        "failed to merge Images fieldSpec: conflicting fieldspecs"
    );
}

#[test]
fn row_may_contradict_a_more_specific_row() {
    // The narrow row comes after the wide one without a contradiction, but is first when both are added to another table.
    let mut config = file("images: [{path: a}]").unwrap();
    let narrow = file("images: [{kind: Zoo, path: a, create: true}]").unwrap();
    merge(&mut config, &narrow).unwrap();
    assert!(merge(&mut Config::default(), &config).is_err());
}

#[test]
fn references_to_one_kind_are_joined() {
    let text = "nameReference: [{kind: B, fieldSpecs: [{path: w}, {path: x}]}, {kind: A, version: v1, fieldSpecs: []}]";
    let mut config = file(text).unwrap();
    let more = file("nameReference: [{kind: B, fieldSpecs: [{path: x}, {path: z}]}]").unwrap();
    merge(&mut config, &more).unwrap();
    let found: Vec<_> = config
        .name_reference
        .iter()
        .map(|reference| (reference.target.kind.as_ref(), paths(&reference.fields).concat()))
        .collect();
    assert_eq!(found, [("A", String::new()), ("B", " w x z".to_owned())]);
}

#[test]
fn configuration_files_are_strict_but_strings_may_be_numbers() {
    let config = file("namePrefix: [{path: 1.10, Create: true}]").unwrap();
    assert_eq!(paths(&config.name_prefix), [" 1.1"]);
    assert_eq!(file(""), Ok(Config::default()));
    let cases = [
        (
            "images: []\nfoo: 1",
            r#"2: error unmarshaling JSON: while decoding JSON: json: unknown field "foo""#,
        ),
        (
            "images: 1",
            "1: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go struct field \
             TransformerConfig.images of type types.FsSlice",
        ),
        (
            "nameReference: 1",
            "1: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go struct field \
             TransformerConfig.nameReference of type builtinconfig.nbrSlice",
        ),
        (
            "images: [{path: a, kind: 1}]",
            "1: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go struct field \
             FieldSpec.images.Gvk.kind of type string",
        ),
        (
            "images: []\nimages: []",
            "2: error converting YAML to JSON: yaml: line 2: key \"images\"",
        ),
    ];
    for (text, expected) in cases {
        let found = file(text).unwrap_err();
        assert!(
            found.starts_with(&format!("c.yaml:{expected}")),
            "{text}: {found}"
        );
    }
}

fn crd(text: &str) -> Result<Config, String> {
    let (path, budget) = (TreePath::default().join("crd.yaml").unwrap(), Budget::default());
    crds::read(text.as_bytes(), "crd.yaml", &path, &budget).map_err(|error| error.to_string())
}

const DEFINITIONS: &str = "
example.com/api.Zoo:
  Schema:
    properties:
      kind: {type: string}
      apiVersion: {type: string}
      metadata: {type: object}
      spec: {$ref: example.com/api.ZooSpec}
example.com/api.ZooSpec:
  Schema:
    properties:
      keeper:
        x-kubernetes-object-ref-api-version: v1
        x-kubernetes-object-ref-kind: Keeper
      vet:
        x-kubernetes-object-ref-api-version: v1
        x-kubernetes-object-ref-kind: Vet
        x-kubernetes-object-ref-name-key: id
      notes: {x-kubernetes-annotation: ''}
      select: {x-kubernetes-label-selector: ''}
      code: {x-kubernetes-identity: ''}
";

#[test]
fn crd_definitions_add_field_specs() {
    let config = crd(DEFINITIONS).unwrap();
    assert_eq!(paths(&config.common_annotations), ["Zoo spec/notes"]);
    assert_eq!(paths(&config.common_labels), ["Zoo spec/select"]);
    assert_eq!(paths(&config.name_prefix), ["Zoo spec/code"]);
    let references: Vec<_> = config
        .name_reference
        .iter()
        .map(|reference| (reference.target.to_string(), paths(&reference.fields).concat()))
        .collect();
    let expected = [
        ("Keeper.v1.[noGrp]", "Zoo spec/keeper/name"),
        ("Vet.v1.[noGrp]", "Zoo spec/vet/id"),
    ];
    assert_eq!(
        references,
        expected.map(|(target, field)| (target.to_owned(), field.to_owned()))
    );
}

#[test]
fn invalid_crd_definitions_are_refused() {
    assert_eq!(crd("{}"), Ok(Config::default()));
    assert!(
        crd("")
            .unwrap_err()
            .starts_with("unable to parse open API definition from 'crd.yaml': ")
    );
    let cases = [
        (
            "[a]",
            "cannot unmarshal array into Go value of type accumulator.nameToApiMap",
        ),
        (
            "# an object\nkind: A",
            "cannot unmarshal string into Go value of type accumulator.OpenAPIDefinition",
        ),
        (
            "a: {schema: {properties: 1}}",
            r#"the schema of "a": "properties" is no map but: integer"#,
        ),
        (
            "a: {Schema: {properties: {b: []}}}",
            r#"the schema of "a": the property "b" is no map but: list"#,
        ),
    ];
    for (text, expected) in cases {
        let found = crd(text).unwrap_err();
        assert!(found.ends_with(expected), "{text}: {found}");
    }
    let endless = DEFINITIONS.replace(
        "      code: {",
        "      inner: {$ref: example.com/api.ZooSpec}\n      code: {",
    );
    let endless = crd(&endless).unwrap_err();
    assert!(
        endless.ends_with(r#"the definition "example.com/api.ZooSpec" contains itself at "spec/inner""#),
        "{endless}"
    );
}
