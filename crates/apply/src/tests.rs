//! Tests of the crate as a whole.

use std::{borrow::Cow, fs, path::Path};

use objects::{Marker, Vocabulary};
use serde_json::json;
use yaml::Value;

use crate::{Error, Membership, Owner};

/// An owner with a vocabulary in the group `example.com`.
pub(crate) fn owner() -> Owner {
    let membership = Membership::Label {
        name: Cow::Borrowed("example.com/owner"),
        value: "shop".to_owned(),
    };
    let vocabulary = Vocabulary {
        skip_delete: &[
            Marker::Flag("example.com/skip-delete"),
            Marker::Annotation("example.org/policy", "keep"),
        ],
        force_managed: &[Marker::Flag("example.com/force-managed")],
        diff_name: Some("example.com/diff-name"),
        ..Vocabulary::default()
    };
    Owner {
        vocabulary,
        ..Owner::new("deployer", membership)
    }
}

#[test]
fn check_refuses_owners_without_manager_or_valid_label() {
    assert!(owner().check().is_ok());
    assert!(
        Owner::new("deployer", Membership::Inventory(Vec::new()))
            .check()
            .is_ok()
    );
    let unnamed = Owner::new("", Membership::Inventory(Vec::new()));
    assert!(matches!(unnamed.check(), Err(Error::NoManager)));
    for (name, value) in [
        ("", "shop"),
        ("example.com/owner", ""),
        ("example.com/owner", "a b"),
    ] {
        let membership = Membership::Label {
            name: Cow::Borrowed(name),
            value: value.to_owned(),
        };
        let error = Owner::new("deployer", membership).check();
        assert!(matches!(error, Err(Error::InvalidLabel { .. })), "{name}={value}");
    }
}

#[test]
fn owner_by_several_labels_has_objects_with_all_of_them_that_no_other_owner_marked() {
    let owner = |labels: &[(&str, &str)]| {
        let all = labels
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        let membership = Membership::Labels {
            all: all.collect(),
            without: Cow::Borrowed("example.com/owner"),
        };
        Owner::new("deployer", membership)
    };
    for labels in [
        &[][..],
        &[("a", "1"), ("b", "")],
        &[("", "1")],
        &[("a", "1"), ("b", "x y")],
    ] {
        let checked = owner(labels).check();
        assert!(matches!(checked, Err(Error::InvalidLabel { .. })), "{labels:?}");
    }
    let owner = owner(&[("a", "1"), ("b", "2")]);
    assert!(owner.check().is_ok());
    for (labels, expected) in [
        (json!({"a": "1", "b": "2"}), true),
        (json!({"a": "1", "b": "2", "c": "3"}), true),
        (json!({"a": "1"}), false),
        (json!({"a": "1", "b": "3"}), false),
        (json!({"a": "1", "b": "2", "example.com/owner": ""}), false),
        (json!(null), false),
    ] {
        let object = Value::from_json(json!({"metadata": {"labels": labels}}));
        assert_eq!(owner.has_member(&object), expected, "{labels}");
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
