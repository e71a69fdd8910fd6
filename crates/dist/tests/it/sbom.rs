//! Bills of materials, and the lists of crates inside programs.

use std::collections::{BTreeMap, HashSet};

use auditable_info::audit_info_from_slice;
use serde_json::Value;

use crate::support::{TestRelease, names, unpack};

/// Crates of all programs and how they take part: linked, or only while the programs are compiled. Others only test, or are for
/// another system.
const PARTS: [(&str, Option<&str>); 7] = [
    ("api", Some("required")),
    ("serde", Some("required")),
    ("tokio", Some("required")),
    ("cc", Some("excluded")),
    ("serde_derive", Some("excluded")),
    ("testkit", None),
    ("windows-sys", None),
];

#[test]
fn programs_have_a_bill_of_their_crates() {
    let files = TestRelease::new().build();
    for name in names() {
        let file = format!("{name}_{}.cdx.json", env!("CARGO_PKG_VERSION"));
        let text = std::str::from_utf8(&files[&file]).unwrap();
        assert!(!text.contains("file://"), "{name}");
        let bill: Value = serde_json::from_str(text).unwrap();
        assert_eq!(bill["bomFormat"], "CycloneDX");
        let main = &bill["metadata"]["component"];
        assert_eq!(main["name"], name);
        let components = bill["components"].as_array().unwrap();
        let found: BTreeMap<&str, &str> = components
            .iter()
            .map(|one| (one["name"].as_str().unwrap(), one["scope"].as_str().unwrap()))
            .collect();
        for (part, scope) in PARTS {
            assert_eq!(found.get(part), scope.as_ref(), "{name}: {part}");
        }
        assert_eq!(
            found.contains_key("gix"),
            name != "notification-controller",
            "{name}"
        );
        let serde = components.iter().find(|one| one["name"] == "serde").unwrap();
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(serde["purl"].as_str().unwrap().starts_with("pkg:cargo/serde@1."));
        // Each reference has a component.
        let known: HashSet<&Value> = components
            .iter()
            .chain([main])
            .map(|one| &one["bom-ref"])
            .collect();
        for dependency in bill["dependencies"].as_array().unwrap() {
            let used = dependency["dependsOn"].as_array().unwrap();
            for reference in used.iter().chain([&dependency["ref"]]) {
                assert!(known.contains(reference), "{name}: {reference}");
            }
        }
    }
}

#[test]
fn programs_have_the_list_of_the_same_crates_inside() {
    let files = TestRelease::new().build();
    let version = env!("CARGO_PKG_VERSION");
    for name in names() {
        let archive = unpack(&files[&format!("{name}_{version}_linux_arm64.tar.gz")]);
        // The parser of scanners also refuses circles and several roots.
        let list = audit_info_from_slice(archive[name].as_ref().unwrap(), 1 << 20).unwrap();
        let listed: BTreeMap<String, bool> = list
            .packages
            .iter()
            .filter(|package| !package.root)
            .map(|package| {
                let only_builds = package.kind == auditable_serde::DependencyKind::Build;
                (format!("{}@{}", package.name, package.version), only_builds)
            })
            .collect();
        let bill: Value = serde_json::from_slice(&files[&format!("{name}_{version}.cdx.json")]).unwrap();
        let components = bill["components"].as_array().unwrap().iter();
        let expected: BTreeMap<String, bool> = components
            .map(|one| {
                let reference = one["bom-ref"].as_str().unwrap().to_owned();
                (reference, one["scope"] == "excluded")
            })
            .collect();
        assert_eq!(listed, expected, "{name}");
        let serde = list
            .packages
            .iter()
            .find(|package| package.name == "serde")
            .unwrap();
        assert_eq!(serde.source, auditable_serde::Source::CratesIo);
        let mut used = serde
            .dependencies
            .iter()
            .map(|position| &list.packages[*position].name);
        assert!(used.any(|name| name == "serde_core"), "{name}");
    }
}
