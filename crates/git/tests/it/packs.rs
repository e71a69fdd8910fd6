//! Packs in memory and on the disk.

use git::Remote;
use limits::ByteBudget;
use testkit::GitServer;

use super::{branch, call, fetch, own_network, space::noise};

#[test]
fn fetch_of_a_small_pack_makes_no_file() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("small").unwrap();
    repo.commit("first", &[("old", "1")]).unwrap();
    let commit = repo.commit("second", &[("a/b", "2")]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let absent = dir.path().join("absent");
    // The disk has no space.
    let network = own_network().with_disk(ByteBudget::new(0));
    let mut session = network.open(&Remote::new(&repo.url()).unwrap(), &call()).unwrap();
    let resolved = session.resolve(&branch("main")).unwrap();
    let snapshot = session.fetch(&resolved, &absent).unwrap();
    assert_eq!(snapshot.commit(), commit);
    let nodes = snapshot.nodes().unwrap();
    let (file, mut content) = (nodes.iter().find(|node| node.path.as_str() == "a/b"), Vec::new());
    snapshot.read(file.unwrap(), &mut content).unwrap();
    assert_eq!(content, b"2");
    assert!(!absent.exists() && dir.path().read_dir().unwrap().next().is_none());
}

#[test]
fn temporary_directory_of_a_large_pack_is_removed_with_the_last_snapshot() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("large").unwrap();
    let large = noise(3, 300 << 10);
    let change = repo.change("first").write("large", &large);
    change.write("small", "2").push().unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let fetched = fetch(&remote, &branch("main"), &call()).unwrap();
    let files = || fetched.dir.path().read_dir().unwrap().count();
    assert_eq!(files(), 1);
    let (clone, nodes) = (fetched.snapshot.clone(), fetched.snapshot.nodes().unwrap());
    drop(fetched.snapshot);
    assert_eq!(files(), 1);
    for (path, expected) in [("large", large.as_slice()), ("small", b"2")] {
        let node = nodes.iter().find(|node| node.path.as_str() == path).unwrap();
        let mut content = Vec::new();
        clone.read(node, &mut content).unwrap();
        assert!(content == expected, "{path}");
    }
    drop(clone);
    assert_eq!(files(), 0);
}
