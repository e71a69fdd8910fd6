use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    time::Duration,
};

use super::*;
use crate::{Algorithm, digest::of};

fn storage(root: &Path) -> Storage {
    Storage::open(root, "source.ns.svc:9090", Retention::default()).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("gitrepository", "ns", name).unwrap()
}

fn put(storage: &Storage, key: &Key, file: &str, superseded: Option<&str>, bytes: &[u8]) -> Stored {
    let superseded = superseded.map(named);
    let stored = storage.store(key, file, superseded.as_ref(), |out| write(out, bytes));
    let stored = stored.unwrap();
    let name = stored.path.rsplit('/').next().unwrap();
    storage.renew_alias(key, name).unwrap();
    stored
}

fn named(file: &str) -> Current {
    Current {
        file: file.to_owned(),
        digest: "sha256:other".to_owned(),
    }
}

fn write(out: &mut impl Write, bytes: &[u8]) -> Result<Packed, Error> {
    out.write_all(bytes).map_err(Error::io("write", "a test"))?;
    let digest = of(Algorithm::Sha256, bytes);
    let sha256 = digest.hex().to_owned();
    Ok(Packed {
        digest,
        sha256,
        sha1: String::new(),
        size: bytes.len() as u64,
        hashes: Vec::new(),
    })
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_stored_file_has_its_name_its_alias_and_private_modes() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let stored = put(&storage, &key("a"), "1.tar.gz", None, b"one");
    assert_eq!(stored.path, "gitrepository/ns/a/1.tar.gz");
    assert_eq!(
        storage.url(&stored.path),
        "http://source.ns.svc:9090/gitrepository/ns/a/1.tar.gz"
    );
    let dir = root.path().join("gitrepository/ns/a");
    assert_eq!(names(&dir), ["1.tar.gz", "latest.tar.gz"]);
    let file = fs::metadata(dir.join("1.tar.gz")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(dir.join("latest.tar.gz")).unwrap().ino(), file.ino());
    put(&storage, &key("a"), "2.tar.gz", Some("1.tar.gz"), b"two");
    assert_eq!(fs::read(dir.join("latest.tar.gz")).unwrap(), b"two");
    assert_eq!(fs::read(dir.join("1.tar.gz")).unwrap(), b"one");
}

#[test]
fn other_bytes_of_the_same_name_get_another_and_the_alias_follows_later() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let dir = root.path().join("gitrepository/ns/a");
    let first = put(&storage, &key("a"), "1.tar.gz", None, b"one");
    let current = Current {
        file: "1.tar.gz".to_owned(),
        digest: first.packed.digest.to_string(),
    };
    let store = |current: Option<&Current>, bytes: &[u8]| {
        let stored = storage.store(&key("a"), "1.tar.gz", current, |out| write(out, bytes));
        let stored = stored.unwrap();
        (stored.path.rsplit('/').next().unwrap().to_owned(), stored)
    };
    assert_eq!(store(Some(&current), b"one").1, first, "the same bytes");
    let two = format!("1-{}.tar.gz", &of(Algorithm::Sha256, b"two").hex()[..16]);
    for current in [Some(&current), None] {
        assert_eq!(store(current, b"two").0, two);
    }
    assert_eq!(fs::read(dir.join("1.tar.gz")).unwrap(), b"one");
    assert_eq!(fs::read(dir.join("latest.tar.gz")).unwrap(), b"one");
    assert_eq!(names(&dir), [two.as_str(), "1.tar.gz", "latest.tar.gz"]);
    storage.ensure_alias(&key("a"), &two).unwrap();
    assert_eq!(fs::read(dir.join("latest.tar.gz")).unwrap(), b"two");

    // Others don't take the name of a file in a status if it is lost, either.
    storage.remove(&key("a")).unwrap();
    assert_eq!(store(Some(&current), b"two").0, two);
    // The name in a status stays with its bytes, and the usual one is free for the first others.
    let renamed = Current {
        digest: of(Algorithm::Sha256, b"two").to_string(),
        file: two.clone(),
    };
    assert_eq!(store(Some(&renamed), b"two").0, two);
    assert_eq!(store(Some(&renamed), b"three").0, "1.tar.gz");
}

#[test]
fn a_scheme_in_the_advertised_address_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let storage = Storage::open(root.path(), "https://h/x/", Retention::default()).unwrap();
    assert_eq!(storage.url("/a/b"), "https://h/x/a/b");
}

