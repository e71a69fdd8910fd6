//! Helpers that several tests share.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use kluctl::{
    CallbackError, Charts, Error, FetchedSource, Moment, Rendered, Request, SourceAddress, Sources,
    VarsError, VarsSources, render,
};
use tree::{Budget, Disk, Limits, Mem};
use yaml::Value;

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a directory.
pub(crate) fn read_dir(dir: &Path) -> Disk {
    Disk::open(dir, &Limits::default()).unwrap()
}

/// Renders files that are written in a test.
pub(crate) fn render_files(files: &[(&str, &str)], request: &Request) -> Result<Rendered, Error> {
    let files = files.iter().map(|(path, text)| (*path, text.to_string()));
    render(
        Arc::new(Mem::from_files(files).unwrap()),
        request,
        &Budget::default(),
    )
}

/// `Kind/namespace/name` of each object, in order.
pub(crate) fn names(rendered: &Rendered) -> Vec<String> {
    rendered.objects().map(name).collect()
}

/// `Kind/namespace/name` of an object.
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

/// Git repositories and artifacts that lie in directories, by what their addresses begin with.
#[derive(Default)]
pub(crate) struct Overrides {
    /// `host/path` of a repository, or of those below it.
    pub(crate) git: Vec<(String, PathBuf)>,
    pub(crate) oci: Vec<(String, PathBuf)>,
}

impl Sources for Overrides {
    fn fetch(&self, address: &SourceAddress, _: &Budget) -> Result<FetchedSource, CallbackError> {
        let places = match address {
            SourceAddress::Git { .. } => &self.git,
            SourceAddress::Oci { .. } => &self.oci,
        };
        let url = address.url();
        let key = url.split_once("://").map_or(url, |(_, key)| key);
        let key = key.trim_start_matches("git@").trim_end_matches(".git");
        let dir = places.iter().find_map(|(from, dir)| {
            let rest = key.strip_prefix(from.as_str())?;
            Some(dir.join(rest.trim_start_matches('/')))
        });
        let dir = dir.ok_or_else(|| CallbackError::new(format!("{url} is not overridden")))?;
        Ok(FetchedSource {
            tree: Arc::new(read_dir(&dir)),
            commit: None,
        })
    }

    fn references(&self, url: &str, _: &Budget) -> Result<Vec<kluctl::RemoteRef>, CallbackError> {
        Err(CallbackError::new(format!("{url} has no references")))
    }
}

/// The variables of an environment, and no cluster.
#[derive(Default)]
pub(crate) struct Environment(pub(crate) Vec<(String, String)>);

impl VarsSources for Environment {
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        let found = self.0.iter().find(|(known, _)| known == name);
        Ok(found.map(|(_, value)| value.clone()))
    }
}
