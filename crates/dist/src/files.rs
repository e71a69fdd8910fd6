//! Archives.

use std::{collections::BTreeMap, io::Write as _};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Level of compression of everything that isn't large.
const DEFAULT_COMPRESSION: u32 = 6;
/// Mode of folders, and of files that can be run.
const OPEN: u32 = 0o755;
const READABLE: u32 = 0o644;

/// The files of an archive by path. Folders above them are entries of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    /// A folder with a mode.
    Folder(u32),
    File(u32, Vec<u8>),
}

impl Files {
    /// Adds a file that everybody may read.
    pub fn add(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, Entry::File(READABLE, content.into()));
    }

    /// Adds a file that everybody may run.
    pub fn add_program(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        self.insert(path, Entry::File(OPEN, content.into()));
    }

    pub fn add_folder(&mut self, path: &str, mode: u32) {
        self.insert(path, Entry::Folder(mode));
    }

    fn insert(&mut self, path: &str, entry: Entry) {
        for (end, _) in path.match_indices('/') {
            let folder = path.get(..end).unwrap_or_default();
            self.entries
                .entry(folder.to_owned())
                .or_insert(Entry::Folder(OPEN));
        }
        self.entries.insert(path.to_owned(), entry);
    }

    /// Returns a tarball. Its entries belong to root, and are as old as `time` in seconds since 1970.
    ///
    /// # Errors
    /// If a path is too long for the format.
    pub fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut builder = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_ustar();
            let (kind, mode, content) = match entry {
                Entry::Folder(mode) => (EntryType::Directory, mode, [].as_slice()),
                Entry::File(mode, content) => (EntryType::Regular, mode, content.as_slice()),
            };
            let slash = if kind == EntryType::Directory { "/" } else { "" };
            header
                .set_path(format!("{path}{slash}"))
                .with_context(|| format!("{path:?} can't be in an archive"))?;
            header.set_entry_type(kind);
            header.set_mode(*mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(time);
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content)?;
        }
        Ok(builder.into_inner()?)
    }

    /// Returns the tarball compressed.
    ///
    /// # Errors
    /// If a path is too long for the format.
    pub fn tar_gz(&self, time: u64) -> Result<Vec<u8>> {
        gzip(&self.tar(time)?, DEFAULT_COMPRESSION)
    }
}

/// Compresses bytes on a level from 0 to 9, without the time and the system that gzip notes.
pub(crate) fn gzip(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let builder = GzBuilder::new().mtime(0).operating_system(255);
    let mut encoder = builder.write(Vec::new(), Compression::new(level));
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn entries_are_sorted_and_fixed() {
        let mut files = Files::default();
        files.add_program("b/c/run", "1");
        files.add("a.txt", "22");
        files.add_folder("tmp", 0o1777);
        let packed = files.tar_gz(7).unwrap();
        let mut again = Files::default();
        again.add_folder("tmp", 0o1777);
        again.add("a.txt", "22");
        again.add_program("b/c/run", "1");
        assert_eq!(again.tar_gz(7).unwrap(), packed);
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            let times = (
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mtime().unwrap(),
            );
            assert_eq!(times, (0, 0, 7));
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            let path = entry.path().unwrap().display().to_string();
            found.push(format!("{path} {:o} {content}", header.mode().unwrap()));
        }
        let expected = [
            "a.txt 644 22",
            "b/ 755 ",
            "b/c/ 755 ",
            "b/c/run 755 1",
            "tmp/ 1777 ",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn too_long_paths_are_errors() {
        let mut files = Files::default();
        files.add(&"x".repeat(300), "");
        assert!(
            files
                .tar(0)
                .unwrap_err()
                .to_string()
                .contains("can't be in an archive")
        );
    }
}