#[test]
fn a_failed_write_leaves_nothing_and_the_old_file_stays() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    put(&storage, &key("a"), "1.tar.gz", None, b"one");
    let failed = storage.store(&key("a"), "1.tar.gz", None, |out| {
        out.write_all(b"half").unwrap();
        Err::<Packed, Error>(Error::Malformed("no".to_owned()))
    });
    assert!(failed.is_err());
    let dir = root.path().join("gitrepository/ns/a");
    assert_eq!(names(&dir), ["1.tar.gz", "latest.tar.gz"]);
    assert_eq!(fs::read(dir.join("1.tar.gz")).unwrap(), b"one");
}

#[test]
fn verification_notices_missing_and_changed_files() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let stored = put(&storage, &key("a"), "1.tar.gz", None, b"one");
    let verify = |digest| storage.verify(&stored.path, digest).unwrap();
    assert_eq!(verify(&stored.packed.digest), Verdict::Good);
    let sha512 = of(Algorithm::Sha512, b"one");
    assert_eq!(verify(&sha512), Verdict::Good);
    let file = root.path().join(&stored.path);
    fs::write(&file, b"evil").unwrap();
    assert_eq!(
        verify(&stored.packed.digest),
        Verdict::Corrupt {
            found: of(Algorithm::Sha256, b"evil")
        }
    );
    fs::remove_file(&file).unwrap();
    assert_eq!(verify(&stored.packed.digest), Verdict::Missing);
    symlink(root.path().join("elsewhere"), &file).unwrap();
    fs::write(root.path().join("elsewhere"), b"one").unwrap();
    assert_eq!(verify(&stored.packed.digest), Verdict::Missing);
}

#[test]
fn superseded_files_go_when_their_time_is_over() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let key = key("a");
    put(&storage, &key, "1.tar.gz", None, b"one");
    let old = fs::File::open(root.path().join("gitrepository/ns/a/1.tar.gz")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(600))
        .unwrap();
    put(&storage, &key, "2.tar.gz", Some("1.tar.gz"), b"two");
    // Its retention counts from when it was superseded.
    assert_eq!(storage.collect(&key, "2.tar.gz", SystemTime::now()).unwrap(), 0);
    let later = SystemTime::now() + Duration::from_secs(61);
    assert_eq!(storage.collect(&key, "2.tar.gz", later).unwrap(), 1);
    assert_eq!(
        names(&root.path().join("gitrepository/ns/a")),
        ["2.tar.gz", "latest.tar.gz"]
    );
    assert_eq!(
        storage
            .collect(&Key::new("gitrepository", "ns", "none").unwrap(), "x", later)
            .unwrap(),
        0
    );
}

#[test]
fn deletion_and_sweep_remove_whole_directories() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    for name in ["a", "b"] {
        put(&storage, &key(name), "1.tar.gz", None, b"one");
    }
    let gone = Key::new("gitrepository", "gone", "c").unwrap();
    put(&storage, &gone, "1.tar.gz", None, b"one");
    storage.remove(&key("a")).unwrap();
    storage.remove(&key("a")).unwrap();
    assert_eq!(
        storage
            .sweep("gitrepository", &HashSet::from([key("b")]))
            .unwrap(),
        1
    );
    assert_eq!(names(&root.path().join("gitrepository")), ["ns"]);
    assert_eq!(names(&root.path().join("gitrepository/ns")), ["b"]);
    assert_eq!(storage.sweep("bucket", &HashSet::new()).unwrap(), 0);
}

#[test]
fn names_that_leave_the_storage_are_refused() {
    for bad in ["", ".", "..", "a/b", ".hidden", "a\\b", "a\0"] {
        assert!(Key::new("gitrepository", bad, "x").is_err(), "{bad:?}");
        assert!(Key::new("gitrepository", "x", bad).is_err(), "{bad:?}");
    }
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let refused = storage.store(&key("a"), "../x", None, |out| write(out, b"x"));
    assert!(refused.is_err());
}

#[test]
fn quotas_bound_objects_and_namespaces() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path()).with_quotas(Quotas {
        object: 1000,
        namespace: 1500,
    });
    let error = |key: &Key, file: &str, current: Option<&str>, size: usize| {
        let current = current.map(named);
        let stored = storage.store(key, file, current.as_ref(), |out| write(out, &vec![b'x'; size]));
        stored.unwrap_err().to_string()
    };
    let (a, b) = (key("a"), key("b"));
    let message = error(&a, "1", None, 1001);
    assert!(
        message.contains("0 of 1000 bytes (--storage-quota-per-object)"),
        "{message}"
    );
    let dir = root.path().join("gitrepository/ns/a");
    assert_eq!(names(&dir), [] as [&str; 0], "nothing is left of it");
    put(&storage, &a, "1", None, &[b'x'; 400]);
    put(&storage, &a, "2", Some("1"), &[b'x'; 400]);
    // The superseded artifact is removed for the new one, the current one stays.
    let message = error(&a, "3", Some("2"), 601);
    assert!(message.contains("400 of 1000 bytes"), "{message}");
    assert_eq!(names(&dir), ["1", "2", "latest.tar.gz"]);
    put(&storage, &a, "3", Some("2"), &[b'x'; 600]);
    assert_eq!(names(&dir), ["2", "3", "latest.tar.gz"]);
    let message = error(&b, "1", None, 501);
    assert!(
        message.contains("1000 of 1500 bytes (--storage-quota-per-namespace)"),
        "{message}"
    );
    put(&storage, &b, "1", None, &[b'x'; 500]);
    assert!(
        storage.check_quota(&b, Some("1")).is_err(),
        "known before a fetch"
    );
    // Other namespaces have their own quota.
    let other = Key::new("gitrepository", "other", "a").unwrap();
    storage.check_quota(&other, None).unwrap();
    put(&storage, &other, "1", None, &[b'x'; 1000]);
    storage.remove(&a).unwrap();
    storage.check_quota(&b, Some("1")).unwrap();
}

