//! Deprecated fields of a kustomization: their warnings, and the fields that replace them.

use serde_json::{Map as Object, Value as Json};

type Fields = Object<String, Json>;

/// The deprecated fields and their replacements, in the order of the warnings.
const DEPRECATED: [(&str, &str); 6] = [
    ("bases", "resources"),
    ("commonLabels", "labels"),
    ("imageTags", "images"),
    ("patchesJson6902", "patches"),
    ("patchesStrategicMerge", "patches"),
    ("vars", "replacements"),
];

const CHARTS: &str = "helmChartInflationGenerator";

/// The fields of an old chart, and the fields of `helmCharts` that replace them.
const CHART_FIELDS: [(&str, &str); 7] = [
    ("chartName", "name"),
    ("chartVersion", "version"),
    ("chartRepoUrl", "repo"),
    ("values", "valuesFile"),
    ("valuesLocal", "valuesInline"),
    ("valuesMerge", "valuesMerge"),
    ("releaseName", "releaseName"),
];

/// The fields of an old chart, and the fields of `helmGlobals` that replace them.
const GLOBAL_FIELDS: [(&str, &str); 2] = [("helmHome", "configHome"), ("chartHome", "chartHome")];

/// Returns the replacement of a deprecated field.
pub(super) fn newer(field: &str) -> Option<&'static str> {
    match field {
        "bases" => Some("resources"),
        "imageTags" => Some("images"),
        CHARTS => Some("helmCharts"),
        _ => None,
    }
}

/// Warns of deprecated fields, and of those without effect.
pub(super) fn warn(fields: &Fields, warn: &mut dyn FnMut(String)) {
    for (old, new) in DEPRECATED {
        if fields.contains_key(old) {
            let experimental = if old == "vars" { "[EXPERIMENTAL] " } else { "" };
            warn(format!(
                "# Warning: '{old}' is deprecated. Please use '{new}' instead. {experimental}Run 'kustomize edit fix' \
                 to update your Kustomization automatically."
            ));
        }
    }
    for field in ["chartRepoName", "helmBin", "releaseNamespace", "extraArgs"] {
        let is_set = |chart: &Json| chart.get(field).is_some();
        if entries(fields, CHARTS).any(is_set) {
            warn(format!("# Warning: '{field}' in '{CHARTS}' has no effect."));
        }
    }
}

/// Moves the content of deprecated fields to their replacements.
pub(super) fn rewrite(fields: &mut Fields) {
    append(fields, "bases", "resources");
    append(fields, "imageTags", "images");
    for generator in ["configMapGenerator", "secretGenerator"] {
        let generators = fields.get_mut(generator).and_then(Json::as_array_mut);
        generators.into_iter().flatten().for_each(env_to_envs);
    }
    let globals = globals(fields);
    if !globals.is_empty() && !fields.contains_key("helmGlobals") {
        fields.insert("helmGlobals".to_owned(), Json::Object(globals));
    }
    let charts: Vec<Json> = entries(fields, CHARTS)
        .map(|chart| Json::Object(renamed(chart, &CHART_FIELDS)))
        .collect();
    if fields.contains_key(CHARTS) {
        fields.insert(CHARTS.to_owned(), Json::Array(charts));
        append(fields, CHARTS, "helmCharts");
    }
}

/// Appends a list to another, unless it is empty.
fn append(fields: &mut Fields, from: &str, to: &str) {
    let Some(Json::Array(mut items)) = fields.shift_remove(from) else {
        return;
    };
    match fields.get_mut(to) {
        Some(Json::Array(list)) => list.append(&mut items),
        _ if items.is_empty() => {}
        _ => {
            fields.insert(to.to_owned(), Json::Array(items));
        }
    }
}

fn env_to_envs(generator: &mut Json) {
    let Some(generator) = generator.as_object_mut() else {
        return;
    };
    if let Some(env) = generator.shift_remove("env")
        && env.as_str().is_some_and(|env| !env.is_empty())
    {
        generator.insert("env".to_owned(), Json::Array(vec![env]));
        append(generator, "env", "envs");
    }
}

/// Collects the fields of old charts that are now global; the last one wins.
fn globals(fields: &Fields) -> Fields {
    entries(fields, CHARTS)
        .flat_map(|chart| renamed(chart, &GLOBAL_FIELDS))
        .filter(|(_, value)| value.as_str().is_some_and(|text| !text.is_empty()))
        .collect()
}

fn renamed(object: &Json, names: &[(&str, &str)]) -> Fields {
    let field = |(old, new): &(&str, &str)| Some(((*new).to_owned(), object.get(old)?.clone()));
    names.iter().filter_map(field).collect()
}

fn entries<'a>(fields: &'a Fields, name: &str) -> impl Iterator<Item = &'a Json> {
    fields.get(name).and_then(Json::as_array).into_iter().flatten()
}
