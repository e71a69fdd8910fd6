//! Tests of the crate as a whole.

use std::{borrow::Cow, fs, path::Path};

use objects::{Marker, Vocabulary};
use serde_json::json;
use yaml::Value;

use crate::{Error, Labels, Membership, Owner};

/// An owner with a vocabulary in the group `example.com`.
pub(crate) fn owner() -> Owner {
    let vocabulary = Vocabulary {
        skip_delete: &[
            Marker::Flag("example.com/skip-delete"),
            Marker::Annotation("example.org/policy", "keep"),
        ],
        force_managed: &[Marker::Flag("example.com/force-managed")],
        ignore: &[Marker::Either("example.com/apply", "ignore")],
        create_only: &[Marker::Either("example.com/apply", "if-not-present")],
        diff_name: Some("example.com/diff-name"),
        ..Vocabulary::default()
    };
    Owner {
        vocabulary,
        ..Owner::labelled("deployer", "example.com/owner", "shop")
    }
}

#[test]
fn check_refuses_owners_without_manager_or_valid_label() {
    assert!(owner().check().is_ok());
    assert!(Owner::new("deployer", Membership::None).check().is_ok());
    let unnamed = Owner::new("", Membership::None);
    assert!(matches!(unnamed.check(), Err(Error::NoManager)));
    for labels in [
        &[][..],
        &[("", "shop")],
        &[("example.com/owner", "")],
        &[("example.com/owner", "a b")],
        &[("a", "1"), ("b", "")],
        &[("a", "1"), ("b", "x y")],
    ] {
        let all: Labels = labels
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let membership = Membership::Labels {
            all: all.clone(),
            without: None,
        };
        for owner in [
            Owner::new("deployer", membership),
            Owner::with_inventory("deployer", Vec::new(), all),
        ] {
            assert!(
                matches!(owner.check(), Err(Error::InvalidLabel { .. })),
                "{labels:?}"
            );
        }
    }
}

#[test]
fn a_member_carries_all_labels_and_no_mark_of_another_owner() {
    let all = Labels::from([("a", "1"), ("b", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    let labels = Membership::Labels {
        all: all.clone(),
        without: Some(Cow::Borrowed("example.com/owner")),
    };
    let inventory = Membership::Inventory {
        objects: Vec::new(),
        labels: all,
    };
    let [by_labels, by_inventory, nothing] =
        [labels, inventory, Membership::None].map(|membership| Owner::new("deployer", membership));
    for (labels, expected, listed) in [
        (json!({"a": "1", "b": "2"}), true, true),
        (json!({"a": "1", "b": "2", "c": "3"}), true, true),
        (json!({"a": "1"}), false, false),
        (json!({"a": "1", "b": "3"}), false, false),
        (json!({"a": "1", "b": "2", "example.com/owner": ""}), false, true),
        (json!(null), false, false),
    ] {
        let object = Value::from_json(json!({"metadata": {"labels": labels}}));
        assert_eq!(by_labels.has_member(&object), expected, "{labels}");
        assert_eq!(by_inventory.has_member(&object), listed, "{labels}");
        assert!(!nothing.has_member(&object), "{labels}");
    }
}

#[test]
fn mark_adds_the_labels_that_check_marked_asks_for() {
    let mut manifest = Value::from_json(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "labels": {"example.com/owner": "other"}}}),
    );
    let reference = objects::ObjectRef::of(&manifest).unwrap();
    let refused = owner()
        .check_marked(&manifest, &reference)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("ConfigMap/a") && refused.contains("example.com/owner=shop"),
        "{refused}"
    );
    owner().mark(&mut manifest);
    assert!(owner().check_marked(&manifest, &reference).is_ok());
}

#[test]
fn object_that_is_not_to_be_deleted_is_created_again_only_by_an_owner_that_may() {
    let object =
        |name: &str, value: &str| Value::from_json(json!({ "metadata": { "annotations": { name: value } } }));
    let (plain, undeleted) = (object("a", "b"), object("example.com/skip-delete", "true"));
    let ignored = object("example.com/apply", "ignore");
    let pruning_only = Owner {
        recreates_undeleted: true,
        ..owner()
    };
    for (manifest, live, forbidden, forbidden_if_pruning_only) in [
        (&plain, &plain, false, false),
        (&undeleted, &plain, true, false),
        (&plain, &undeleted, true, false),
        (&plain, &ignored, true, true),
    ] {
        assert_eq!(owner().forbids_recreation(manifest, live), forbidden);
        assert_eq!(
            pruning_only.forbids_recreation(manifest, live),
            forbidden_if_pruning_only
        );
    }
}

/// The crates that every owner uses name none of the tools that are built on them.
#[test]
fn sources_name_no_tool() {
    // Split, so that this file doesn't name them either.
    let tools = [["klu", "ctl"], ["fl", "ux"], ["he", "lm"], ["kustom", "ize"]].map(|parts| parts.concat());
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for name in ["apply", "cluster", "objects"] {
        search(&crates.join(name), &tools, &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn search(dir: &Path, tools: &[String], found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, tools, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "toml")
        {
            let text = fs::read_to_string(&path).unwrap().to_lowercase();
            let lines = text.lines().enumerate();
            let named = lines.filter(|(_, line)| tools.iter().any(|tool| line.contains(tool.as_str())));
            found.extend(named.map(|(line, text)| format!("{}:{}: {text}", path.display(), line + 1)));
        }
    }
}
