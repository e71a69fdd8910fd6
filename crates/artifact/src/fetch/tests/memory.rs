//! Artifacts that are downloaded and unpacked in memory, and others.

use tar::EntryType::{Regular, XGlobalHeader};
use tree::TreeError;

use super::*;
use crate::fetch::{
    memory_quota::MAX_BYTES,
    tarball::MAX_BYTES_IN_MEMORY,
    testing::{Setup, answers},
};

fn large_when_packed() -> Vec<u8> {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    });
    let noise: Vec<u8> = noise.take(2 * MAX_BYTES_IN_MEMORY).collect();
    let packed = tarball(&[("noise", XGlobalHeader, &noise), ("f", Regular, b"1")]);
    assert!(packed.len() > MAX_BYTES_IN_MEMORY);
    packed
}

fn large_when_unpacked(number: usize) -> Vec<u8> {
    tarball(&[(&format!("f-{number:04}"), Regular, &[0; 60_000])])
}

async fn fetched(setup: &Setup, bytes: &[u8]) -> Result<Arc<Unpacked>, Error> {
    let (url, _) = server(vec![answer("200 OK", bytes)]).await;
    setup.fetch(&artifact(&url, bytes)).await
}

#[tokio::test]
async fn small_artifact_needs_no_directory() {
    let setup = setup(Limits::default());
    let unpacked = fetched(&setup, &simple()).await.unwrap();
    assert!(unpacked.is_in_memory());
    assert_eq!((setup.leftovers(), unpacked.bytes()), (0, 6));
    assert_eq!(unpacked.read(&path("c/d")).unwrap(), "d");
    let usage = setup.fetcher.usage();
    assert_eq!((usage.artifacts, usage.bytes), (1, 6));
}

#[tokio::test]
async fn artifacts_over_a_bound_have_a_directory_each() {
    let setup = setup(Limits {
        tree: tree::Limits {
            file_bytes: 100,
            ..tree::Limits::default()
        },
        ..Limits::default()
    });
    let all = [
        large_when_packed(),
        tarball(&[("f", Regular, &[0; 70_000])]),
        // Larger than a file may be read.
        tarball(&[("f", Regular, &[0; 101])]),
    ];
    let mut held = Vec::new();
    for bytes in &all {
        held.push(fetched(&setup, bytes).await.unwrap());
        assert_eq!(setup.leftovers(), held.len());
    }
    assert!(held.iter().all(|unpacked| !unpacked.is_in_memory()));
    assert_eq!(held[0].read(&path("f")).unwrap(), "1");
    assert_eq!(held[1].bytes(), 70_000);
    let error = held[2].read(&path("f")).unwrap_err();
    assert!(matches!(error, TreeError::TooLarge { limit: 100, .. }), "{error}");
}

#[tokio::test]
async fn download_to_a_file_begins_anew_and_leaves_nothing_when_it_fails() {
    let bytes = large_when_packed();
    let whole = answer("200 OK", &bytes);
    let cut = whole[..MAX_BYTES_IN_MEMORY + 10_000].to_vec();
    let (url, count) = server(vec![cut, whole]).await;
    let setup = setup(Limits::default());
    let unpacked = setup.fetch(&artifact(&url, &bytes)).await.unwrap();
    assert_eq!((count.load(Ordering::SeqCst), setup.leftovers()), (2, 1));
    assert_eq!(answers(&*unpacked).len(), 4);

    let mut altered = bytes.clone();
    altered[MAX_BYTES_IN_MEMORY] ^= 1;
    let (url, _) = server(vec![answer("200 OK", &altered)]).await;
    let setup = super::setup(Limits::default());
    let error = setup.fetch(&artifact(&url, &bytes)).await.unwrap_err();
    assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
    assert_eq!(setup.leftovers(), 0);
}

#[tokio::test]
async fn memory_of_all_artifacts_is_bounded_and_comes_back_with_their_eviction() {
    let setup = setup(Limits {
        cache_bytes: 0,
        ..Limits::default()
    });
    let quota = setup.fetcher.cache.memory();
    let mut in_use = Vec::new();
    loop {
        let unpacked = fetched(&setup, &large_when_unpacked(in_use.len())).await.unwrap();
        let in_memory = unpacked.is_in_memory();
        in_use.push(unpacked);
        if !in_memory {
            break;
        }
    }
    assert_eq!(in_use.len(), MAX_BYTES / 61_500_usize.next_multiple_of(1024) + 1);
    assert_eq!(setup.leftovers(), 1);
    assert!(quota.left() < 62_464, "{}", quota.left());
    // Artifacts in use stay.
    assert!(
        !fetched(&setup, &large_when_unpacked(in_use.len()))
            .await
            .unwrap()
            .is_in_memory()
    );
    drop(in_use);
    let url = "http://127.0.0.1:1/x";
    let cancel = CancellationToken::new();
    let missing = setup
        .fetcher
        .fetch(&artifact(url, b"x"), Duration::ZERO, &cancel)
        .await;
    assert!(missing.is_err());
    assert_eq!(quota.left(), MAX_BYTES);
    let unpacked = fetched(&setup, &large_when_unpacked(0)).await.unwrap();
    assert!(unpacked.is_in_memory());
}

#[tokio::test]
async fn artifacts_on_disk_leave_space_to_other_namespaces() {
    let setup = setup(Limits {
        disk_bytes: 400_000,
        cache_bytes: 0,
        ..Limits::default()
    });
    let fetch = async |namespace: &str, bytes: &[u8]| {
        let (url, _) = server(vec![answer("200 OK", bytes)]).await;
        let wanted = Artifact {
            path: format!("gitrepository/{namespace}/x/a.tar.gz"),
            ..artifact(&url, bytes)
        };
        setup.fetch(&wanted).await
    };
    let files = |number: u8, bytes: usize| tarball(&[("f", Regular, &vec![number; bytes])]);
    let held = [fetch("a", &files(1, 200_000)).await.unwrap()];
    let error = fetch("a", &files(2, 200_000)).await.unwrap_err();
    assert!(matches!(error, Error::NoSpace), "{error}");
    let other = fetch("b", &files(3, 100_000)).await.unwrap();
    assert!(!other.is_in_memory());
    let large = fetch("c", &files(4, 350_000)).await.unwrap_err();
    assert!(matches!(large, Error::TooLarge { .. }), "{large}");
    drop(held);
    fetch("a", &files(2, 200_000)).await.unwrap();
}
