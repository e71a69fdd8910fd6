//! Kustomization files as strings.

use tree::{Budget, Mem, TreePath};

use super::{
    decode::{self, find},
    *,
};
use crate::Profile;

fn read_as(text: &str, profile: Profile) -> (Result<Kustomization, crate::Error>, Vec<String>) {
    let file = TreePath::default().join("kustomization.yaml").unwrap();
    let mut warnings = Vec::new();
    let mut warn = |text| warnings.push(text);
    let read = decode::text(text.as_bytes(), &file, profile, &Budget::default(), &mut warn);
    (read, warnings)
}

fn read(text: &str) -> Kustomization {
    read_as(text, Profile::default()).0.unwrap()
}

fn error(text: &str) -> String {
    read_as(text, Profile::default()).0.unwrap_err().to_string()
}

#[test]
fn decoding_errors_have_go_messages() {
    let cases = [
        ("foo: 1", r#"1: invalid Kustomization: json: unknown field "foo""#),
        (
            "namePrefix: a\nfoo: 1",
            r#"2: invalid Kustomization: json: unknown field "foo""#,
        ),
        (
            "zoo: 1\nimages: [{Tag: 1}]",
            r#"2: invalid Kustomization: json: unknown field "Tag""#,
        ),
        (
            "[1]",
            "1: invalid Kustomization: json: cannot unmarshal array into Go value of type types.Kustomization",
        ),
        (
            "text",
            "1: invalid Kustomization: json: cannot unmarshal string into Go value of type types.Kustomization",
        ),
        (
            "namePrefix: [\n",
            "2: invalid Kustomization: yaml: line 1: did not find expected node content",
        ),
        (
            "a: b\n\tc: d",
            "2: invalid Kustomization: yaml: line 2: found a tab character that violates indentation",
        ),
        (
            "a: @",
            "1: invalid Kustomization: yaml: found character that cannot start any token",
        ),
        ("kind: Foo", "1: kustomization.yaml is empty"),
        ("", "1: kustomization.yaml is empty"),
        ("# nothing\n", "1: kustomization.yaml is empty"),
        (
            "namePrefix: ''\nresources:\nbases: []",
            "1: kustomization.yaml is empty",
        ),
        (
            "namePrefix: a\nkind: Foo\napiVersion: v1",
            "2: Failed to read kustomization file under : \nkind should be Kustomization or Component\n\
             apiVersion for Foo should be kustomize.config.k8s.io/v1beta1",
        ),
        (
            "namePrefix: a\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Component",
            "2: Failed to read kustomization file under : \napiVersion for Component should be \
             kustomize.config.k8s.io/v1alpha1",
        ),
    ];
    for (text, expected) in cases {
        let expected = expected.replace("under : ", &format!("under {}:", TreePath::default()));
        let found = error(text);
        let found = found.strip_prefix("kustomization.yaml:").unwrap_or(&found);
        assert!(found.starts_with(&expected), "{text}\n  {found}\n  {expected}");
    }
}

#[test]
fn type_errors_name_the_path() {
    let cases = [
        (
            "kind: 1",
            "number into Go struct field Kustomization.TypeMeta.kind of type string",
        ),
        (
            "namePrefix: yes",
            "bool into Go struct field Kustomization.namePrefix of type string",
        ),
        (
            "resources: a",
            "string into Go struct field Kustomization.resources of type []string",
        ),
        (
            "images: 1",
            "number into Go struct field Kustomization.images of type []types.Image",
        ),
        (
            "images: [1]",
            "number into Go struct field Kustomization.images of type types.Image",
        ),
        (
            "images: [{newTag: 2, name: a}]",
            "number into Go struct field Image.images.newTag of type string",
        ),
        (
            "vars: {}",
            "object into Go struct field Kustomization.vars of type []types.Var",
        ),
        (
            "configMapGenerator: [{literals: 1}]",
            "number into Go struct field ConfigMapArgs.configMapGenerator.GeneratorArgs.KvPairSources.literals of \
             type []string",
        ),
        (
            "configMapGenerator: [{options: 1}]",
            "number into Go struct field ConfigMapArgs.configMapGenerator.GeneratorArgs.options of type \
             types.GeneratorOptions",
        ),
        (
            "patches: [{target: {kind: 1}}]",
            "number into Go struct field Selector.patches.target.ResId.Gvk.kind of type string",
        ),
        (
            "replacements: [{source: {kind: true, fieldPath: 1}, targets: 1}]",
            "number into Go struct field SourceSelector.replacements.Replacement.source.fieldPath of type string",
        ),
        (
            "replacements: [{targets: 1}]",
            "number into Go struct field ReplacementField.replacements.Replacement.targets of type \
             []*types.TargetSelector",
        ),
        (
            "replicas: [{count: 1.5}]",
            "number 1.5 into Go struct field Replica.replicas.count of type int64",
        ),
        (
            "replicas: [{count: x}]",
            "string into Go struct field Replica.replicas.count of type int64",
        ),
        (
            "helmCharts: [{valuesInline: 1}]",
            "number into Go struct field HelmChart.helmCharts.valuesInline of type map[string]interface {}",
        ),
        (
            "commonLabels: {a: 1}",
            "number into Go struct field Kustomization.commonLabels of type string",
        ),
        (
            "sortOptions: {order: 1}",
            "number into Go struct field SortOptions.sortOptions.order of type types.SortOrder",
        ),
    ];
    for (text, expected) in cases {
        let expected =
            format!("kustomization.yaml:1: invalid Kustomization: json: cannot unmarshal {expected}");
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn keys_match_in_any_case_and_the_last_wins() {
    let fields = read("NAMEPREFIX: a\nnamesuffix: b\nnamespace: c\nnamespace: d").fields;
    assert_eq!(fields.name_prefix, "a");
    assert_eq!(fields.name_suffix, "b");
    assert_eq!(fields.namespace, "d");
    assert_eq!(read("namePrefix: b\nNAMEPREFIX: c").fields.name_prefix, "b");
    let labels = read("commonLabels: {a: b}\nCOMMONLABELS: {b: c, y: null}")
        .fields
        .common_labels;
    let expected = [("a", "b"), ("b", "c"), ("true", "")];
    assert_eq!(
        labels,
        expected
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    );
    assert_eq!(read("namePrefix: a\n<<: {namePrefix: b}").fields.name_prefix, "b");
    assert_eq!(read("namePrefix: a\n---\nfoo: [").fields.name_prefix, "a");
    assert_eq!(read("resources: [null]").fields.resources, [""]);
    assert!(error("replacements: [{targets: [null]}]").contains("null in a list of types.TargetSelector"));
}

#[test]
fn deprecated_fields_are_moved_with_a_warning() {
    let text = "bases: [b]\nresources: [a]\nimageTags: [{name: x}]\nvars: []\n\
                configMapGenerator: [{name: c, envs: [e], env: f}]\nsecretGenerator: [{name: s, env: g}]\n\
                helmChartInflationGenerator: [{chartName: c, helmHome: h, values: v, extraArgs: [z]}]";
    let (kustomization, warnings) = read_as(text, Profile::default());
    let kustomization = kustomization.unwrap();
    let fields = &kustomization.fields;
    assert_eq!(fields.resources, ["a", "b"]);
    assert_eq!(fields.images.len(), 1);
    assert_eq!(kustomization.line("images"), 3);
    assert_eq!(kustomization.line("resources"), 2);
    assert_eq!(fields.config_map_generator.first().unwrap().envs, ["e", "f"]);
    assert_eq!(fields.secret_generator.first().unwrap().envs, ["g"]);
    let chart = fields.helm_charts.first().unwrap();
    assert_eq!(
        (chart.get_str("name"), chart.get_str("valuesFile")),
        (Some("c"), Some("v"))
    );
    assert_eq!(
        fields.helm_globals.as_ref().unwrap().get_str("configHome"),
        Some("h")
    );
    let [bases, images, vars, unused] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert_eq!(
        bases,
        "# Warning: 'bases' is deprecated. Please use 'resources' instead. Run 'kustomize edit fix' to update your \
         Kustomization automatically."
    );
    assert!(images.contains("'imageTags'"));
    assert!(vars.contains("'replacements' instead. [EXPERIMENTAL] Run"));
    assert!(unused.contains("'extraArgs'"));
}

#[test]
fn fields_of_later_versions_are_unknown_to_earlier_profiles() {
    let text = "labels: [{pairs: {a: b}, includeVolumeClaimTemplates: true}]";
    assert!(error(text).ends_with(r#"json: unknown field "includeVolumeClaimTemplates""#));
    let newer = read_as(text, Profile::V5_8_3).0.unwrap();
    assert!(
        newer
            .fields
            .labels
            .first()
            .unwrap()
            .include_volume_claim_templates
    );
}

#[test]
fn every_field_of_the_model_has_its_shape() {
    let text = "\
kind: Component
metadata: {name: x, annotations: {a: b}}
components: [a]
labels: [{pairs: {a: b}, includeSelectors: true, fields: [{path: p, kind: K, create: true}]}]
patches: [{path: p, options: {allowNameChange: true}, target: {labelSelector: a=b}}]
replicas: [{name: a, count: 3}]
replacements:
- {path: q}
- {source: {kind: K, fieldPath: f, options: {delimiter: '-', index: 1}}, targets: [{select: {name: m}, fieldPaths: [x]}]}
vars: [{name: V, objref: {apiVersion: v1, kind: K, name: m}, fieldref: {fieldpath: a.b}}]
secretGenerator: [{name: s, type: t, options: {disableNameSuffixHash: true}}]
sortOptions: {order: legacy, legacySortOptions: {orderFirst: [A]}}
openapi: {path: o}
";
    let fields = read(text).fields;
    assert_eq!(fields.kind, KustomizationKind::Component);
    let label = fields.labels.first().unwrap();
    assert!(label.include_selectors && !label.include_templates);
    let spec: FieldSpec = label.fields.first().unwrap().clone().into();
    assert_eq!((spec.gvk.kind.as_ref(), spec.create), ("K", true));
    let patch = fields.patches.first().unwrap();
    assert_eq!(patch.target.as_ref().unwrap().label_selector, "a=b");
    assert_eq!(patch.options.get("allowNameChange"), Some(&true));
    assert_eq!(fields.replicas.first().unwrap().count, 3);
    let [path, inline] = fields.replacements.as_slice() else {
        panic!("two entries");
    };
    assert_eq!(path.path, "q");
    let source = inline.replacement.source.as_ref().unwrap();
    assert_eq!(
        (
            source.selector.kind.as_str(),
            source.options.as_ref().unwrap().index
        ),
        ("K", 1)
    );
    assert_eq!(fields.vars.first().unwrap().field.field_path, "a.b");
    assert_eq!(fields.secret_generator.first().unwrap().secret_type, "t");
    let sort = fields.sort_options.unwrap();
    assert_eq!(sort.legacy_sort_options.unwrap().order_first, ["A"]);
    assert_eq!(fields.openapi.get("path").unwrap(), "o");
}

#[test]
fn replacement_files_are_read_leniently() {
    let file = TreePath::default();
    let read = |text: &str| {
        let read = decode::replacements(text.as_bytes(), &file, &Budget::default(), Profile::default());
        read.map_err(|error| error.to_string())
    };
    let one = read("sourceValue: 1.10\nunknown: 1").unwrap();
    assert_eq!(one.first().unwrap().source_value.as_deref(), Some("1.1"));
    assert_eq!(read("- sourceValue: a\n- sourceValue: true").unwrap().len(), 2);
    assert!(read("text").unwrap_err().contains("replacement path: string"));
    let kind = read("source: {kind: 1}").unwrap_err();
    assert!(
        kind.ends_with("struct field SourceSelector.source.ResId.Gvk.kind of type string"),
        "{kind}"
    );
}

#[test]
fn directory_with_two_kustomizations_is_refused() {
    let root = TreePath::default();
    let tree = |names: &[&str]| {
        let mut tree = Mem::new();
        for name in names {
            tree.insert(root.join(name).unwrap(), "namePrefix: a", false);
        }
        find(&tree, &root).map_err(|error| error.to_string())
    };
    assert_eq!(tree(&["other.yaml"]), Ok(None));
    assert_eq!(
        tree(&["Kustomization"]),
        Ok(Some(root.join("Kustomization").unwrap()))
    );
    let several = tree(&["kustomization.yml", "kustomization.yaml"]).unwrap_err();
    assert!(several.starts_with("Found multiple kustomization files under: "));
}
