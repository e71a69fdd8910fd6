use super::*;

fn openapi(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn set(
    schema: &mut Schema,
    field: &[(&str, &str)],
    document: Option<&str>,
    reset: bool,
    mode: OpenApi,
) -> Result<(), String> {
    let document = document.map(str::as_bytes);
    let done = schema.set(&openapi(field), document, reset, mode, &Budget::default());
    done.map_err(|error| error.to_string())
}

/// Returns the merge keys at a path; `[]` is any element of a list.
fn keys(schema: &Schema, api_version: &str, kind: &str, path: &str) -> Option<Vec<String>> {
    let mut shape = schema.root(api_version, kind).unwrap()?;
    for part in path.split('/') {
        shape = if part == "[]" {
            shape.elements()?
        } else {
            shape.field(part)?
        };
    }
    Some(shape.merge_keys()?.into_iter().map(str::to_owned).collect())
}

const DOCUMENT: &str = "
definitions:
  a.Shop:
    x-kubernetes-group-version-kind:
    - {group: x.io, kind: Shop, version: v1}
    properties:
      spec: {$ref: '#/definitions/a.Spec'}
      loop: {$ref: '#/definitions/a.Loop'}
      template: {$ref: '#/definitions/io.k8s.api.core.v1.PodTemplateSpec'}
  a.Loop: {$ref: '#/definitions/a.Loop'}
  a.Spec:
    properties:
      shelves:
        type: array
        items: {$ref: '#/definitions/a.Shelf'}
        x-kubernetes-patch-strategy: merge,retainKeys
        x-kubernetes-patch-merge-key: id
      tags: {type: array, items: {type: string}, x-kubernetes-patch-strategy: merge}
      plain: {type: array, x-kubernetes-patch-merge-key: id}
      replaced: {type: array, x-kubernetes-patch-strategy: replace}
    additionalProperties: {$ref: '#/definitions/a.Spec/properties/shelves'}
  a.Shelf:
    properties:
      ports:
        type: [array]
        items: {type: object}
        x-kubernetes-patch-strategy: merge
        x-kubernetes-patch-merge-key: port
        x-kubernetes-list-map-keys: [port, protocol]
";

#[test]
fn custom_definitions_set_merge_keys() {
    let mut schema = Schema::default();
    set(
        &mut schema,
        &[("path", "s.yaml")],
        Some(DOCUMENT),
        true,
        OpenApi::Replace,
    )
    .unwrap();
    let shop = |path| keys(&schema, "x.io/v1", "Shop", path).map(|keys| keys.join(","));
    assert_eq!(shop("spec/shelves").as_deref(), Some("id"));
    assert_eq!(shop("spec/tags").as_deref(), Some(""));
    assert_eq!(shop("spec/plain"), None);
    assert_eq!(shop("spec/replaced"), None);
    assert_eq!(shop("spec/shelves/[]/ports").as_deref(), Some("port,protocol"));
    assert_eq!(shop("spec/other").as_deref(), Some("id"));
    assert_eq!(shop("loop/x"), None);
    assert_eq!(shop("template/spec/containers"), None);
    assert_eq!(
        keys(&schema, "apps/v1", "Deployment", "spec/template/spec/containers"),
        None
    );
    let own = keys(
        &schema,
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
        "configMapGenerator",
    );
    assert_eq!(own.unwrap(), ["name"]);
}

#[test]
fn an_added_schema_leaves_the_built_in_one() {
    let mut schema = Schema::default();
    set(&mut schema, &[], Some(DOCUMENT), true, OpenApi::Add).unwrap();
    for (api_version, kind, path) in [
        ("x.io/v1", "Shop", "template/spec/containers"),
        ("apps/v1", "Deployment", "spec/template/spec/containers"),
    ] {
        assert_eq!(
            keys(&schema, api_version, kind, path).unwrap(),
            ["name"],
            "{kind}"
        );
    }
}

#[test]
fn built_in_schema_stays_after_its_first_use() {
    for (kind, stays) in [("Deployment", false), ("Shop", true)] {
        let mut schema = Schema::default();
        schema.note_kind("apps/v1", kind);
        set(&mut schema, &[], Some(DOCUMENT), false, OpenApi::Replace).unwrap();
        let keys = keys(&schema, "x.io/v1", "Shop", "template/spec/containers");
        assert_eq!(keys.is_some(), stays, "{kind}");
    }
}

#[test]
fn custom_schema_paths_set_the_scope_of_kinds() {
    let get = |kind: &str| {
        format!("{{get: {{x-kubernetes-group-version-kind: {{group: x.io, version: v1, kind: {kind}}}}}}}")
    };
    let (town, shop) = (get("Town"), get("Shop"));
    let document = format!(
        "{{paths: {{'/apis/x.io/v1/towns': {town}, '/apis/x.io/v1/shops': {shop}, \
         '/apis/x.io/v1/namespaces/{{namespace}}/shops': {shop}}}}}"
    );
    let mut schema = Schema::default();
    assert!(!schema.note_kind("x.io/v1", "Town"));
    set(&mut schema, &[], Some(&document), true, OpenApi::Replace).unwrap();
    for (kind, outside) in [("Town", true), ("Shop", false), ("Street", false)] {
        assert_eq!(schema.note_kind("x.io/v1", kind), outside, "{kind}");
    }
}

#[test]
fn built_in_tables_cover_references_of_custom_schemas() {
    for (name, ..) in NAMED {
        assert!(built_in(&format!("#/definitions/{name}")).is_some(), "{name}");
    }
}

#[test]
fn first_schema_setting_wins() {
    let mut schema = Schema::default();
    set(&mut schema, &[], None, true, OpenApi::Replace).unwrap();
    set(&mut schema, &[], Some(DOCUMENT), false, OpenApi::Replace).unwrap();
    set(&mut schema, &[], Some("{}"), false, OpenApi::Replace).unwrap();
    assert!(schema.root("x.io/v1", "Shop").unwrap().is_some());
    set(
        &mut schema,
        &[("version", "v1.21.2")],
        None,
        true,
        OpenApi::Replace,
    )
    .unwrap();
    assert!(schema.root("x.io/v1", "Shop").unwrap().is_none());
}

#[test]
fn unknown_openapi_versions_are_refused() {
    let mut schema = Schema::default();
    let error = set(
        &mut schema,
        &[("version", "v1.20.4")],
        None,
        true,
        OpenApi::Replace,
    );
    assert_eq!(
        error.unwrap_err(),
        "the specified OpenAPI version is not built in"
    );
    let error = set(
        &mut schema,
        &[("version", "v1.21.2")],
        Some("{}"),
        true,
        OpenApi::Replace,
    );
    let words = "builtin version and custom schema provided, cannot use both";
    assert_eq!(error.unwrap_err(), words);
}

#[test]
fn invalid_schema_fails_at_its_first_use() {
    let mut schema = Schema::default();
    for document in ["[]", "{definitions: []}", "{"] {
        set(&mut schema, &[], Some(document), true, OpenApi::Replace).unwrap();
        let error = schema.root("v1", "Pod").unwrap_err().to_string();
        assert!(error.starts_with("invalid schema file: "), "{error}");
    }
}
