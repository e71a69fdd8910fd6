//! Compressed bytes, for caches whose entries are seldom read.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};

/// Bytes in the format of deflate. JSON of a Kubernetes object takes about a sixth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed(Box<[u8]>);

impl Compressed {
    /// Compresses bytes; `None` if that fails, which does not happen.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).ok()?;
        encoder.finish().ok().map(|bytes| Self(bytes.into_boxed_slice()))
    }

    /// Returns the bytes before the compression.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(self.0.len() * 6);
        DeflateDecoder::new(&*self.0).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bytes_are_read_back() {
        for bytes in [&b""[..], b"a", &[b'x'; 100_000]] {
            let compressed = Compressed::new(bytes).unwrap();
            assert_eq!(compressed.bytes().unwrap(), bytes);
            assert!(compressed.size() <= bytes.len() + 8);
        }
    }
}
