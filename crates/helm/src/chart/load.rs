//! Builds a chart from its files.

use std::{cell::Cell, collections::BTreeMap};

use tree::Budget;

use super::{
    Chart, ChartPath, File, METADATA,
    archive::{self, MAX_CHART, MAX_FILE, Unpacked},
    metadata,
};
use crate::{Error, HelmVersion, fields::Fields};

const MAX_DEPTH: u32 = 20;

/// Maximum size of all `values.yaml` and `Chart.yaml` of a chart with its subcharts in bytes: they take ten times as much once
/// they are read.
const MAX_VALUES: u64 = 16 << 20;

/// A chart that is being built with its subcharts, which share one limit.
pub(super) struct Loading<'a> {
    budget: &'a Budget,
    helm: HelmVersion,
    unpacked: Unpacked,
    values: Cell<u64>,
}

/// Builds a chart from its files, and from the archives among them.
pub(super) fn from_files(files: Vec<File>, helm: HelmVersion, budget: &Budget) -> Result<Chart, Error> {
    let loading = Loading {
        budget,
        helm,
        unpacked: Unpacked::default(),
        values: Cell::new(0),
    };
    for file in &files {
        loading
            .unpacked
            .add(&file.name, file.data.len() as u64, MAX_CHART)?;
    }
    chart(files, 0, &loading)
}

/// Checks the API version of a chart before its other fields, as Helm 4 does.
pub(super) fn check_api_version(data: &[u8], budget: &Budget) -> Result<(), Error> {
    let failed = |message: &str| Err(Error::Chart(message.to_owned()));
    let map = metadata::read_map(data, METADATA, "loader.chartBase", budget)?;
    let fields = Fields {
        map: &map,
        kind: "chartBase",
        above: None,
    };
    let mut version = String::new();
    fields
        .text("apiVersion", &mut version)
        .map_err(|error| Error::Chart(format!("cannot load {METADATA}: {error}")))?;
    match version.as_str() {
        "" | "v1" | "v2" => Ok(()),
        "v3" => failed("invalid chart apiVersion"),
        _ => failed("unsupported chart version"),
    }
}

impl Loading<'_> {
    /// Names the types in errors of metadata as the version of Helm does.
    fn words(&self, error: Error) -> Error {
        match error {
            Error::Chart(message) if self.helm.is_four() => Error::Chart(
                message
                    .replace("of type chart.", "of type v2.")
                    .replace("*chart.", "*v2."),
            ),
            error => error,
        }
    }

    /// Counts a file that is read as YAML.
    fn reads(&self, file: &File) -> Result<(), Error> {
        let total = self.values.get().saturating_add(file.data.len() as u64);
        self.values.set(total);
        if total > MAX_VALUES {
            return Err(Error::Chart(format!(
                "the values and metadata of the chart and its subcharts are larger than {MAX_VALUES} bytes"
            )));
        }
        Ok(())
    }
}

fn chart(files: Vec<File>, depth: u32, loading: &Loading<'_>) -> Result<Chart, Error> {
    let budget = loading.budget;
    budget.include_depth(depth)?;
    if depth > MAX_DEPTH {
        return Err(Error::Chart(format!(
            "charts lie deeper than {MAX_DEPTH} charts in each other"
        )));
    }
    let mut chart = Chart::default();
    let mut has_metadata = false;
    for file in files.iter().filter(|file| file.name == "Chart.yaml") {
        loading.reads(file)?;
        let read = chart.metadata.read(&file.data, "Chart.yaml", budget);
        read.map_err(|error| loading.words(error))?;
        has_metadata = true;
        if chart.metadata.api_version.is_empty() {
            chart.metadata.api_version = "v1".to_owned();
        }
    }
    let mut charts = BTreeMap::<String, Vec<File>>::new();
    for file in files {
        has_metadata |= assign(&mut chart, file, &mut charts, loading)?;
    }
    if !has_metadata {
        return Err(Error::Chart("Chart.yaml file is missing".to_owned()));
    }
    chart.metadata.validate(loading.helm)?;
    chart.home = ChartPath::new(chart.name());
    for (name, files) in charts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        // It may be a directory with the name of an archive.
        let is_misplaced = name.ends_with(".tgz") && files.first().is_none_or(|file| file.name != name);
        let what = if is_misplaced { "tar" } else { &name };
        let found = subchart(&name, files, depth, loading).map_err(|error| match error {
            Error::Chart(message) => Error::Chart(format!(
                "error unpacking subchart {what} in {}: {message}",
                chart.name()
            )),
            error => error,
        })?;
        chart.dependencies.push(found);
    }
    chart.house();
    Ok(chart)
}

/// Assigns one file to its part of the chart; returns true if it has metadata.
fn assign(
    chart: &mut Chart,
    file: File,
    charts: &mut BTreeMap<String, Vec<File>>,
    loading: &Loading<'_>,
) -> Result<bool, Error> {
    let budget = loading.budget;
    if matches!(
        file.name.as_str(),
        "Chart.lock" | "values.yaml" | "requirements.yaml" | "requirements.lock"
    ) {
        loading.reads(&file)?;
    }
    let is_v1 = chart.metadata.api_version == "v1";
    match file.name.as_str() {
        "Chart.yaml" => {}
        // Locked versions matter only when charts are fetched.
        "Chart.lock" => {
            metadata::check(&file.data, "Chart.lock", budget).map_err(|error| loading.words(error))?;
        }
        "values.yaml" => {
            let failed = |error| Error::Chart(format!("cannot load values.yaml: {error}"));
            chart.values = crate::values::read(&file.data, loading.helm, budget).map_err(failed)?;
        }
        "values.schema.json" => chart.schema = Some(file.data),
        "requirements.yaml" | "requirements.lock" => {
            let read = if file.name == "requirements.yaml" {
                chart.metadata.read(&file.data, &file.name, budget)
            } else {
                metadata::check(&file.data, &file.name, budget)
            };
            read.map_err(|error| loading.words(error))?;
            if is_v1 {
                chart.files.push(file);
            } else {
                chart.warnings.push(format!(
                    "Warning: {} is only for charts of apiVersion v1; write what it says into Chart.yaml and Chart.lock",
                    file.name
                ));
            }
            return Ok(true);
        }
        name if name.starts_with("templates/") => chart.templates.push(file),
        name => match name.strip_prefix("charts/") {
            Some(inner) if !inner.ends_with(".prov") => {
                let directory = inner.split('/').next().unwrap_or_default().to_owned();
                let name = inner.to_owned();
                charts.entry(directory).or_default().push(File {
                    name,
                    data: file.data,
                });
            }
            _ => chart.files.push(file),
        },
    }
    Ok(false)
}

fn subchart(name: &str, files: Vec<File>, depth: u32, loading: &Loading<'_>) -> Result<Chart, Error> {
    if name.ends_with(".tgz") {
        return match files.first() {
            Some(file) if file.name == name => {
                let (unpacked, budget) = (&loading.unpacked, loading.budget);
                let inner = archive::files(&file.data, MAX_CHART, MAX_FILE, unpacked, budget)?;
                chart(inner, depth.saturating_add(1), loading)
            }
            file => Err(Error::Chart(format!(
                "expected {name}, got {}",
                file.map(|file| file.name.as_str()).unwrap_or_default()
            ))),
        };
    }
    // Files directly in `charts` belong to no chart.
    let inside = files.into_iter().filter_map(|file| {
        let (_, inner) = file.name.split_once('/')?;
        Some(File {
            name: inner.to_owned(),
            data: file.data,
        })
    });
    chart(inside.collect(), depth.saturating_add(1), loading)
}
