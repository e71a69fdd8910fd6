use tree::{Budget, Mem, TreePath};

use super::*;
use crate::{loader::Loader, model::shapes::PATCH, testing, transform};

const OBJECTS: &str = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: a}}, spec: {template: {spec: {containers: [{name: c}]}}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: '1'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: far}, data: {a: '1'}}
";

const FILES: &[(&str, &str)] = &[
    ("kustomization.yaml", ""),
    (
        "merge.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {b: x}}",
    ),
    ("ops.json", r#"[{"op": "add", "path": "/data/b", "value": "x"}]"#),
    (
        "two.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}",
    ),
    ("empty.yaml", "# nothing"),
    ("bad.yaml", "a: [b"),
];

type Make = fn(&model::Patch, &PluginContext<'_>) -> Result<Patches, Error>;

/// Prints [`OBJECTS`] after a transformer, on a line each as JSON.
fn run(make: impl Fn(&PluginContext<'_>) -> Result<Patches, Error>) -> Result<Vec<String>, String> {
    run_on(&mut testing::objects(OBJECTS), make)
}

fn run_on(
    objects: &mut ResMap,
    make: impl Fn(&PluginContext<'_>) -> Result<Patches, Error>,
) -> Result<Vec<String>, String> {
    let tree = Mem::from_files(FILES.iter().copied()).unwrap();
    let budget = Budget::default();
    let run = testing::run(&budget);
    let loader = Loader::new(&tree, &TreePath::root(), &run).unwrap();
    let ctx = PluginContext {
        loader: &loader,
        run: &run,
    };
    let done = make(&ctx).and_then(|transformer| transformer.transform(objects, &ctx));
    done.map_err(|error| error.to_string())?;
    objects.drop_empties();
    Ok(objects
        .iter()
        .map(|object| yaml::print::json_sorted(&testing::finished(object).unwrap()).replace('"', ""))
        .collect())
}

fn patched(make: Make, entry: &str) -> Result<Vec<String>, String> {
    let entry = yaml::read::goyaml(entry, &Budget::default()).unwrap().value;
    let entry: model::Patch = transform::decode::config(&entry, &PATCH).unwrap();
    run(|ctx| make(&entry, ctx))
}

fn unchanged(at: usize) -> String {
    patched(Patches::from_entry, "{path: empty.yaml}")
        .unwrap()
        .swap_remove(at)
}

const SETTINGS: &str = "{apiVersion:v1,data:{a:1,b:x},kind:ConfigMap,metadata:{name:settings}}";
const OTHER: &str = "{apiVersion:v1,data:{a:1,b:x},kind:ConfigMap,metadata:{name:other,namespace:far}}";

#[test]
fn a_patch_finds_the_object_that_it_names() {
    let done = patched(Patches::from_entry, "{path: merge.yaml}").unwrap();
    assert_eq!(done, [unchanged(0), SETTINGS.to_owned(), unchanged(2)]);
    let inline = "{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, $patch: delete}'}";
    assert_eq!(
        patched(Patches::from_entry, inline).unwrap(),
        [unchanged(0), unchanged(2)]
    );
}

#[test]
fn a_target_selects_objects_for_either_kind_of_patch() {
    let merge = "{target: {kind: ConfigMap}, path: merge.yaml}";
    let json = "{target: {kind: ConfigMap}, path: ops.json}";
    for entry in [merge, json] {
        let done = patched(Patches::from_entry, entry).unwrap();
        assert_eq!(
            done,
            [unchanged(0), SETTINGS.to_owned(), OTHER.to_owned()],
            "{entry}"
        );
    }
    let nobody = "{target: {name: nobody}, path: ops.json}";
    assert_eq!(
        patched(Patches::from_entry, nobody).unwrap(),
        [unchanged(0), unchanged(1), unchanged(2)]
    );
    assert_eq!(
        patched(Patches::from_entry, "{path: empty.yaml}").unwrap().len(),
        3
    );
}

#[test]
fn patch_changes_identity_only_if_allowed() {
    let entry = |options: &str| {
        format!(
            "{{target: {{name: settings}}, {options}
             patch: '{{apiVersion: v2, kind: Secret, metadata: {{name: new, namespace: n}}, data: null}}'}}"
        )
    };
    let second = |options: &str| {
        patched(Patches::from_entry, &entry(options))
            .unwrap()
            .swap_remove(1)
    };
    assert_eq!(
        second(""),
        "{apiVersion:v1,kind:ConfigMap,metadata:{name:settings}}"
    );
    assert_eq!(
        second("options: {allowNameChange: true},"),
        "{apiVersion:v1,kind:ConfigMap,metadata:{name:new}}"
    );
    let both = "options: {allowNameChange: true, allowKindChange: true},";
    assert_eq!(second(both), "{apiVersion:v1,kind:Secret,metadata:{name:new}}");
}

#[test]
fn objects_that_a_patch_makes_equal_are_refused() {
    let entry = "{target: {kind: ConfigMap}, options: {allowNameChange: true}, path: merge.yaml}";
    assert_eq!(patched(Patches::from_entry, entry).unwrap().len(), 3);
    let mut objects = testing::objects(
        "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\n{apiVersion: v1, kind: A, metadata: {name: a}}",
    );
    let problem = objects.refuse_equal().unwrap_err().to_string();
    assert_eq!(
        problem,
        "may not add resource with an already registered id: A.v1.[noGrp]/a.[noNs]"
    );
}

#[test]
fn labels_of_a_patch_with_target_are_texts() {
    let label = |target: &str| {
        let patch =
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {tier: null, n: 5}}}";
        let entry = format!("{{{target} patch: '{patch}'}}");
        patched(Patches::from_entry, &entry).unwrap().swap_remove(0)
    };
    assert!(label("").contains("metadata:{labels:{n:5},name:web}"));
    assert!(label("target: {kind: Deployment},").contains("metadata:{labels:{n:5,tier:null},name:web}"));
}

