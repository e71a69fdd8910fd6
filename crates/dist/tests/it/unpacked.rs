//! Images that are unpacked into folders, and the Containerfiles that take them from there.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use dist::Layout;
use serde_json::Value;

use crate::support::{CERTIFICATES, TestRelease, names, root};

const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// An instruction of a Containerfile, and the rest of its line.
fn instructions(name: &str) -> Vec<(String, String)> {
    let file = fs::read_to_string(root().join(format!("deploy/Containerfile.{name}"))).unwrap();
    let lines = file.lines().filter(|line| !line.starts_with('#'));
    let split = lines.map(|line| line.split_once(' ').unwrap());
    split
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect()
}

/// Returns the settings in the configuration of the image for an architecture.
fn config(layout: &Layout, position: usize) -> Value {
    let index = layout.json(&layout.root).unwrap();
    let image = index["manifests"][position]["digest"].as_str().unwrap();
    let manifest = layout.json(image).unwrap();
    let config = manifest["config"]["digest"].as_str().unwrap();
    layout.json(config).unwrap()["config"].clone()
}

/// Lists the files and folders below a folder with their modes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, u32> {
    let mut found = BTreeMap::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode() & 0o7777;
            found.insert(path.strip_prefix(folder).unwrap().to_owned(), mode);
            if metadata.is_dir() {
                todo.push(path);
            }
        }
    }
    found
}

#[test]
fn folders_have_the_files_of_the_images() {
    let work = TestRelease::new();
    work.build();
    let out = work.path("images");
    let mut expected = Vec::new();
    for name in names() {
        expected.extend(ARCHITECTURES.map(|architecture| out.join(name).join(architecture)));
    }
    expected.sort();
    assert_eq!(dist::unpack(&work.options.out, &out).unwrap(), expected);
    for name in names() {
        for architecture in ARCHITECTURES {
            let folder = out.join(name).join(architecture);
            let program = format!("usr/local/bin/{name}");
            let modes = [
                ("etc", 0o755),
                ("etc/group", 0o644),
                ("etc/passwd", 0o644),
                ("etc/ssl", 0o755),
                ("etc/ssl/certs", 0o755),
                ("etc/ssl/certs/ca-certificates.crt", 0o644),
                ("tmp", 0o1777),
                ("usr", 0o755),
                ("usr/local", 0o755),
                ("usr/local/bin", 0o755),
                (program.as_str(), 0o755),
            ];
            let modes = modes.map(|(path, mode)| (PathBuf::from(path), mode));
            assert_eq!(tree(&folder), modes.into_iter().collect());
            let certificates = fs::read_to_string(folder.join("etc/ssl/certs/ca-certificates.crt"));
            assert_eq!(certificates.unwrap(), CERTIFICATES);
        }
    }
    let error = format!("{:#}", dist::unpack(&work.options.out, &out).unwrap_err());
    assert!(error.contains("the folder exists"), "{error}");
}

#[test]
fn containerfiles_make_the_images_of_the_release_from_nothing() {
    let work = TestRelease::new();
    work.build();
    let out = work.path("images");
    dist::unpack(&work.options.out, &out).unwrap();
    for name in install::available() {
        let file = format!("{name}_{}.oci.tar", env!("CARGO_PKG_VERSION"));
        let layout = Layout::open(&work.options.out.join(file)).unwrap();
        for (position, architecture) in ARCHITECTURES.into_iter().enumerate() {
            let config = config(&layout, position);
            let words = |key: &str| -> Vec<&str> {
                let list = config[key].as_array().unwrap().iter();
                list.map(|word| word.as_str().unwrap()).collect()
            };
            let expected = [
                ("FROM", "scratch".to_owned()),
                ("ARG", "TARGETARCH".to_owned()),
                ("COPY", "${TARGETARCH}/ /".to_owned()),
                ("ENV", words("Env").join(" ")),
                ("USER", config["User"].as_str().unwrap().to_owned()),
                (
                    "ENTRYPOINT",
                    format!("[\"{}\"]", words("Entrypoint").join("\", \"")),
                ),
            ];
            let expected = expected.map(|(name, rest)| (name.to_owned(), rest));
            assert_eq!(instructions(name), expected, "{name}");
            // The folder that COPY names in the context of the build.
            assert!(out.join(name).join(architecture).join("etc/passwd").is_file());
        }
    }
}

#[test]
fn folders_without_images_are_refused() {
    let work = TestRelease::new();
    let error = |dir: &Path| format!("{:#}", dist::unpack(dir, &work.path("images")).unwrap_err());
    let message = error(&work.path("arm"));
    assert!(message.contains("has no files *.oci.tar"), "{message}");
    let message = error(&work.path("nothing"));
    assert!(message.contains("cannot list"), "{message}");
    let files = work.build();
    let only = work.path("only");
    fs::create_dir(&only).unwrap();
    let artifact = files.keys().find(|name| name.starts_with("manifests_")).unwrap();
    fs::write(only.join(artifact), &files[artifact]).unwrap();
    let message = error(&only);
    assert!(message.contains("has no images"), "{message}");
    fs::write(only.join("weir_1.oci.tar"), "damaged").unwrap();
    let message = error(&only);
    assert!(message.contains("weir_1.oci.tar"), "{message}");
}
