use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use super::*;
use crate::{
    Algorithm, Error, Key,
    digest::of,
    pack::Packed,
    storage::{Limited, Retention},
};

fn opened(root: &Path) -> Storage {
    Storage::open(root, "host", Retention::default()).unwrap()
}

fn claimed(root: &Path) -> Storage {
    let storage = opened(root);
    storage.claim();
    storage
}

fn store(storage: &Storage, object: &str, meanwhile: impl FnOnce()) -> Result<(), Error> {
    let key = Key::new("gitrepository", "ns", object).unwrap();
    let write = |out: &mut io::BufWriter<Limited<'_>>| {
        out.write_all(b"content").unwrap();
        meanwhile();
        Ok(Packed {
            digest: of(Algorithm::Sha256, b"content"),
            sha256: String::new(),
            sha1: String::new(),
            size: 7,
            hashes: b"hashes".to_vec(),
        })
    };
    storage.store(&key, "1.tar.gz", None, write).map(drop)
}

fn lay(storage: &Storage, root: &Path, object: &str) -> PathBuf {
    let path = root
        .join("gitrepository/ns")
        .join(object)
        .join(storage.writer.temp_name());
    fs::write(&path, "half").unwrap();
    path
}

fn locks(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root).unwrap().map(Result::unwrap);
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let mut names: Vec<_> = files
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn process_that_starts_takes_no_file_that_another_one_is_writing() {
    let root = tempfile::tempdir().unwrap();
    let first = claimed(root.path());
    let stored = store(&first, "a", || {
        let second = claimed(root.path());
        store(&second, "b", || {}).unwrap();
    });
    stored.unwrap();
    for file in ["a/1.tar.gz", "a/1.tar.gz.directories", "b/1.tar.gz"] {
        assert!(root.path().join("gitrepository/ns").join(file).exists(), "{file}");
    }
}

#[test]
fn what_an_interrupted_writer_left_goes_at_the_next_start_of_any() {
    let root = tempfile::tempdir().unwrap();
    let (running, ended) = (claimed(root.path()), claimed(root.path()));
    store(&running, "a", || {}).unwrap();
    let kept = lay(&running, root.path(), "a");
    let left = lay(&ended, root.path(), "a");
    let of_older_versions = kept.with_file_name(".2.tar.gz.77.0.tmp");
    fs::write(&of_older_versions, "half").unwrap();
    assert_eq!(locks(root.path()).len(), 3);
    drop(ended);

    let started = claimed(root.path());
    assert!(kept.exists() && !left.exists() && !of_older_versions.exists());
    let own = |storage: &Storage| lock_name(&storage.writer.id);
    let mut expected = [".lock".to_owned(), own(&running), own(&started)];
    expected.sort();
    assert_eq!(locks(root.path()), expected);
    let artifacts = running.artifacts(&Key::new("gitrepository", "ns", "a").unwrap());
    assert_eq!(artifacts, ["1.tar.gz"]);
}

#[test]
fn process_that_stores_nothing_takes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let writer = claimed(root.path());
    store(&writer, "a", || {}).unwrap();
    let left = lay(&writer, root.path(), "a");
    drop(writer);
    let before = locks(root.path());
    opened(root.path());
    assert!(left.exists());
    assert_eq!(locks(root.path()), before);
}

#[test]
fn readers_see_a_writer_for_as_long_as_it_runs() {
    let root = tempfile::tempdir().unwrap();
    let reader = opened(root.path());
    assert!(!reader.has_writer());
    let writer = claimed(root.path());
    assert!(reader.has_writer());
    assert!(!writer.has_writer(), "it is the only one");
    drop(writer);
    assert!(!reader.has_writer());
}

#[test]
fn readers_forget_files_that_are_gone() {
    let root = tempfile::tempdir().unwrap();
    let (writer, reader) = (claimed(root.path()), opened(root.path()));
    store(&writer, "a", || {}).unwrap();
    let dir = root.path().join("gitrepository/ns/a");
    let read = |storage: &Storage, number: usize| {
        let path = format!("gitrepository/ns/a/{number}.tar.gz");
        fs::hard_link(dir.join("1.tar.gz"), dir.join(format!("{number}.tar.gz"))).unwrap();
        assert!(storage.open_file(&path).unwrap().is_some());
        fs::remove_file(dir.join(format!("{number}.tar.gz"))).unwrap();
    };
    let most = crate::storage::verify::MAX_KNOWN;
    for number in 2..most + 10 {
        read(&reader, number);
        read(&writer, number);
    }
    let known = |storage: &Storage| storage.known.lock().len();
    assert!(known(&reader) <= most, "{}", known(&reader));
    assert!(known(&writer) > most, "it is told what is gone");
}

#[test]
fn temporary_files_of_processes_have_different_names() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (opened(root.path()), opened(root.path()));
    let names = [&first, &second].map(|storage| storage.writer.temp_name());
    assert_ne!(names[0], names[1]);
    for (storage, name) in [&first, &second].into_iter().zip(&names) {
        assert_eq!(writer_of(name), Some(storage.writer.id.as_str()));
    }
    for other in ["1.tar.gz", ".latest.tar.gz", "a.tmp", ".x.lock"] {
        assert_eq!(writer_of(other), None, "{other}");
    }
}

#[test]
fn without_locks_what_is_old_goes() {
    let root = tempfile::tempdir().unwrap();
    // It can't be opened to be locked.
    fs::create_dir(root.path().join(START)).unwrap();
    let storage = claimed(root.path());
    store(&storage, "a", || {}).unwrap();
    let (new, old) = (lay(&storage, root.path(), "a"), lay(&storage, root.path(), "a"));
    let yesterday = SystemTime::now() - UNTOUCHED - Duration::from_secs(60);
    let file = fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(yesterday).unwrap();
    claimed(root.path());
    assert!(new.exists() && !old.exists());
    assert_eq!(locks(root.path()), [""; 0], "nothing that others would wait for");
}
