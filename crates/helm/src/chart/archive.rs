//! Chart archives: gzipped tar files with one directory, which is the chart.

use std::{
    cell::{Cell, RefCell},
    io::{self, Read},
};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use tar::{EntryType, PaxExtensions};
use tree::{Budget, Exceeded};

use super::File;
use crate::Error;

/// In bytes, unpacked, with the archives in it.
pub(super) const MAX_CHART: u64 = 100 << 20;
/// In bytes.
pub(super) const MAX_FILE: u64 = 5 << 20;
pub(super) const MAX_FILES: usize = 50_000;
/// Maximum size of an extension header in bytes, which is a long path and attributes.
const MAX_HEADER: u64 = 64 << 10;

/// The size and the number of the unpacked files of a chart and of all archives in it.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    bytes: Cell<u64>,
    files: Cell<usize>,
}

impl Unpacked {
    /// Counts a file with its path before it is held.
    pub(super) fn add(&self, path: &str, size: u64, max: u64) -> Result<(), Error> {
        let bytes = self
            .bytes
            .get()
            .saturating_add(size)
            .saturating_add(path.len() as u64);
        self.bytes.set(bytes);
        self.files.set(self.files.get().saturating_add(1));
        if self.files.get() > MAX_FILES {
            return Err(Error::Chart(format!("the chart has more than {MAX_FILES} files")));
        }
        if bytes > max {
            return Err(too_large(max));
        }
        Ok(())
    }
}

/// Reads the files of an archive of at most `max_file` bytes each; errors name the archive.
pub(super) fn named_files(
    data: &[u8],
    name: &str,
    max_file: u64,
    budget: &Budget,
) -> Result<Vec<File>, Error> {
    if !data.starts_with(b"\x1F\x8B\x08") {
        let what = if name.ends_with(".yaml") || name.ends_with(".yml") {
            "seems to be a YAML file, but expected a gzipped archive"
        } else {
            "does not appear to be a gzipped archive"
        };
        return Err(Error::Chart(format!("file '{name}' {what}")));
    }
    files(data, MAX_CHART, max_file, &Unpacked::default(), budget)
}

/// Unpacked bytes, which are counted as they are read.
struct Counted<'a, R> {
    inner: R,
    budget: &'a Budget,
    exceeded: &'a RefCell<Option<Exceeded>>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.budget.step(count as u64 / 64 + 1).map_err(|exceeded| {
            *self.exceeded.borrow_mut() = Some(exceeded);
            io::Error::other("the budget is used up")
        })?;
        Ok(count)
    }
}

/// Reads the files of an archive of at most `max` bytes in total and `max_file` each.
pub(super) fn files(
    data: &[u8],
    max: u64,
    max_file: u64,
    unpacked: &Unpacked,
    budget: &Budget,
) -> Result<Vec<File>, Error> {
    let exceeded = RefCell::new(None);
    let failed = |error: io::Error| match exceeded.take() {
        Some(exceeded) => Error::Exceeded(exceeded),
        None => Error::Chart(format!("the archive can't be read: {error}")),
    };
    // Headers and padding come on top of the files.
    let inner = MultiGzDecoder::new(data).take(max.saturating_mul(2));
    let mut archive = tar::Archive::new(Counted {
        inner,
        budget,
        exceeded: &exceeded,
    });
    let mut files = Vec::new();
    let mut extensions = Extensions::default();
    // Raw entries have their extensions before them, of any size.
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let mut entry = entry.map_err(failed)?;
        budget.step(1)?;
        let kind = entry.header().entry_type();
        if extensions.read(&mut entry, kind).map_err(failed)? {
            continue;
        }
        let path = extensions.path_of(&entry).map_err(failed)?;
        if kind.is_dir() {
            continue;
        }
        let path = String::from_utf8(path)
            .map_err(|_| Error::Chart("chart contains illegally named files".to_owned()))?;
        if path.ends_with('/') {
            continue;
        }
        let name = inner_name(&path)?;
        let size = if kind.is_file() { entry.size() } else { 0 };
        unpacked.add(&path, size, max)?;
        if size > max_file.min(budget.limits().file_bytes) {
            return Err(Error::Chart(format!(
                "decompressed chart file {path:?} is larger than the maximum file size {max_file}"
            )));
        }
        budget.memory(size)?;
        let mut data = Vec::new();
        if kind.is_file() {
            entry.by_ref().take(size).read_to_end(&mut data).map_err(failed)?;
        }
        files.push(File {
            name,
            data: without_mark(Bytes::from(data)),
        });
    }
    // The files beyond the limit would be missing silently.
    if archive.into_inner().inner.limit() == 0 {
        return Err(too_large(max));
    }
    if files.is_empty() {
        return Err(Error::Chart("no files in chart archive".to_owned()));
    }
    Ok(files)
}

