//! Helpers that several tests share.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kluctl::{Charts, Error, Moment, Rendered, Request, render};
use tree::{Budget, Disk, Limits, Mem};
use yaml::Value;

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read_dir(dir: &Path) -> Disk {
    Disk::open(dir, &Limits::default()).unwrap()
}

pub(crate) fn render_files(files: &[(&str, &str)], request: &Request) -> Result<Rendered, Error> {
    let files = files.iter().map(|(path, text)| (*path, text.to_string()));
    render(
        Arc::new(Mem::from_files(files).unwrap()),
        request,
        &Budget::default(),
    )
}

/// Lists `Kind/namespace/name` of all objects, in order.
pub(crate) fn names(rendered: &Rendered) -> Vec<String> {
    rendered.objects().map(name).collect()
}

pub(crate) fn name(object: &Value) -> String {
    let text = |path: &[&str]| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or("-")
            .to_owned()
    };
    format!(
        "{}/{}/{}",
        text(&["kind"]),
        text(&["metadata", "namespace"]),
        text(&["metadata", "name"])
    )
}

/// Charts are rendered at a moment that never changes.
pub(crate) fn charts() -> Charts {
    Charts {
        moment: Some(Arc::new(Moment::new(1_760_000_000, 0, [7; 32]))),
        ..Charts::default()
    }
}
