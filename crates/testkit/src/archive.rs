//! Archives for tests, including malicious ones.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};

#[must_use]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    // A vector takes all that is written.
    let _ = packer.write_all(bytes);
    packer.finish().unwrap_or_default()
}

/// Packs files into a tar.gz under exactly these names, even absolute ones and those with `..`; at most 100 bytes each.
#[must_use]
pub fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = entries(files);
    archive.resize(archive.len() + 1024, 0);
    gzip(&archive)
}

/// Packs files, and copies of a block of entries after them, into a tar.gz; takes memory for one of the blocks.
#[must_use]
pub fn tar_gz_of_many(files: &[(&str, &[u8])], block: &[(&str, &[u8])], times: usize) -> Vec<u8> {
    let repeated = gzip(&entries(block)).repeat(times);
    [gzip(&entries(files)), repeated, gzip(&[0; 1024])].concat()
}

/// Returns the entries of an archive, without its end.
fn entries(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, data) in files {
        let mut header = tar::Header::new_gnu();
        // Set by hand: the library refuses names that lead out of the folder.
        let place = header.as_old_mut().name.iter_mut();
        place.zip(name.bytes()).for_each(|(to, byte)| *to = byte);
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(data);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive
}