/// The extension headers before an entry.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    size: Option<Vec<u8>>,
}

impl Extensions {
    /// Reads an extension header. Returns false for any other entry.
    fn read<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>, kind: EntryType) -> io::Result<bool> {
        if kind.is_gnu_sparse() {
            return Err(io::Error::other("sparse files are not supported"));
        }
        let is_known = kind.is_gnu_longname() || kind.is_gnu_longlink() || kind.is_pax_local_extensions();
        if !is_known {
            return Ok(kind.is_pax_global_extensions());
        }
        if entry.size() > MAX_HEADER {
            let message = format!("a header is larger than {MAX_HEADER} bytes");
            return Err(io::Error::other(message));
        }
        let mut data = Vec::new();
        entry.take(MAX_HEADER).read_to_end(&mut data)?;
        if kind.is_gnu_longname() {
            while data.last() == Some(&0) {
                data.pop();
            }
            self.path = Some(data);
        } else if kind.is_pax_local_extensions() {
            for record in PaxExtensions::new(&data) {
                let record = record?;
                match record.key_bytes() {
                    b"path" => self.path = Some(record.value_bytes().to_vec()),
                    b"size" => self.size = Some(record.value_bytes().to_vec()),
                    _ => {}
                }
            }
        }
        Ok(true)
    }

    /// Returns the path of the entry after the headers, which must not have another size.
    fn path_of<R: Read>(&mut self, entry: &tar::Entry<'_, R>) -> io::Result<Vec<u8>> {
        if self
            .size
            .take()
            .is_some_and(|size| size != entry.size().to_string().as_bytes())
        {
            return Err(io::Error::other("a file has two sizes"));
        }
        let path = self.path.take();
        Ok(path.unwrap_or_else(|| entry.path_bytes().into_owned()))
    }
}

fn too_large(max: u64) -> Error {
    let message = format!("decompressed chart is larger than the maximum file size {max}");
    Error::Chart(message)
}

/// Returns the path of an entry below the directory of the chart. A backslash makes the path one of Windows, whose first
/// part ends at a backslash, too.
fn inner_name(path: &str) -> Result<String, Error> {
    let wrong = |message: &str| Error::Chart(format!("{message}: {path:?}"));
    let delimiter = if path.contains('\\') { '\\' } else { '/' };
    let (first, rest) = path.split_once(delimiter).unwrap_or((path, ""));
    let rest = rest.replace('\\', "/");
    if rest.starts_with('/') {
        return Err(wrong("chart illegally contains absolute paths"));
    }
    let mut parts = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let above = parts.pop();
                above.ok_or_else(|| wrong("chart illegally references parent directory"))?;
            }
            part => parts.push(part),
        }
    }
    let drive = |part: &&str| matches!(part.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    if parts.len() > 1 && parts.first().is_some_and(drive) {
        return Err(wrong("chart contains illegally named files"));
    }
    if parts.is_empty() {
        return Err(Error::Chart(format!(
            "chart illegally contains content outside the base directory: {path:?}"
        )));
    }
    if first == "Chart.yaml" {
        return Err(wrong("chart yaml not in base directory"));
    }
    Ok(parts.join("/"))
}

pub(super) fn without_mark(data: Bytes) -> Bytes {
    if data.starts_with(b"\xEF\xBB\xBF") {
        data.slice(3..)
    } else {
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_separate_the_parts_of_a_path() {
        for (path, expected) in [
            ("c/f/x", Ok("f/x")),
            ("c\\f\\x", Ok("f/x")),
            ("c\\f/x", Ok("f/x")),
            ("c/f\\x", Ok("x")),
            ("c\\..\\x", Err("illegally references parent directory")),
            ("c\\\\x", Err("illegally contains absolute paths")),
            ("c\\C:\\x", Err("illegally named files")),
            ("x\\", Err("outside the base directory: \"x\\\\\"")),
        ] {
            match (inner_name(path), expected) {
                (Ok(name), Ok(expected)) => assert_eq!(name, expected, "{path}"),
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{path}: {error}");
                }
                (found, _) => panic!("{path}: {found:?}"),
            }
        }
    }
}