#[test]
fn quota_of_a_namespace_holds_for_artifacts_that_are_written_at_the_same_time() {
    const SIZE: usize = 600 << 10;
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path()).with_quotas(Quotas {
        object: u64::MAX,
        namespace: 2 * SIZE as u64,
    });
    let writers = 5;
    let all_begun = std::sync::Barrier::new(writers);
    let results: Vec<_> = std::thread::scope(|scope| {
        let run = |number: usize| {
            let (storage, all_begun) = (&storage, &all_begun);
            move || {
                storage.store(&key(&format!("object-{number}")), "1", None, |out| {
                    all_begun.wait();
                    write(out, &vec![b'x'; SIZE])
                })
            }
        };
        let running: Vec<_> = (0..writers).map(|number| scope.spawn(run(number))).collect();
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let stored = results.iter().filter(|stored| stored.is_ok()).count();
    assert_eq!(stored, 2, "artifacts in the quota of two");
    for error in results.into_iter().filter_map(Result::err) {
        let message = error.to_string();
        assert!(message.contains("(--storage-quota-per-namespace)"), "{message}");
    }
    for number in 0..writers {
        storage.remove(&key(&format!("object-{number}"))).unwrap();
    }
    put(&storage, &key("late"), "1", None, &vec![b'x'; 2 * SIZE]);
    storage.remove(&key("late")).unwrap();
    // Ledgers of empty namespaces are dropped.
    let other = Key::new("gitrepository", "other", "a").unwrap();
    put(&storage, &other, "1", None, b"x");
    let ledgers = storage.ledgers.lock();
    assert_eq!(ledgers.keys().collect::<Vec<_>>(), ["other"]);
}

#[test]
fn artifact_that_was_stored_meanwhile_counts() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path()).with_quotas(Quotas {
        object: u64::MAX,
        namespace: 1000,
    });
    let refused = storage.store(&key("slow"), "1", None, |out| {
        put(&storage, &key("fast"), "1", None, &[b'x'; 600]);
        write(out, &[b'x'; 600])
    });
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("600 of 1000 bytes"), "{message}");
    put(&storage, &key("slow"), "1", None, &[b'x'; 400]);
}

#[test]
fn usage_of_a_namespace_is_known_without_reading_it_again() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path()).with_quotas(Quotas {
        object: u64::MAX,
        namespace: 1000,
    });
    put(&storage, &key("a"), "1", None, &[b'x'; 300]);
    put(&storage, &key("a"), "2", Some("1"), &[b'x'; 100]);
    put(&storage, &key("b"), "1", None, &[b'x'; 300]);
    // Files that others move away are not noticed.
    let (dir, away) = (root.path().join("gitrepository/ns/a"), root.path().join("away"));
    std::fs::rename(&dir, &away).unwrap();
    let refused = storage.store(&key("b"), "2", Some(&named("1")), |out| write(out, &[b'x'; 301]));
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("700 of 1000 bytes"), "{message}");
    std::fs::rename(&away, &dir).unwrap();
    // Removed bytes are free at once, by either method.
    storage.remove_file(&key("a"), "1");
    put(&storage, &key("b"), "2", Some("1"), &[b'x'; 600]);
    storage.remove(&key("a")).unwrap();
    put(&storage, &key("b"), "3", Some("2"), &[b'x'; 400]);
    let past = SystemTime::now() + Duration::from_secs(3600);
    assert_eq!(storage.collect(&key("b"), "3", past).unwrap(), 1);
    put(&storage, &key("c"), "1", None, &[b'x'; 600]);
}

