//! Tests of the allowed contents of archives.

use std::{fs, path::Path};

use oci::{Access, Archive, ChartSource};
use testkit::{Page, WebServer, archive::tar_gz};
use tree::{Budget, Tree as _, TreePath};

use crate::support::{chart, client, said};

async fn pulled(bytes: Vec<u8>) -> Archive {
    let server = WebServer::start().unwrap();
    server.page(
        "/index.yaml",
        Page::Content("entries:\n  shop:\n  - {name: a, version: 1.0.0, urls: [a.tgz]}\n".into()),
    );
    server.page("/a.tgz", Page::Content(bytes.into()));
    let source = ChartSource::new(&client(Access::default()), &server.url(""), "shop").unwrap();
    source.pull("").await.unwrap()
}

#[tokio::test]
async fn files_come_out_as_a_tree_or_in_a_directory() {
    let archive = pulled(chart("shop", "1.0.0")).await;
    let tree = archive.tree(&Budget::default()).unwrap();
    assert_eq!(tree.list(&TreePath::root()).unwrap().len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("a/b/1.0.0");
    archive.write(&to, &Budget::default()).unwrap();
    assert_eq!(
        fs::read_to_string(to.join("templates/a.yaml")).unwrap(),
        "kind: A\n"
    );
    assert_eq!(names(&dir.path().join("a/b")), ["1.0.0"]);
    let error = said(archive.write(&to, &Budget::default()));
    assert!(error.contains("failed to make"), "{error}");
    assert_eq!(names(&dir.path().join("a/b")), ["1.0.0"]);
}

#[tokio::test]
async fn nothing_leaves_the_directory_or_explodes() {
    let metadata: &[u8] = b"apiVersion: v2\nname: shop\nversion: 1.0.0\n";
    for (bytes, why) in [
        (tar_gz(&[("shop/../../evil", b"x")]), "parent directory"),
        (tar_gz(&[("shop//evil", b"x")]), "absolute paths"),
        (tar_gz(&[("/evil", b"x")]), "evil"),
        (tar_gz(&[("Chart.yaml", metadata)]), "outside the base directory"),
        (
            tar_gz(&[("shop/big", &vec![0; (5 << 20) + 1])]),
            "larger than the maximum file size",
        ),
        (b"PK".to_vec(), "gzipped archive"),
        (chart("shop", "1.0.0")[..40].to_vec(), "can't be read"),
    ] {
        let archive = pulled(bytes).await;
        let dir = tempfile::tempdir().unwrap();
        let result = archive.write(&dir.path().join("in/shop"), &Budget::default());
        if why == "evil" {
            // Without its slash it is a file of the chart.
            result.unwrap();
            assert_eq!(names(&dir.path().join("in/shop")), ["evil"]);
            continue;
        }
        let error = said(result);
        assert!(error.contains(why), "{why}: {error}");
        assert!(!dir.path().join("in/shop").exists() && !dir.path().join("evil").exists());
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
