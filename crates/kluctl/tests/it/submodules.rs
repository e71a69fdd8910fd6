//! Directories in a submodule of a repository that was fetched without it.

use std::{io, sync::Arc};

use bytes::Bytes;
use kluctl::Request;
use tree::{Budget, Entry, Mem, NodeKind, Tree, TreeError, TreePath};

/// A tree with a submodule in `sub`, as of a fetched commit.
struct WithSubmodule(Mem);

fn check(path: &TreePath) -> Result<(), TreeError> {
    match path.components().next() {
        Some("sub") => Err(TreeError::Io {
            path: path.clone(),
            source: io::Error::other("'sub' is a submodule"),
        }),
        _ => Ok(()),
    }
}

impl Tree for WithSubmodule {
    fn read(&self, path: &TreePath) -> Result<Bytes, TreeError> {
        check(path)?;
        self.0.read(path)
    }

    fn list(&self, dir: &TreePath) -> Result<Vec<Entry>, TreeError> {
        check(dir)?;
        self.0.list(dir)
    }

    fn kind(&self, path: &TreePath) -> Result<Option<NodeKind>, TreeError> {
        check(path)?;
        self.0.kind(path)
    }
}

#[test]
fn project_and_include_in_a_submodule_are_refused_by_name() {
    let files = [
        (".kluctl.yaml", "discriminator: d\n"),
        ("deployment.yaml", "deployments:\n- include: sub/app\n"),
    ];
    let tree = Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap();
    let tree: Arc<dyn Tree> = Arc::new(WithSubmodule(tree));
    for project in ["", "sub", "sub/app"] {
        let request = Request {
            project_dir: TreePath::parse(project).unwrap(),
            ..Request::default()
        };
        let rendered = kluctl::render(Arc::clone(&tree), &request, &Budget::default());
        let error = rendered.map(drop).unwrap_err().to_string();
        assert!(error.contains("'sub' is a submodule"), "{project}: {error}");
    }
}