#[test]
fn patch_with_target_sets_an_unknown_kind() {
    let entry = |kind: &str| {
        let containers = "spec: {template: {spec: {containers: [{name: new}]}}}";
        let patch = format!("{{apiVersion: x/v1, kind: {kind}, metadata: {{name: x}}, {containers}}}");
        format!("{{target: {{group: apps}}, patch: '{patch}'}}")
    };
    let first = |kind: &str| {
        let mut objects = testing::objects(&OBJECTS.replacen("Deployment", "Unknown", 1));
        let done = run_on(&mut objects, |ctx| {
            let entry = yaml::read::goyaml(entry(kind), &Budget::default()).unwrap().value;
            Patches::from_entry(&transform::decode::config(&entry, &PATCH).unwrap(), ctx)
        });
        done.unwrap().swap_remove(0)
    };
    assert!(first("Deployment").contains("containers:[{name:new},{name:c}]"));
    assert!(first("Other").contains("containers:[{name:new}]"));
}

#[test]
fn unusable_patch_entries_are_refused() {
    for (entry, words) in [
        (
            "{}",
            "trouble configuring builtin PatchTransformer with config: `\n{}\n`: must specify one of patch and path in\n{}\n",
        ),
        (
            "{path: a, patch: b}",
            "patch and path can't be set at the same time\npatch: (inline)\npath: a\n",
        ),
        (
            "{path: none.yaml, target: {kind: X}}",
            "path: none.yaml\ntarget:\n  kind: X\n`: failed to get the patch file from path(none.yaml): ",
        ),
        (
            "{patch: 'x: y'}",
            "unable to parse SM or JSON patch from [patch: (inline)]",
        ),
        (
            "{patch: '[{op: add, path: /a, value: b}]'}",
            "unable to parse SM or JSON patch from [patch: (inline)]",
        ),
        (
            "{path: bad.yaml}",
            "unable to parse SM or JSON patch from [path: \"bad.yaml\"]",
        ),
        (
            "{path: ops.json}",
            "must specify a target for JSON patch [path: \"ops.json\"]",
        ),
        (
            "{path: two.yaml, target: {kind: ConfigMap}}",
            "Multiple Strategic-Merge Patches in one `patches` entry is not allowed",
        ),
        (
            "{path: two.yaml}",
            "no resource matches strategic merge patch \"ConfigMap.v1.[noGrp]/b.[noNs]\": \
             no matches for Id ConfigMap.v1.[noGrp]/b.[noNs]; failed to find unique target for patch ConfigMap.v1.[noGrp]/b.[noNs]",
        ),
        (
            "{path: merge.yaml, target: {name: 'a['}}",
            "unable to find patch target \"[noKind].[noVer].[noGrp]/a[.[noNs]:a=:l=\" in `resources`: error parsing regexp",
        ),
        (
            "{patch: '[{\"op\": \"remove\", \"path\": \"/x\"}]', target: {name: settings}}",
            "error in remove for path: '/x'",
        ),
    ] {
        let problem = patched(Patches::from_entry, entry).unwrap_err();
        assert!(problem.contains(words), "{entry}: {problem}");
    }
}

