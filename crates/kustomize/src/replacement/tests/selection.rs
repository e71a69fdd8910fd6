//! Tests of the objects that sources and targets select.

use super::*;

const OBJECTS: &str = "\
{apiVersion: v1, kind: A, metadata: {name: one, labels: {app: x}}, v: ''}
---
{apiVersion: v1, kind: A, metadata: {name: two, namespace: ns, annotations: {k: v}}, v: ''}
---
{apiVersion: g/v1beta1, kind: B, metadata: {name: one}, v: ''}
";

/// Returns the names and kinds of the changed objects.
fn targets(select: &str, reject: &str) -> Result<String, Error> {
    let mut resources = objects(OBJECTS);
    let text =
        format!("[{{sourceValue: hit, targets: [{{select: {select}, reject: {reject}, fieldPaths: [v]}}]}}]");
    run(&mut resources, &text, &Budget::default())?;
    let is_hit = |resource: &&Resource| resource.node().get("v").unwrap().as_text() == Some("hit");
    let hit: Vec<_> = resources
        .iter()
        .filter(is_hit)
        .map(|hit| format!("{}/{}", hit.gvk().kind, hit.name()))
        .collect();
    Ok(hit.join(" "))
}

#[test]
fn targets_are_selected_by_patterns_of_whole_parts() {
    for (select, reject, expected) in [
        ("{}", "[]", "A/one A/two B/one"),
        ("{kind: A}", "[]", "A/one A/two"),
        ("{name: o.*}", "[]", "A/one B/one"),
        ("{name: ne}", "[]", ""),
        ("{group: g, version: 'v1.*'}", "[]", "B/one"),
        ("{version: v1}", "[]", "A/one A/two"),
        ("{namespace: n.}", "[]", "A/two"),
        ("{namespace: default}", "[]", ""),
        ("{labelSelector: app=x}", "[]", "A/one"),
        ("{annotationSelector: 'k in (v,w)'}", "[]", "A/two"),
        ("{}", "[{kind: B}, {name: two}]", "A/one"),
        ("{}", "[{}]", "A/one A/two B/one"),
        ("{}", "[{labelSelector: app=x}]", "A/two B/one"),
        ("{}", "[{kind: B, labelSelector: app=x}]", "A/two"),
        ("{kind: Nope}", "[]", ""),
    ] {
        assert_eq!(targets(select, reject).unwrap(), expected, "{select} {reject}");
    }
    let error = targets("{name: '('}", "[]").unwrap_err().to_string();
    assert!(error.starts_with("error creating target selector: "), "{error}");
}

#[test]
fn targets_match_earlier_identities() {
    let mut resources = objects("{kind: A, metadata: {name: pre-one, namespace: ns}, v: x}");
    resources.get_mut(0).unwrap().history.previous.push(Previous {
        kind: "A".into(),
        name: "one".into(),
        namespace: "default".into(),
    });
    let select = |selector: &str, namespace: &str| {
        let text = format!(
            "[{{source: {{{selector}, fieldPath: v}}, targets: [{{select: {{name: one{namespace}}}, fieldPaths: [w], \
             options: {{create: true}}}}]}}]"
        );
        let mut resources = resources.clone();
        run(&mut resources, &text, &Budget::default()).map(|()| {
            let node = resources.get(0).unwrap().node();
            node.get("w").is_some()
        })
    };
    assert!(select("name: one", "").unwrap());
    assert!(select("name: pre-one, namespace: ns", ", namespace: default").unwrap());
    assert!(!select("name: pre-one", ", namespace: ns").unwrap());
    assert!(select("name: one, namespace: ns", "").is_err());
}

#[test]
fn a_source_is_one_object_by_exact_parts() {
    let refused = |source: &str| {
        let text = format!("[{{source: {source}, targets: [{{select: {{}}, fieldPaths: [v]}}]}}]");
        super::refused(OBJECTS, &text)
    };
    for (source, expected) in [
        (
            "{kind: A}",
            "multiple matches for selector A.[noVer].[noGrp]/[noName].[noNs]",
        ),
        (
            "{kind: A, name: o.*, fieldPath: v}",
            "nothing selected by A.[noVer].[noGrp]/o.*.[noNs]:v",
        ),
        (
            "{name: three, namespace: far, options: {delimiter: ':', index: 2}}",
            "nothing selected by [noKind].[noVer].[noGrp]/three.far::(2), create=false",
        ),
        (
            "{kind: B, fieldPath: a.b}",
            "fieldPath `a.b` is missing for replacement source B.[noVer].[noGrp]/[noName].[noNs]",
        ),
        (
            "{kind: B, fieldPath: v.b}",
            "error looking up replacement source: wrong node kind: expected MappingNode but got ScalarNode",
        ),
    ] {
        assert_eq!(refused(source), expected, "{source}");
    }
}

#[test]
fn the_namespace_of_a_source_counts_for_every_kind() {
    let objects = "{apiVersion: v1, kind: Namespace, metadata: {name: n}, v: x}";
    let text = "[{source: {kind: Namespace, namespace: default, fieldPath: v}, targets: [{select: {}, fieldPaths: [v]}]}]";
    assert!(replaced(objects, text).is_ok());
}

#[test]
fn later_replacements_see_renamed_objects() {
    let out = replaced(
        OBJECTS,
        "\
- sourceValue: new
  targets:
  - select: {kind: B}
- source: {name: new, fieldPath: kind}
  targets:
  - select: {name: new}
    fieldPaths: [v]
",
    )
    .unwrap();
    assert!(out.contains("name: new\nv: B\n"), "{out}");
}

#[test]
fn a_value_that_is_changed_by_its_own_replacement_is_changed_for_later_targets() {
    let out = replaced(
        "{kind: A, metadata: {name: a}, v: x}\n---\n{kind: B, metadata: {name: b}, v: ''}\n",
        "\
- source: {kind: A, fieldPath: v}
  targets:
  - {select: {kind: A}, fieldPaths: [v], options: {delimiter: '-', index: -1}}
  - {select: {kind: B}, fieldPaths: [v]}
",
    )
    .unwrap();
    assert_eq!(out.matches("v: x-x\n").count(), 2, "{out}");
}
