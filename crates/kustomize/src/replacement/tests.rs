use tree::{Budget, Limits, Mem};

use super::*;
use crate::{
    loader::Loader,
    resource::Previous,
    testing::{self, objects},
};

mod conditions;
mod inside;
mod selection;

/// Replaces in objects, and prints them.
fn replaced(text: &str, replacements: &str) -> Result<String, Error> {
    let mut resources = objects(text);
    run(&mut resources, replacements, &Budget::default())?;
    Ok(testing::text(&resources))
}

fn refused(objects: &str, replacements: &str) -> String {
    replaced(objects, replacements).unwrap_err().to_string()
}

fn run(resources: &mut ResMap, replacements: &str, budget: &Budget) -> Result<(), Error> {
    let text = yaml::read::goyaml(replacements, &Budget::default()).unwrap();
    let config = [("replacements".to_owned(), text.value)];
    with_scene(budget, |ctx| {
        let config = yaml::Value::Map(config.into_iter().collect());
        Replacements::from_config(&config, ctx)?.transform(resources, ctx)
    })
}

fn with_scene<T>(budget: &Budget, work: impl FnOnce(&PluginContext<'_>) -> T) -> T {
    let tree = Mem::default();
    let run = testing::run(budget);
    let loader = Loader::new(&tree, &TreePath::default(), &run).unwrap();
    work(&PluginContext {
        loader: &loader,
        run: &run,
    })
}

const APP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: source
data:
  port: '8080'
  image: registry/app:1.2
  map: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
spec:
  replicas: 1
  containers:
  - name: web
    image: old:1
    args: [one, two]
  - name: web2
    image: old:2
";

#[test]
fn a_value_is_copied_with_its_text_and_takes_the_targets_type() {
    let out = replaced(
        APP,
        "\
- source: {kind: ConfigMap, fieldPath: data.port}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [spec.replicas, spec.containers.1.image]
- source: {kind: ConfigMap}
  targets:
  - select: {kind: Deployment}
",
    )
    .unwrap();
    assert!(out.contains("replicas: 8080\n"), "{out}");
    assert!(out.contains("image: \"8080\"\n"), "{out}");
    assert_eq!(out.matches("name: source").count(), 2, "{out}");
}

#[test]
fn replacement_with_a_map_or_list_replaces_the_field() {
    let out = replaced(
        APP,
        "\
- source: {kind: ConfigMap, fieldPath: data.map}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [spec.containers.0.args, 'spec.containers.0.image']
- sourceValue: '7'
  targets:
  - select: {kind: ConfigMap}
    fieldPaths: [data.map]
",
    )
    .unwrap();
    assert!(out.contains("args:\n      a: b\n"), "{out}");
    assert!(out.contains("image: \"\"\n"), "{out}");
    assert!(out.contains("map: 7\n"), "{out}");
}

#[test]
fn replacement_creates_missing_fields_on_demand() {
    let target = "\
- sourceValue: 'true'
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.labels.new, 'spec.containers.[name=side].env.0.value', 'spec.list.[=x].gone']
";
    let out = replaced(APP, &format!("{target}    options: {{create: true}}\n")).unwrap();
    assert!(out.contains("labels:\n    new: true\n"), "{out}");
    assert!(
        out.contains("- env:\n    - value: true\n    name: side\n"),
        "{out}"
    );
    assert!(out.contains("list:\n  - true\n"), "{out}");
    assert_eq!(
        refused(APP, target),
        "unable to find field \"metadata.labels.new\" in replacement target"
    );
}

#[test]
fn a_created_item_must_fit_its_own_condition() {
    let error = refused(
        APP,
        "[{sourceValue: x, targets: [{select: {kind: Deployment}, \
         fieldPaths: ['spec.containers.[name=a+b].image'], options: {create: true}}]}]",
    );
    assert!(error.contains("failed to create element"), "{error}");
}