#[test]
fn artifact_is_restored_if_it_has_the_wanted_digest() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    let wanted = of(Algorithm::Sha256, b"one two");
    let restore = |pieces: &[&'static str]| {
        let mut pieces = pieces.iter().copied();
        storage.restore(&key("a"), "1.tar.gz", &wanted, || match pieces.next() {
            Some("broken") => Err(Error::Malformed("broken off".to_owned())),
            piece => Ok(piece.map(bytes::Bytes::from)),
        })
    };
    let dir = root.path().join("gitrepository/ns/a");
    assert!(!restore(&["one ", "three"]).unwrap());
    assert_eq!(
        restore(&["one ", "broken"]).unwrap_err().to_string(),
        "the artifact is malformed: broken off"
    );
    assert_eq!(names(&dir), [""; 0]);
    assert!(restore(&["one ", "two"]).unwrap());
    assert_eq!(names(&dir), ["1.tar.gz", "latest.tar.gz"]);
    let verdict = storage.verify("gitrepository/ns/a/1.tar.gz", &wanted).unwrap();
    assert_eq!(verdict, Verdict::Good);
    assert_eq!(storage.artifacts(&key("a")), ["1.tar.gz"]);
}

#[test]
fn renewed_alias_is_another_name_of_the_file() {
    let root = tempfile::tempdir().unwrap();
    let storage = storage(root.path());
    for (file, content) in [("1.tar.gz", b"one"), ("2.tar.gz", b"two")] {
        put(&storage, &key("a"), file, None, content);
    }
    let latest = "gitrepository/ns/a/latest.tar.gz";
    assert_eq!(
        storage.verify(latest, &of(Algorithm::Sha256, b"two")).unwrap(),
        Verdict::Good
    );
    storage.renew_alias(&key("a"), "1.tar.gz").unwrap();
    assert_eq!(
        storage.verify(latest, &of(Algorithm::Sha256, b"one")).unwrap(),
        Verdict::Good
    );
    assert!(storage.renew_alias(&key("missing"), "1.tar.gz").is_err());
}

fn put_with_hashes(storage: &Storage, file: &str, superseded: Option<&str>) -> Result<Stored, Error> {
    let superseded = superseded.map(named);
    let stored = storage.store(&key("a"), file, superseded.as_ref(), |out| {
        Ok::<_, Error>(Packed {
            hashes: b"hashes".to_vec(),
            ..write(out, b"tarball")?
        })
    })?;
    storage.renew_alias(&key("a"), file)?;
    Ok(stored)
}

#[test]
fn hashes_of_directories_are_stored_counted_and_removed_with_their_artifact() {
    let root = tempfile::tempdir().unwrap();
    let retention = Retention {
        ttl: Duration::ZERO,
        records: 1,
    };
    let storage = Storage::open(root.path(), "host", retention).unwrap();
    let quotas = Quotas {
        object: 2 * 13,
        namespace: u64::MAX,
    };
    let storage = storage.with_quotas(quotas);
    put_with_hashes(&storage, "1.tar.gz", None).unwrap();
    let dir = root.path().join("gitrepository/ns/a");
    let both = |file: &str| [file.to_owned(), companion(file), "latest.tar.gz".to_owned()];
    assert_eq!(names(&dir), both("1.tar.gz"));
    put_with_hashes(&storage, "2.tar.gz", Some("1.tar.gz")).unwrap();
    assert_eq!(names(&dir).len(), 5);
    assert_eq!(storage.artifacts(&key("a")), ["1.tar.gz", "2.tar.gz"]);

    let later = SystemTime::now() + Duration::from_secs(1);
    fs::write(dir.join(companion("gone.tar.gz")), "x").unwrap();
    assert_eq!(storage.collect(&key("a"), "2.tar.gz", later).unwrap(), 1);
    assert_eq!(names(&dir), both("2.tar.gz"));

    // They are left out if the quota has no bytes for them, and removed with a superseded artifact.
    put_with_hashes(&storage, "3.tar.gz", Some("2.tar.gz")).unwrap();
    put_with_hashes(&storage, "4.tar.gz", Some("3.tar.gz")).unwrap();
    assert_eq!(storage.artifacts(&key("a")), ["3.tar.gz", "4.tar.gz"]);
    let tight = Quotas {
        object: 2 * 13 + 8,
        namespace: u64::MAX,
    };
    let storage = storage.with_quotas(tight);
    put(&storage, &key("a"), "5.tar.gz", None, b"twelve bytes");
    put_with_hashes(&storage, "6.tar.gz", Some("4.tar.gz")).unwrap();
    assert!(names(&dir).contains(&"6.tar.gz".to_owned()));

    put(&storage, &key("a"), "6.tar.gz", None, b"tarball");
    assert!(
        !names(&dir).contains(&companion("6.tar.gz")),
        "those of other bytes"
    );
}
