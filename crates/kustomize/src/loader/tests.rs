use tree::{Budget, Mem};

use super::*;
use crate::Options;

fn tree() -> Mem {
    let files = [
        "app/kustomization.yaml",
        "app/m.yaml",
        "app/sub/n.yaml",
        "base/b.yaml",
        "b.yaml",
    ];
    Mem::from_files(files.map(|file| (file, file))).unwrap()
}

fn outcome(dir: &str, run: impl FnOnce(&Loader<'_>) -> Result<String, Error>) -> String {
    let (tree, budget) = (tree(), Budget::default());
    let shared = Run::new(Options::default(), &budget);
    let loader = Loader::new(&tree, &TreePath::parse(dir).unwrap(), &shared);
    loader
        .and_then(|loader| run(&loader))
        .unwrap_or_else(|error| error.to_string())
}

#[test]
fn files_must_be_in_the_directory() {
    let load = |path: &str| outcome("app", |loader| Ok(loader.load(path)?.1.to_string()));
    assert_eq!(load("m.yaml"), "app/m.yaml");
    assert_eq!(load("./sub/../sub/n.yaml"), "app/sub/n.yaml");
    assert_eq!(
        load("../b.yaml"),
        "security; file 'b.yaml' is not in or below 'app'"
    );
    assert_eq!(
        load("/b.yaml"),
        "security; file '/b.yaml' is not in or below 'app'"
    );
    assert!(load("none.yaml").ends_with("lstat app/none.yaml: no such file or directory"));
    assert_eq!(load("sub"), "'app/sub' must resolve to a file");
    assert!(
        load("../../b.yaml").contains("outside"),
        "{}",
        load("../../b.yaml")
    );
    assert!(load("https://user:secret@host/x.yaml?token=secret").contains("not fetched"));
    assert!(!load("https://user:secret@host/x.yaml?token=secret").contains("secret"));
}

#[test]
fn cyclic_directories_are_refused() {
    let enter = |path: &str| outcome("app", |loader| Ok(loader.enter(path)?.root().to_string()));
    assert_eq!(enter("../base"), "base");
    assert_eq!(enter("sub"), "app/sub");
    assert_eq!(
        enter(".."),
        "cycle detected: candidate root '.' contains visited root 'app'"
    );
    assert_eq!(
        enter("sub/.."),
        "cycle detected: candidate root 'app' contains visited root 'app'"
    );
    assert_eq!(enter("/base"), "new root '/base' cannot be absolute");
    assert_eq!(
        enter("m.yaml"),
        "must build at directory: 'm.yaml': file is not directory"
    );
    assert!(enter("none").starts_with("must build at directory: not a valid directory: evalsymlink failure"));
    assert_eq!(enter(""), "new root cannot be empty");
}