#[test]
fn delimiters_select_parts_of_values() {
    let with = |source: &str, target: &str| {
        let text = format!(
            "[{{source: {{kind: ConfigMap, fieldPath: data.image, options: {source}}}, \
             targets: [{{select: {{kind: Deployment}}, fieldPaths: [spec.containers.0.image], options: {target}}}]}}]"
        );
        replaced(APP, &text).map(|out| {
            let line = out
                .lines()
                .find(|line| line.contains("image:") && !line.contains("data"));
            let line = out
                .lines()
                .filter(|line| line.contains(" image:"))
                .nth(1)
                .or(line);
            line.unwrap().trim().to_owned()
        })
    };
    let piece = "{delimiter: ':', index: 1}";
    for (target, expected) in [
        ("{}", "image: \"1.2\""),
        ("{delimiter: ':', index: 1}", "image: old:1.2"),
        ("{delimiter: ':', index: 0}", "image: 1.2:1"),
        ("{delimiter: ':', index: -1}", "image: 1.2:old:1"),
        ("{delimiter: ':', index: 9}", "image: old:1:1.2"),
    ] {
        assert_eq!(with(piece, target).unwrap(), expected, "{target}");
    }
    assert_eq!(with("{index: 4}", "{}").unwrap(), "image: registry/app:1.2");
    for index in [2, -1] {
        let error = with(&format!("{{delimiter: ':', index: {index}}}"), "{}").unwrap_err();
        let expected = format!("options.index {index} is out of bounds for value registry/app:1.2");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn replacement_errors_hide_secret_values() {
    let error = refused(
        "kind: Secret\nmetadata: {name: s}\ndata: {k: hidden}\n",
        "[{source: {kind: Secret, fieldPath: data.k, options: {delimiter: ':', index: 1}}, targets: [{select: {}}]}]",
    );
    assert_eq!(error, "options.index 1 is out of bounds for value of a secret");
}

#[test]
fn delimiters_are_refused_for_maps_and_lists() {
    let expected = "delimiter option can only be used with scalar nodes";
    let source =
        "[{source: {kind: ConfigMap, fieldPath: data, options: {delimiter: ':'}}, targets: [{select: {}}]}]";
    assert_eq!(refused(APP, source), expected);
    let target = "[{sourceValue: x, targets: [{select: {kind: Deployment}, fieldPaths: [spec], options: {delimiter: ':'}}]}]";
    assert_eq!(refused(APP, target), expected);
}

#[test]
fn replacement_requires_source_and_targets() {
    let targets = "targets: [{select: {kind: Deployment}}]";
    for (replacement, expected) in [
        (
            "{sourceValue: x}",
            "replacements must specify a source and at least one target",
        ),
        (
            &*format!("{{{targets}}}"),
            "replacements must specify a source and at least one target",
        ),
        (
            &*format!("{{sourceValue: x, source: {{kind: ConfigMap}}, {targets}}}"),
            "value and resource selectors are mutually exclusive",
        ),
        (
            "{sourceValue: x, targets: [{fieldPaths: [a]}]}",
            "target must specify resources to select",
        ),
        (
            &*format!("{{path: r.yaml, {targets}}}"),
            "cannot specify both path and inline replacement",
        ),
    ] {
        assert_eq!(
            refused(APP, &format!("[{replacement}]")),
            expected,
            "{replacement}"
        );
    }
}

#[test]
fn entries_may_name_files() {
    let tree = Mem::from_files([
        (
            "k/one.yaml",
            "{sourceValue: 5, targets: [{select: {kind: Deployment}, fieldPaths: [spec.replicas]}]}",
        ),
        (
            "k/list.yaml",
            "[{sourceValue: x, targets: [{select: {kind: Deployment}}]}, {sourceValue: y}]",
        ),
        ("k/text.yaml", "text"),
    ])
    .unwrap();
    let budget = Budget::default();
    let run = testing::run(&budget);
    let loader = Loader::new(&tree, &TreePath::parse("k").unwrap(), &run).unwrap();
    let ctx = PluginContext {
        loader: &loader,
        run: &run,
    };
    let entry = |path: &str| ReplacementEntry {
        path: path.to_owned(),
        ..ReplacementEntry::default()
    };
    let made = Replacements::new(&[entry("one.yaml"), entry("list.yaml")], &ctx).unwrap();
    assert_eq!(made.replacements.len(), 3);
    let mut resources = objects(APP);
    let one = Replacements::new(&[entry("one.yaml")], &ctx).unwrap();
    one.transform(&mut resources, &ctx).unwrap();
    assert!(testing::text(&resources).contains("replicas: 5\n"));
    for path in ["text.yaml", "missing.yaml", "../outside.yaml"] {
        assert!(Replacements::new(&[entry(path)], &ctx).is_err(), "{path}");
    }
}

#[test]
fn fields_that_lead_nowhere_are_named() {
    let at = |path: &str, options: &str| {
        refused(
            APP,
            &format!(
                "[{{sourceValue: x, targets: [{{select: {{kind: Deployment}}, fieldPaths: ['{path}'], options: {options}}}]}}]"
            ),
        )
    };
    for (path, options, expected) in [
        (
            "spec.nope.x",
            "{}",
            "unable to find field \"spec.nope.x\" in replacement target",
        ),
        (
            "spec.containers.9.image",
            "{}",
            "unable to find field \"spec.containers.9.image\" in replacement target: \
             index 9 specified but only 2 elements found",
        ),
        (
            "spec.containers.3.image",
            "{create: true}",
            "unable to find or create field \"spec.containers.3.image\" in replacement target: \
             index 3 specified but only 2 elements found",
        ),
        (
            "spec.containers.[nope].image",
            "{}",
            "unable to find field \"spec.containers.[nope].image\" in replacement target: \
             list path element must contain fieldName=fieldValue for element to match",
        ),
        (
            "spec.*.x",
            "{}",
            "unable to find field \"spec.*.x\" in replacement target: \
             wrong node kind: expected SequenceNode but got MappingNode",
        ),
        (
            "spec..x",
            "{}",
            "unable to find field \"spec..x\" in replacement target: \
             wrong node kind: expected ScalarNode but got MappingNode",
        ),
    ] {
        assert_eq!(at(path, options), expected);
    }
    let error = at("spec.containers.[name=(].image", "{}");
    assert!(
        error.contains("error parsing regexp: missing closing )"),
        "{error}"
    );
}

#[test]
fn growth_ends_with_the_budget() {
    let limits = Limits {
        bytes: 1 << 20,
        ..Limits::default()
    };
    let doubled = "- source: {kind: ConfigMap, fieldPath: data.port}\n  targets:\n  - select: {kind: ConfigMap}\n    \
                   fieldPaths: [data.port]\n    options: {delimiter: ',', index: 999999}\n";
    let nested = "- source: {kind: ConfigMap, fieldPath: data}\n  targets:\n  - select: {kind: ConfigMap}\n    \
                  fieldPaths: [data.x]\n    options: {create: true}\n";
    let deep = format!(
        "- sourceValue: x\n  targets:\n  - select: {{kind: ConfigMap}}\n    fieldPaths: [data{}]\n    \
         options: {{create: true}}\n",
        ".a".repeat(100_000)
    );
    for replacements in [doubled.repeat(64), nested.repeat(120), deep] {
        let budget = Budget::new(limits.clone());
        let error = run(&mut objects(APP), &replacements, &budget).unwrap_err();
        assert!(error.exceeded().is_some(), "{error}");
    }
    let every = "- sourceValue: x\n  targets:\n  - select: {}\n    fieldPaths: [l.*.*]\n";
    let items = format!("kind: A\nl: [{}]\n", "[1,2,3,4,5,6,7,8],".repeat(100));
    let budget = Budget::new(Limits {
        steps: 5_000,
        ..limits
    });
    let error = run(&mut objects(&items), &every.repeat(100), &budget).unwrap_err();
    assert!(error.exceeded().is_some(), "{error}");
}

#[test]
fn replaced_source_keeps_its_new_value() {
    let object = "{kind: A, metadata: {name: a}, data: {k: x-y, l: p-q}, m: {n: 1}}";
    let out = replaced(
        object,
        "\
- source: {kind: A, fieldPath: data.k}
  targets: [{select: {kind: A}, fieldPaths: [data.k, data.l], options: {delimiter: '-'}}]
- source: {kind: A, fieldPath: m.n}
  targets: [{select: {kind: A}, fieldPaths: [m, data.new], options: {create: true}}]
",
    )
    .unwrap();
    assert_eq!(
        out,
        "data:\n  k: x-y-y\n  l: x-y-y-q\n  new: 1\nkind: A\nm: 1\nmetadata:\n  name: a\n"
    );
}
