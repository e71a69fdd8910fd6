//! Random specs of all kinds: the pure functions end in an answer, whatever the lengths.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::fuzz::{self, Random};

use super::{Buckets, GitRepositories, HelmCharts, HelmRepositories, OciRepositories};
use crate::source_kind::{Resolve, SourceKind, SourceSecrets};

const PIECES: &[&str] = &[
    "https://",
    "http://",
    "ssh://",
    "oci://",
    "git@",
    "h",
    "h:1",
    "127.0.0.1",
    "[::1]",
    "/",
    "//",
    "..",
    ".",
    "a",
    "-",
    "+",
    "_",
    "*",
    "**",
    "?",
    "[a-",
    "]",
    "!",
    "#",
    "\\",
    "\n",
    " ",
    ">=1.0",
    "<2",
    " || ",
    ",",
    "1.2.3",
    "x",
    "^",
    "~",
    "(a+)+",
    "{900}",
    "$",
    "é",
    "%2e",
    "@",
    ":",
    "sha256:",
    "refs/heads/",
    "main",
];

/// Size that an object can have: the API server takes no larger ones.
const LARGE: usize = 100_000;

fn text(random: &mut Random) -> Value {
    let text = random.text(PIECES, 0..12);
    match random.one_in(20) && !text.is_empty() {
        true => json!(text.repeat(LARGE / text.len())),
        false => json!(text),
    }
}

fn list(random: &mut Random) -> Value {
    let length = if random.one_in(20) { 1000..1001 } else { 0..4 };
    Value::Array(random.list(length, |random| json!(random.text(PIECES, 0..5))))
}

fn includes(random: &mut Random) -> Value {
    let include = |random: &mut Random| json!({"repository": {"name": random.text(PIECES, 0..3)}, "fromPath": text(random), "toPath": text(random)});
    Value::Array(random.list(0..4, include))
}

fn spec(random: &mut Random) -> Value {
    let mut spec = json!({"interval": "1m"});
    for field in [
        "url",
        "chart",
        "version",
        "bucketName",
        "endpoint",
        "prefix",
        "ignore",
        "region",
    ] {
        spec[field] = text(random);
    }
    for field in ["valuesFiles", "sparseCheckout"] {
        if random.flag() {
            spec[field] = list(random);
        }
    }
    if random.flag() {
        spec["include"] = includes(random);
    }
    if random.flag() {
        let kinds = ["HelmRepository", "GitRepository", "Bucket", "x"];
        spec["sourceRef"] = json!({"kind": random.pick(&kinds), "name": text(random)});
    } else {
        spec["sourceRef"] = json!({"kind": "HelmRepository", "name": "r"});
    }
    if random.flag() {
        let fields = [
            "branch",
            "tag",
            "semver",
            "semverFilter",
            "name",
            "commit",
            "digest",
        ];
        spec["ref"] = json!({*random.pick(&fields): text(random)});
    }
    if random.flag() {
        spec["provider"] = json!(random.pick(&["generic", "aws", "azure", "gcp", "github", ""]));
    }
    if random.one_in(4) {
        spec["layerSelector"] =
            json!({"mediaType": text(random), "operation": random.pick(&["copy", "extract", "x"])});
    }
    spec
}

fn check<K: SourceKind>(spec: &Value) {
    let object = json!({
        "apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "namespace": "ns", "generation": 1}, "spec": spec,
    });
    let Ok(object) = serde_json::from_value::<K::Object>(object) else {
        return;
    };
    let valid = K::validate(&object).is_ok();
    let _ = (
        K::spec(&object),
        K::secrets(&object),
        K::past(&object),
        K::verifies(&object),
    );
    if let Ok(request) = <K as Resolve>::request(&object, &SourceSecrets::default())
        && valid
    {
        // A HelmChart's server is the kind, the namespace and the name of its source.
        assert!(K::server(&request).len() <= LARGE + 32);
    }
}

#[test]
fn fuzz_specs_end_in_an_answer() {
    fuzz::run("specs of sources", |random| {
        let spec = spec(random);
        random.note("spec", &spec);
        let started = Instant::now();
        check::<GitRepositories>(&spec);
        check::<OciRepositories>(&spec);
        check::<Buckets>(&spec);
        check::<HelmRepositories>(&spec);
        check::<HelmCharts>(&spec);
        // Generous: a slow machine, unoptimized.
        assert!(started.elapsed() < Duration::from_secs(5));
    });
}
