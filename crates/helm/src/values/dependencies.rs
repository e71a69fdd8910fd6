//! Dependencies of a chart: which ones are enabled, their aliases, and the values imported from them.

use std::rc::Rc;

use tree::Budget;

use super::{
    coalesce::{Coalesce, coalesce_own, coalesce_values},
    deep_copy_map, lookup_table, lookup_value, table,
};
use crate::{
    Chart, Dict, Error, HelmVersion, Value,
    chart::{ChartPath, Dependency, ImportValues, SharedDependency},
    version,
};

/// Removes charts that conditions and tags disable, applies aliases, and imports values. Fails if a value should be a map.
pub(crate) fn process_dependencies(
    chart: &mut Chart,
    values: &Dict,
    helm: HelmVersion,
    warnings: &mut Vec<String>,
    budget: &Budget,
) -> Result<(), Error> {
    let mut copies = Copies {
        budget,
        helm,
        parts: 0,
    };
    enable(chart, values, "", warnings, &mut copies)?;
    import_all(chart, helm, warnings)
}

/// Maximum number of charts, files, templates and values in the copies that aliases make.
const MAX_PARTS: usize = 2_000_000;

/// The parts that a chart without files and values is counted as: its metadata is read and its values are merged.
const CHART_PARTS: usize = 16;

/// Returns the number of values in a value, with itself: each copy of a chart gets its own.
fn count(value: &Value) -> usize {
    match value {
        Value::Dict(map) => map.borrow().values().map(count).fold(1, usize::saturating_add),
        Value::List(items) => items.iter().map(count).fold(1, usize::saturating_add),
        _ => 1,
    }
}

/// The copies of charts under their aliases: charts with two aliases each at every level double at every level.
struct Copies<'a> {
    budget: &'a Budget,
    helm: HelmVersion,
    parts: usize,
}

impl Copies<'_> {
    /// Counts a copy before it is made.
    fn add(&mut self, chart: &Chart) -> Result<(), Error> {
        let own = CHART_PARTS + chart.templates.len() + chart.files.len() + count(&chart.values);
        self.parts = self.parts.saturating_add(own);
        self.budget.step(own as u64)?;
        if self.parts > MAX_PARTS {
            return Err(Error::Chart(format!(
                "the aliases of the dependencies of chart {} make more than {MAX_PARTS} copies of files and values",
                chart.name()
            )));
        }
        chart.dependencies.iter().try_for_each(|inner| self.add(inner))
    }
}

fn enable(
    chart: &mut Chart,
    values: &Dict,
    path: &str,
    warnings: &mut Vec<String>,
    copies: &mut Copies<'_>,
) -> Result<(), Error> {
    let Some(wanted) = chart.metadata.dependencies.clone() else {
        return Ok(());
    };
    chart.dependencies = named(&chart.dependencies, &wanted, copies)?;
    chart.house();
    for one in &wanted {
        one.borrow_mut().enabled = true;
    }
    let values = coalesce_values(chart, values, copies.helm, warnings)?;
    by_tags(&wanted, &values, warnings);
    by_conditions(&wanted, &values, path, warnings);
    let off: Vec<String> = wanted
        .iter()
        .filter(|one| !one.borrow().enabled)
        .map(|one| one.borrow().name.clone())
        .collect();
    let is_off: std::collections::HashSet<&str> = off.iter().map(String::as_str).collect();
    chart.dependencies.retain(|inner| !is_off.contains(inner.name()));
    for inner in &mut chart.dependencies {
        let path = format!("{path}{}.", inner.name());
        enable(inner, &values, &path, warnings, copies)?;
    }
    chart.house();
    let left = wanted
        .into_iter()
        .filter(|one| !off.contains(&one.borrow().name))
        .collect();
    chart.metadata.dependencies = Some(left).filter(|left: &Vec<_>| !left.is_empty());
    Ok(())
}

/// Returns the charts that are not dependencies, then the dependencies under their aliases.
fn named(
    charts: &[Chart],
    wanted: &[SharedDependency],
    copies: &mut Copies<'_>,
) -> Result<Vec<Chart>, Error> {
    for one in wanted {
        // A range of versions is parsed for each chart of that name, twice.
        let range = 1 + one.borrow().version.len() as u64 / 4;
        copies.budget.step((charts.len() as u64).saturating_mul(range))?;
    }
    let fits = |chart: &Chart, one: &Dependency| {
        chart.name() == one.name && version::is_compatible(&one.version, &chart.metadata.version)
    };
    let is_wanted = |chart: &&Chart| wanted.iter().any(|one| fits(chart, &one.borrow()));
    let mut taken: Vec<Chart> = charts.iter().filter(|chart| !is_wanted(chart)).cloned().collect();
    for one in wanted {
        let mut one = one.borrow_mut();
        if let Some(found) = charts.iter().find(|chart| fits(chart, &one)) {
            copies.add(found)?;
            let mut found = found.clone();
            if !one.alias.is_empty() {
                found.metadata.name.clone_from(&one.alias);
            }
            found.home = ChartPath::new(found.name());
            if copies.helm.is_four() {
                own_parts(&mut found);
            }
            taken.push(found);
        }
        if !one.alias.is_empty() {
            one.name = one.alias.clone();
        }
    }
    Ok(taken)
}

