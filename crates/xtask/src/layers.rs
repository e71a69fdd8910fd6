//! Compares the layer table of ARCHITECTURE.md with the manifests.

mod rules;
mod table;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::manifest;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Crate {
    uses: Vec<String>,
    tests_use: Vec<String>,
    /// Dependencies that do not inherit from the workspace table.
    own: Vec<String>,
}

pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).context("cannot read ARCHITECTURE.md")?;
    let (rows, mut findings) = table::parse(&page);
    findings.extend(rules::check(&rows, &crates(root)?));
    Ok(findings)
}

fn crates(root: &Path) -> Result<BTreeMap<String, Crate>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata failed: run `cargo metadata --no-deps` to see why")?;
    let mut crates = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let text =
            fs::read_to_string(&package.manifest_path).with_context(|| package.manifest_path.to_string())?;
        let mut found = Crate {
            own: manifest::own_dependencies(&text),
            ..Crate::default()
        };
        for dependency in &package.dependencies {
            let list = if dependency.kind == DependencyKind::Development {
                &mut found.tests_use
            } else {
                &mut found.uses
            };
            list.push(dependency.name.clone());
        }
        crates.insert(package.name.to_string(), found);
    }
    Ok(crates)
}
