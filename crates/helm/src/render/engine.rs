//! Executes the templates of a chart and its dependencies.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc};

use go::bytes;
use tree::Budget;

use super::{Options, capabilities::Capabilities, records, trace};
use crate::{
    Chart, Dict, Error, HelmVersion, Value,
    chart::Files,
    functions::{Environment, Standard, WARNING_END, WARNING_START},
    template::{self, Executor, ParseBuffers, Set},
    values::{lookup_table, table},
};

struct Renderable<'a> {
    text: &'a [u8],
    data: Dict,
    base_path: String,
}

struct Shared<'a> {
    helm: HelmVersion,
    release: &'a Value,
    capabilities: Value,
}

/// Executes all templates; returns their output by path, in the form of [`go::bytes`].
pub(super) fn run(
    chart: &Chart,
    values: &Dict,
    release: &Value,
    capabilities: &Capabilities,
    helm: HelmVersion,
    environment: &dyn Environment,
    budget: &Budget,
) -> Result<BTreeMap<String, String>, Error> {
    let shared = Shared {
        helm,
        release,
        capabilities: capabilities.value(),
    };
    let mut templates = BTreeMap::new();
    collect(chart, true, values, &shared, &mut templates);
    let functions = Standard::new(environment, helm);
    let mut paths: Vec<&String> = templates.keys().collect();
    // Templates of subcharts come first, so that parents can override them.
    paths.sort_by_cached_key(|path| {
        let path: &str = path;
        let depth = path.bytes().filter(|byte| *byte == b'/').count();
        std::cmp::Reverse((depth, path.to_owned()))
    });
    let (mut set, mut buffers) = (Set::new(), ParseBuffers::default());
    for path in &paths {
        budget.check()?;
        if let Some(one) = templates.get(*path) {
            let text = match str::from_utf8(one.text) {
                Ok(text) => bytes::of_utf8(text),
                Err(_) => Cow::from(bytes::to_string(one.text)),
            };
            set.parse(path, text, &functions, &mut buffers, budget)
                .map_err(|error| parse_error(path, &error, budget))?;
        }
    }
    let mut executor = Executor::new(Rc::new(set), &functions, budget, false);
    let mut rendered = BTreeMap::new();
    for path in paths {
        let Some(one) = templates.get(path) else { continue };
        if path.rsplit('/').next().is_some_and(|name| name.starts_with('_')) {
            continue;
        }
        let about = table();
        about.borrow_mut().extend([
            ("Name".into(), Value::string(path.as_str())),
            ("BasePath".into(), Value::string(one.base_path.as_str())),
        ]);
        one.data
            .borrow_mut()
            .insert("Template".into(), records::values(about, helm));
        let text = executor
            .execute(path, records::values(one.data.clone(), helm))
            .map_err(|error| execution_error(path, &error, helm, budget))?;
        rendered.insert(path.clone(), template::without_no_value(text));
    }
    Ok(rendered)
}

/// Collects the templates of a chart and its subcharts; returns the data of its own.
fn collect<'a>(
    chart: &'a Chart,
    is_root: bool,
    values: &Dict,
    shared: &Shared<'_>,
    templates: &mut BTreeMap<String, Renderable<'a>>,
) -> Dict {
    let subcharts = table();
    let data = table();
    for (key, value) in [
        ("Chart", records::chart(&chart.metadata, is_root, shared.helm)),
        ("Files", Files::new(&chart.files, shared.helm).into_value()),
        ("Release", shared.release.clone()),
        ("Capabilities", shared.capabilities.clone()),
        ("Values", records::values(values.clone(), shared.helm)),
        ("Subcharts", Value::Dict(subcharts.clone())),
    ] {
        data.borrow_mut().insert(key.into(), value);
    }
    for inner in &chart.dependencies {
        let values = lookup_table(values, inner.name()).unwrap_or_else(|_| table());
        let seen = collect(inner, false, &values, shared, templates);
        subcharts
            .borrow_mut()
            .insert(inner.name().into(), Value::Dict(seen));
    }
    let path = chart.home.path();
    for file in &chart.templates {
        let is_partial = file
            .name
            .rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with('_'));
        if chart.is_library() && !is_partial {
            continue;
        }
        let one = Renderable {
            text: &file.data,
            data: data.clone(),
            base_path: format!("{path}/templates"),
        };
        templates.insert(format!("{path}/{}", file.name), one);
    }
    data
}

pub(super) fn release_name(options: &Options<'_>, budget: &Budget) -> Result<String, Error> {
    let Some(text) = options.name_template.as_ref().filter(|text| !text.is_empty()) else {
        return Ok(options.release_name.clone());
    };
    let failed = |error: template::Error| Error::Option(error.to_string());
    let functions = Standard::new(options.environment, options.helm_version);
    let mut set = Set::new();
    set.parse(
        "name-template",
        text,
        &functions,
        &mut ParseBuffers::default(),
        budget,
    )
    .map_err(failed)?;
    let name = Executor::new(Rc::new(set), &functions, budget, false).execute("name-template", Value::Nil);
    name.map(|name| bytes::to_valid_utf8(&name).into_owned())
        .map_err(failed)
}

/// Returns the exceeded limit, which is the reason of any other failure.
fn exceeded(budget: &Budget) -> Option<Error> {
    budget.check().err().map(Error::Exceeded)
}

fn parse_error(path: &str, error: &template::Error, budget: &Budget) -> Error {
    if let Some(error) = exceeded(budget) {
        return error;
    }
    if let template::Error::Exceeded(exceeded) = error {
        return Error::Exceeded(exceeded.clone());
    }
    let words = error.to_string();
    let words = bytes::to_valid_utf8(&words).into_owned();
    let tokens: Vec<&str> = words.split(": ").collect();
    Error::Template(match tokens.as_slice() {
        [_, location, .., last] => format!("parse error at ({location}): {last}"),
        [_, location] => format!("parse error at ({location}): {location}"),
        _ => format!("parse error in ({path}): {words}"),
    })
}

fn execution_error(path: &str, error: &template::Error, helm: HelmVersion, budget: &Budget) -> Error {
    if let Some(error) = exceeded(budget) {
        return error;
    }
    let words = error.to_string();
    let words = bytes::to_valid_utf8(&words).into_owned();
    if !matches!(error, template::Error::Execute(_)) {
        return Error::Template(words);
    }
    let mut tokens = words.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return Error::Template(format!("execution error in ({path}): {words}"));
    };
    let message = rest
        .split_once(WARNING_START)
        .and_then(|(_, rest)| rest.rsplit_once(WARNING_END));
    Error::Template(match message {
        Some((message, _)) => format!("execution error at ({location}): {message}"),
        None if helm.is_four() => trace::print(&words).unwrap_or(words),
        None => words,
    })
}
