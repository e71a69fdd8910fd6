//! Random objects and annotations as inputs of all decisions.

use jiff::Timestamp;
use testkit::fuzz::{self, Random};
use yaml::Value;

use crate::{
    Ignore, ObjectRef,
    conflict::{self, Cause},
    diff,
    fixup::{self, RepairedKinds},
    inventory::Entry,
    jsonpath::JsonPath,
    kstatus, managed, normalize,
    path::{self, canonical},
    readiness::{self, Policy, StatusNeed},
    secrets,
    takeover::{self, Takeover},
    vocabulary::{Managers, tests::EXAMPLE},
};

/// Words with a meaning in objects, so that random ones get past the first check.
const WORDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "managedFields",
    "manager",
    "operation",
    "fieldsV1",
    "f:data",
    "f:a",
    ".",
    "k:{\"a\":1}",
    "v:\"x\"",
    "i:0",
    "spec",
    "data",
    "stringData",
    "status",
    "conditions",
    "type",
    "reason",
    "message",
    "ports",
    "containers",
    "template",
    "env",
    "envFrom",
    "resources",
    "limits",
    "cpu",
    "replicas",
    "readyReplicas",
    "ownerReferences",
    "uid",
    "resourceVersion",
    "Deployment",
    "Secret",
    "v1",
    "apps/v1",
    "deployer",
    "kubectl-edit",
    "hpa",
    "a",
    "b",
    "observedGeneration",
    "generation",
    "True",
    "Ready",
    "example.com/ignore-diff-field",
    "example.com/force-apply-field",
    "example.com/ignore-conflicts-manager",
    "data.a",
    "..",
];

const PIECES: &[&str] = &[
    "$",
    "@",
    ".",
    "..",
    "*",
    "[",
    "]",
    "[0]",
    "[-1]",
    "[*]",
    "['a']",
    "[\"b\"]",
    "[?(",
    "?",
    ")",
    "(",
    "@.a",
    "$.b",
    "==",
    "!=",
    "<=",
    "=~",
    "/a.*/",
    "/(/",
    "&&",
    "||",
    "!",
    "'x'",
    "1",
    "-5",
    "1.5",
    "true",
    "null",
    ":",
    "[0:2]",
    "[::0]",
    "[::-1]",
    "[9223372036854775807:]",
    "a",
    "b",
    "metadata",
    "name",
    " ",
    ",",
    "\\",
    "`",
    "é",
];

/// Returns a random object with at least an outline.
fn object(random: &mut Random) -> Value {
    let mut json = serde_json::json!({
        "apiVersion": random.pick(&["v1", "apps/v1", "x.io/v1"]),
        "kind": random.pick(&["ConfigMap", "Secret", "Deployment", "Service", "Pod", "Thing"]),
        "metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "1",
            "annotations": {}, "managedFields": [{"manager": random.pick(&["deployer", "hpa"]), "operation": "Apply",
                "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:spec": {"f:ports": {"k:{\"port\":80}": {"f:x": {}}}}}}]},
        "spec": {"ports": [{"port": 80, "x": 1}], "replicas": 2},
        "data": {"a": "1", "b": "2"},
        "status": {},
    });
    let more = random.json(WORDS);
    if let Some(part) = json.get_mut(*random.pick(&["spec", "data", "status", "metadata"])) {
        *part = more;
    }
    let times = random.below(6);
    random.damage_json(&mut json, WORDS, times);
    Value::from_json(json)
}

#[test]
fn fuzz_json_paths() {
    fuzz::run("json paths", |random| {
        let text = random.text(PIECES, 0..12);
        random.note("path", &text);
        let value = object(random);
        let Ok(parsed) = JsonPath::parse(&text) else {
            return;
        };
        for found in parsed.find(&value).unwrap_or_default() {
            assert!(path::get(&value, &found).is_some(), "{}", canonical(&found));
        }
    });
}

#[test]
fn fuzz_changes() {
    fuzz::run("changes", |random| {
        let (old, new) = (object(random), object(random));
        random.note("old", &old);
        random.note("new", &new);
        let normalized = |value: &Value| normalize(value, &mut Ignore::default()).unwrap();
        let (old, new) = (normalized(&old), normalized(&new));
        assert_eq!(normalized(&old), old, "normal is normal");
        assert!(diff::changes(&old, &old).is_empty());
        let mut changes = diff::changes(&old, &new);
        if old == new {
            assert!(changes.is_empty());
        }
        for change in &changes {
            assert_eq!(
                change.old.as_ref(),
                path::get(&old, &change.path).filter(|_| change.old.is_some())
            );
            assert_eq!(
                change.new.as_ref(),
                path::get(&new, &change.path).filter(|_| change.new.is_some())
            );
        }
        secrets::mask(&mut changes);
    });
}

#[test]
fn fuzz_inventory() {
    fuzz::run("inventory", |random| {
        let parts = ["_", "__", "n", "a", ":", "Kind", "x.io", ""];
        let length = random.below(8);
        let id: String = (0..length).map(|_| *random.pick(&parts)).collect();
        random.note("id", &id);
        let entry = Entry {
            id,
            version: "v1".to_owned(),
        };
        if let Some(reference) = entry.reference() {
            assert!(!reference.name.is_empty() && !reference.kind.is_empty());
            let _ = Entry::of(&reference).reference();
        }
    });
}

#[test]
fn fuzz_decisions() {
    fuzz::run("decisions", |random| {
        let (live, local) = (object(random), object(random));
        random.note("live", &live);
        random.note("local", &local);
        let _ = (
            ObjectRef::of(&live),
            Ignore::of(&local, &EXAMPLE, &[]),
            fixup::apply(&local, RepairedKinds::Any),
            fixup::apply(&local, RepairedKinds::BuiltIn),
        );
        let owners = managed::managed_fields(&live);
        let causes: Vec<Cause> = owners
            .iter()
            .flat_map(|owner| &owner.fields)
            .take(5)
            .map(|field| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: "conflict".to_owned(),
                field: managed::display(field),
            })
            .collect();
        let policy = conflict::Policy {
            vocabulary: &EXAMPLE,
            overridden: Managers::default(),
            rules: &[],
        };
        let resolver = conflict::ConflictTexts::of(&local, policy).compile();
        if let Ok(resolution) = resolver.and_then(|mut resolver| resolver.resolve(&live, &local, &causes)) {
            assert!(resolution.left.len() <= causes.len());
        }
        for status in [StatusNeed::Required, StatusNeed::Unknown] {
            let policy = Policy {
                vocabulary: &EXAMPLE,
                status,
                now: Timestamp::UNIX_EPOCH,
                not_ready_is_error: true,
            };
            let readiness = readiness::check(&live, policy);
            assert_eq!(readiness.ready, readiness.errors.is_empty());
        }
        let health = kstatus::status(&live, Timestamp::UNIX_EPOCH);
        let _ = kstatus::pod_selector(&live, &health);
        let _ = takeover::plan(&live, "deployer", &Takeover::default());
    });
}
