//! Tests of the crate as a whole.

use std::{borrow::Cow, fs, path::Path};

use objects::{Marker, Vocabulary};

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
