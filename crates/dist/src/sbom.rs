//! Software bills of materials in the format CycloneDX. Pure.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use cargo_metadata::Package;
use serde_json::{Map, Value, json};

use crate::{
    Release,
    crates::{Part, Parts},
    image,
};

/// Returns the bill of materials of a program.
pub(crate) fn bill(program: &str, parts: &Parts<'_>, release: &Release) -> Result<Value> {
    let main = parts.all.get(parts.main).context("the program is missing")?;
    let others = parts.all.iter().filter(|part| part.package.id != main.package.id);
    let components = others.map(|part| {
        let mut fields = component(part.package, "library");
        let scope = if part.only_builds { "excluded" } else { "required" };
        fields.insert("scope".to_owned(), scope.into());
        fields
    });
    let components: Vec<Map<String, Value>> = components.collect();
    let dependencies: Vec<Value> = parts.all.iter().map(|part| dependencies(part, parts)).collect();
    let mut main = component(main.package, "application");
    main.insert("name".to_owned(), program.into());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "timestamp": image::created(release)?, "component": main },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn dependencies(part: &Part<'_>, parts: &Parts<'_>) -> Value {
    let used = part.uses.iter().filter_map(|position| parts.all.get(*position));
    let used: BTreeSet<String> = used.map(|part| reference(part.package)).collect();
    json!({ "ref": reference(part.package), "dependsOn": used })
}

/// Names a crate without the path of its source, which differs between machines.
fn reference(package: &Package) -> String {
    format!("{}@{}", package.name, package.version)
}

fn component(package: &Package, kind: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    add("type", kind.into());
    add("bom-ref", reference(package).into());
    add("name", package.name.to_string().into());
    add("version", package.version.to_string().into());
    if let Some(license) = &package.license {
        let expression = license.replace('/', " OR ");
        add("licenses", json!([{ "expression": expression }]));
    }
    if package.source.is_some() {
        add("purl", format!("pkg:cargo/{}", reference(package)).into());
    }
    fields
}