/// Stops sharing the dependencies of a copy, and its direct subcharts, with other copies of the chart, as Helm 4 does.
fn own_parts(copy: &mut Chart) {
    copy.metadata.own_dependencies();
    for inner in &mut copy.dependencies {
        inner.home = ChartPath::new(inner.name());
    }
    copy.house();
}

fn by_tags(wanted: &[SharedDependency], values: &Dict, warnings: &mut Vec<String>) {
    let Ok(tags) = lookup_table(values, "tags") else {
        return;
    };
    let tags = tags.borrow();
    for one in wanted {
        let mut one = one.borrow_mut();
        let (mut on, mut off) = (false, false);
        for tag in one.tags.iter().flatten() {
            match tags.get(tag.as_str()) {
                Some(Value::Bool(true)) => on = true,
                Some(Value::Bool(false)) => off = true,
                Some(_) => {
                    let name = &one.name;
                    warnings.push(format!(
                        "Warning: Tag '{tag}' for chart {name} returned non-bool value"
                    ));
                }
                None => {}
            }
        }
        one.enabled = on || !off;
    }
}

fn by_conditions(wanted: &[SharedDependency], values: &Dict, path: &str, warnings: &mut Vec<String>) {
    for one in wanted {
        let mut one = one.borrow_mut();
        let condition = one.condition.trim().to_owned();
        for condition in condition.split(',').filter(|condition| !condition.is_empty()) {
            match lookup_value(values, &format!("{path}{condition}")) {
                Some(Value::Bool(value)) => {
                    one.enabled = value;
                    break;
                }
                Some(_) => warnings.push(format!(
                    "Warning: Condition path '{condition}' for chart {} returned non-bool value",
                    one.name
                )),
                None => {}
            }
        }
    }
}

fn import_all(chart: &mut Chart, helm: HelmVersion, warnings: &mut Vec<String>) -> Result<(), Error> {
    for inner in &mut chart.dependencies {
        import_all(inner, helm, warnings)?;
    }
    import(chart, helm, warnings)
}

/// Returns the paths of an `import-values` entry: the map below the dependency, and its destination.
fn import_paths(import: &yaml::Value) -> Option<(String, String)> {
    let text = |key: &str| {
        let value = import.get(key).map(Value::from_yaml).unwrap_or_default();
        crate::template::print(&[value], &tree::Budget::default()).unwrap_or_default()
    };
    match import {
        yaml::Value::Map(_) => Some((text("child"), text("parent"))),
        yaml::Value::String(name) => Some((format!("exports.{name}"), ".".to_owned())),
        _ => None,
    }
}

fn import(chart: &mut Chart, helm: HelmVersion, warnings: &mut Vec<String>) -> Result<(), Error> {
    let Some(wanted) = chart.metadata.dependencies.clone() else {
        return Ok(());
    };
    let values = coalesce_own(chart, helm, warnings)?;
    let imported = table();
    for one in &wanted {
        let mut one = one.borrow_mut();
        let ImportValues::Asked(imports) = std::mem::take(&mut one.import_values) else {
            // quirk: the shared parts of copies of a chart are processed once.
            one.import_values = ImportValues::Done(Vec::new());
            continue;
        };
        let mut done = Vec::new();
        for import in &imports {
            let Some((child, parent)) = import_paths(import) else {
                continue;
            };
            done.push((child.clone(), parent.clone()));
            match lookup_table(&values, &format!("{}.{child}", one.name)) {
                // Copied, so that no map contains itself.
                Ok(found) => {
                    let found = at_path(&parent, deep_copy_map(&found));
                    let mut coalesce = Coalesce::new(true, helm, warnings);
                    coalesce.tables(&imported, &found, "", true);
                }
                Err(words) if matches!(import, yaml::Value::Map(_)) => warnings.push(format!(
                    "Warning: ImportValues missing table from chart {}: {words}",
                    one.name
                )),
                Err(words) => warnings.push(format!("Warning: ImportValues missing table: {words}")),
            }
        }
        one.import_values = ImportValues::Done(done);
    }
    if imported.borrow().is_empty() {
        chart.values = Value::Dict(values);
        return Ok(());
    }
    // Copied, so that the import changes no other map.
    let values = deep_copy_map(&values);
    Coalesce::new(true, helm, warnings).tables(&values, &imported, "", true);
    chart.values = Value::Dict(values);
    Ok(())
}

/// Nests a map in maps, at a path of keys.
fn at_path(path: &str, map: Dict) -> Dict {
    if path == "." {
        return map;
    }
    path.rsplit('.').fold(map, |inner, key| {
        let outer = table();
        outer.borrow_mut().insert(Rc::from(key), Value::Dict(inner));
        outer
    })
}
