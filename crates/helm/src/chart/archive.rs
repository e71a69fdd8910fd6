//! Chart archives: gzipped tar files with one directory, which is the chart.

use std::io::Read as _;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use tree::Budget;

use super::File;
use crate::Error;

/// In bytes, unpacked.
pub(super) const MAX_CHART: u64 = 100 << 20;
/// In bytes.
pub(super) const MAX_FILE: u64 = 5 << 20;
pub(super) const MAX_FILES: usize = 50_000;

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
    files(data, MAX_CHART, max_file, budget)
}

/// Reads the files of an archive of at most `max` bytes in total and `max_file` each.
pub(super) fn files(data: &[u8], max: u64, max_file: u64, budget: &Budget) -> Result<Vec<File>, Error> {
    let failed = |error: std::io::Error| Error::Chart(format!("the archive can't be read: {error}"));
    // Headers and padding come on top of the files.
    let unpacked = MultiGzDecoder::new(data).take(max.saturating_mul(2));
    let mut archive = tar::Archive::new(unpacked);
    let mut files = Vec::new();
    let mut total = 0_u64;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        budget.step(1)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let path = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| Error::Chart("chart contains illegally named files".to_owned()))?;
        if path.ends_with('/') {
            continue;
        }
        let name = inner_name(&path)?;
        let size = if kind.is_file() { entry.size() } else { 0 };
        total = total.saturating_add(size);
        if files.len() >= MAX_FILES {
            return Err(Error::Chart(format!("the chart has more than {MAX_FILES} files")));
        }
        if total > max {
            return Err(too_large(max));
        }
        if size > max_file.min(budget.limits().file_bytes) {
            return Err(Error::Chart(format!(
                "decompressed chart file {path:?} is larger than the maximum file size {max_file}"
            )));
        }
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
    if archive.into_inner().limit() == 0 {
        return Err(too_large(max));
    }
    if files.is_empty() {
        return Err(Error::Chart("no files in chart archive".to_owned()));
    }
    Ok(files)
}

fn too_large(max: u64) -> Error {
    let message = format!("decompressed chart is larger than the maximum file size {max}");
    Error::Chart(message)
}

fn inner_name(path: &str) -> Result<String, Error> {
    let wrong = |message: &str| Error::Chart(format!("{message}: {path:?}"));
    let path = if path.contains('\\') {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    };
    let (first, rest) = path.split_once('/').unwrap_or((&path, ""));
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