#[test]
fn legacy_json_patches_need_a_name() {
    let done = patched(
        Patches::json6902_from_entry,
        "{path: ops.json, target: {kind: ConfigMap, name: settings}}",
    )
    .unwrap();
    assert_eq!(done, [unchanged(0), SETTINGS.to_owned(), unchanged(2)]);
    for (entry, words) in [
        ("{path: ops.json}", "must specify the target name"),
        (
            "{target: {name: a}}",
            "name: a\n`: empty file path and empty jsonOp",
        ),
        (
            "{path: a, patch: b, target: {name: a}}",
            "jsonOp: (inline)\npath: a\ntarget:\n  name: a\n`: must specify a file path or jsonOp, not both",
        ),
        (
            "{patch: '[]', target: {name: a}}",
            "patch appears to be empty; JsonOp=(inline)",
        ),
        (
            "{patch: '{}', target: {name: a}}",
            "decoding JsonOp=(inline): json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
    ] {
        let problem = patched(Patches::json6902_from_entry, entry).unwrap_err();
        assert!(problem.contains(words), "{entry}: {problem}");
    }
}

#[test]
fn legacy_merges_accept_patches_and_paths() {
    let paths = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        run(|ctx| Patches::from_paths(&paths, ctx))
    };
    let inline = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: far}, data: {b: x}}";
    assert_eq!(
        paths(&["merge.yaml", inline]).unwrap(),
        [unchanged(0), SETTINGS.to_owned(), OTHER.to_owned()]
    );
    let problem = paths(&["none.yaml"]).unwrap_err();
    let words =
        "trouble configuring builtin PatchStrategicMergeTransformer with config: `\npaths:\n- none.yaml\n`: ";
    assert!(problem.starts_with(words), "{problem}");
    let problem = paths(&["empty.yaml"]).unwrap_err();
    assert!(
        problem.ends_with("patch appears to be empty; files=[empty.yaml]"),
        "{problem}"
    );
    let problem = paths(&[&inline.replace("far", "near")]).unwrap_err();
    assert!(
        problem.starts_with("no matches for Id ConfigMap.v1.[noGrp]/other.near; failed"),
        "{problem}"
    );
}

#[test]
fn configurations_make_the_same_transformers() {
    let config = |text: &str| yaml::read::goyaml(text, &Budget::default()).unwrap().value;
    let target = "target: {kind: ConfigMap, name: settings}";
    for (make, text) in [
        (
            Patches::from_config as fn(&Value, &PluginContext<'_>) -> _,
            "{apiVersion: builtin, kind: P, Path: merge.yaml}".to_owned(),
        ),
        (
            Patches::strategic_from_config,
            "{kind: P, paths: [merge.yaml]}".to_owned(),
        ),
        (
            Patches::strategic_from_config,
            format!("{{kind: P, patches: '{}'}}", FILES[1].1),
        ),
        (
            Patches::json6902_from_config,
            format!("{{kind: P, path: ops.json, {target}}}"),
        ),
        (
            Patches::json6902_from_config,
            format!("{{kind: P, jsonOp: '{}', {target}}}", FILES[2].1),
        ),
    ] {
        let done = run(|ctx| make(&config(&text), ctx)).unwrap();
        assert_eq!(done, [unchanged(0), SETTINGS.to_owned(), unchanged(2)], "{text}");
    }
    let problem = run(|ctx| Patches::strategic_from_config(&config("{}"), ctx)).unwrap_err();
    assert_eq!(problem, "empty file path and empty patch content");
}

/// Identities and indices stay known from one patch to the next.
#[test]
fn deleted_object_is_not_found_again() {
    let delete = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, $patch: delete}".to_owned();
    let paths = vec![delete.clone(), delete];
    let problem = run(|ctx| Patches::from_paths(&paths, ctx)).unwrap_err();
    assert!(problem.starts_with("no matches for Id"), "{problem}");
}
