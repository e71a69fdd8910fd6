//! Compressed bytes, for caches whose entries are seldom read.

use std::io::Read as _;

use flate2::{Compress, Compression, FlushCompress, Status, read::DeflateDecoder};
use parking_lot::Mutex;

/// The encoder of the last compression, which the next one uses again: its state has hundreds of kilobytes, and if small results are allocated
/// between such blocks, a simple allocator takes new memory for each.
static SPARE: Mutex<Option<Encoder>> = Mutex::new(None);

struct Encoder {
    state: Compress,
    output: Vec<u8>,
}

impl Encoder {
    fn new() -> Self {
        Self {
            state: Compress::new(Compression::fast(), false),
            output: Vec::with_capacity(16 << 10),
        }
    }

    fn compress(&mut self, mut bytes: &[u8]) -> Option<Box<[u8]>> {
        self.state.reset();
        self.output.clear();
        loop {
            let before = self.state.total_in();
            let status = self
                .state
                .compress_vec(bytes, &mut self.output, FlushCompress::Finish);
            let read = usize::try_from(self.state.total_in() - before).ok()?;
            bytes = bytes.get(read..)?;
            match status.ok()? {
                Status::StreamEnd => return Some(Box::from(self.output.as_slice())),
                Status::Ok | Status::BufError => self.output.reserve(self.output.len().max(1024)),
            }
        }
    }
}

/// Bytes in the format of deflate. JSON of a Kubernetes object takes about a sixth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compressed(Box<[u8]>);

impl Compressed {
    /// Compresses bytes; `None` if that fails, which does not happen.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let spare = SPARE.lock().take();
        let mut encoder = spare.unwrap_or_else(Encoder::new);
        let compressed = encoder.compress(bytes);
        *SPARE.lock() = Some(encoder);
        compressed.map(Self)
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
        let random: Vec<u8> = (0..100_000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for bytes in [&b""[..], b"a", &[b'x'; 100_000], &random] {
            let compressed = Compressed::new(bytes).unwrap();
            assert_eq!(compressed.bytes().unwrap(), bytes);
            assert!(compressed.size() <= bytes.len() + 64);
        }
    }
}
