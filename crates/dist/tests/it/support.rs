//! Releases of small programs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use dist::{Options, Release};
use rcgen::KeyPair;
use tempfile::TempDir;

pub(crate) const X86_64: u16 = 62;
pub(crate) const AARCH64: u16 = 183;
pub(crate) const CERTIFICATES: &str = "certificates of authorities\n";

/// Returns true for a program that [`program`] made, with a list of crates.
pub(crate) fn is_program(content: &[u8], machine: u16, name: &str) -> bool {
    let list = auditable_info::audit_info_from_slice(content, 1 << 20).unwrap();
    let main = list.packages.iter().find(|package| package.root).unwrap();
    let mut expected = program(machine, name);
    // The table of sections, which the list adds.
    for field in [40..48, 58..64] {
        expected[field.clone()].copy_from_slice(&content[field]);
    }
    let package = if name == "weir" { "cli" } else { name };
    main.name == package && content.starts_with(&expected)
}

/// Returns the header of a static program, and its name after it.
pub(crate) fn program(machine: u16, name: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes
}

pub(crate) fn names() -> Vec<&'static str> {
    let mut names = install::available();
    names.push("weir");
    names
}

pub(crate) fn key_pair() -> KeyPair {
    KeyPair::generate().unwrap()
}

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_owned()
}

/// Folders for the inputs and files of a release.
pub(crate) struct TestRelease {
    dir: TempDir,
    pub(crate) options: Options,
}

impl TestRelease {
    /// Prepares a release of small programs for both architectures, whose completions come from the real `weir`.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut programs = Vec::new();
        for (folder, machine) in [("arm", AARCH64), ("intel", X86_64)] {
            let folder = dir.path().join(folder);
            fs::create_dir(&folder).unwrap();
            for name in names() {
                fs::write(folder.join(name), program(machine, name)).unwrap();
            }
            programs.push(folder);
        }
        let certificates = dir.path().join("ca.pem");
        fs::write(&certificates, CERTIFICATES).unwrap();
        let options = Options {
            root: root(),
            programs,
            weir: Some(testkit::controller::find_program("weir").unwrap()),
            allow_dynamic: false,
            certificates,
            out: dir.path().join("out"),
            release: Release {
                registry: "registry.example.com/weir".to_owned(),
                source: Some("https://git.example.com/weir".to_owned()),
                revision: Some("5c0ffee".to_owned()),
                compression: 6,
                time: 1_700_000_000,
            },
        };
        Self { dir, options }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn build(&self) -> BTreeMap<String, Vec<u8>> {
        let names = dist::build(&self.options).unwrap();
        let files: BTreeMap<String, Vec<u8>> = fs::read_dir(&self.options.out)
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                (name, fs::read(path).unwrap())
            })
            .collect();
        assert_eq!(files.keys().cloned().collect::<Vec<_>>(), names);
        files
    }
}

/// Unpacks a compressed tarball: contents by path, and `None` for folders.
pub(crate) fn unpack(packed: &[u8]) -> BTreeMap<String, Option<Vec<u8>>> {
    entries(flate2::read::GzDecoder::new(packed))
}

pub(crate) fn entries(tarball: impl std::io::Read) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut archive = tar::Archive::new(tarball);
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        let is_file = entry.header().entry_type().is_file();
        assert!(files.insert(path, is_file.then_some(content)).is_none());
    }
    files
}
