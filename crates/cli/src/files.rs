//! Local files that are read as a whole.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Result, anyhow, ensure};

/// Reads a file of at most `most` bytes. Pipes are bounded, too.
pub(crate) fn read_bounded(file: &Path, most: u64) -> Result<Vec<u8>> {
    bounded(File::open(file)?, most)
}

/// Reads everything, at most `most` bytes.
pub(crate) fn bounded(source: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let is_whole = u64::try_from(bytes.len()).is_ok_and(|length| length <= most);
    ensure!(is_whole, "the file is larger than {most} bytes");
    Ok(bytes)
}

/// Reads a text file as [`read_bounded`] does.
pub(crate) fn read_text(file: &Path, most: u64) -> Result<String> {
    let text = String::from_utf8(read_bounded(file, most)?);
    text.map_err(|_| anyhow!("stream did not contain valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "äb").unwrap();
        assert_eq!(read_text(&file, 3).unwrap(), "äb");
        for (most, expected) in [
            (2, "the file is larger than 2 bytes"),
            (1, "the file is larger than 1 bytes"),
        ] {
            assert_eq!(read_text(&file, most).unwrap_err().to_string(), expected);
        }
        std::fs::write(&file, b"\xff").unwrap();
        let error = read_text(&file, 3).unwrap_err().to_string();
        assert_eq!(error, "stream did not contain valid UTF-8");
        assert!(read_text(&dir.path().join("b"), 3).is_err());
    }
}
