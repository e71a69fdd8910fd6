//! The Helm chart of Weir.
//!
//! Its templates are made from the manifests of installations with different options: values take the place of options, and conditions the
//! place of objects that depend on them.

mod substitute;
mod template;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{Files, Release, image};

/// Name of the chart, which the last part of its repository repeats.
pub(crate) const NAME: &str = "weir";
const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const WRITTEN: &[&str] = &[
    "Chart.yaml",
    "README.md",
    "values.schema.json",
    "values.yaml",
    "templates/_helpers.tpl",
];
const REGISTRY: &str = "\nregistry: weir\n";

/// Returns the files of the chart: those in `deploy/chart`, and the templates of the objects.
pub(crate) fn files(root: &Path, release: &Release) -> Result<Files> {
    let mut files = Files::default();
    for name in WRITTEN {
        let path = root.join("deploy/chart").join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = match *name {
            "Chart.yaml" => checked(text, release)?,
            "values.yaml" => with_registry(&text, release)?,
            _ => text,
        };
        files.add(&format!("{NAME}/{name}"), text);
    }
    let templates: BTreeMap<String, String> = template::all()?;
    for (name, text) in templates {
        files.add(&format!("{NAME}/templates/{name}"), text);
    }
    Ok(files)
}

/// Returns the chart as registries keep it.
pub(crate) fn artifact(packed: Vec<u8>, release: &Release) -> Result<image::Manifest> {
    let config = json!({
        "apiVersion": "v2",
        "name": NAME,
        "type": "application",
        "version": release.version(),
        "appVersion": release.version(),
    });
    let annotations = image::annotations(NAME, release, &image::created(release)?);
    let layer = image::Blob {
        media_type: oci::CHART_LAYER,
        content: packed,
    };
    Ok(image::manifest(config_blob(&config), layer, &annotations))
}

fn config_blob(config: &Value) -> image::Blob {
    image::Blob {
        media_type: CONFIG,
        content: config.to_string().into_bytes(),
    }
}

fn checked(text: String, release: &Release) -> Result<String> {
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {}\n", release.version());
        ensure!(
            text.contains(&line),
            "deploy/chart/Chart.yaml: the line is not {line:?}"
        );
    }
    Ok(text)
}

fn with_registry(text: &str, release: &Release) -> Result<String> {
    ensure!(
        text.contains(REGISTRY),
        "deploy/chart/values.yaml: there is no line {REGISTRY:?}"
    );
    Ok(text.replacen(REGISTRY, &format!("\nregistry: {}\n", release.registry), 1))
}
