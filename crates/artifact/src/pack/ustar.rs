//! Tar headers exactly as Go's archive/tar writes them for normalised entries: USTAR if it suffices, else PAX.

const BLOCK: usize = 512;
const NAME: usize = 100;
const PREFIX: usize = 155;

/// End of a tarball: two blocks of zeros.
pub(super) const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Dir,
    File { executable: bool },
}

impl EntryKind {
    const fn mode(self) -> u64 {
        match self {
            Self::Dir => 0o750,
            Self::File { executable: true } => 0o700,
            Self::File { executable: false } => 0o600,
        }
    }

    const fn flag(self) -> u8 {
        match self {
            Self::Dir => b'5',
            Self::File { .. } => b'0',
        }
    }
}

/// Returns the header of one entry, with a PAX header before it if its name needs one.
pub(super) fn header(name: &str, kind: EntryKind, size: u64) -> Vec<u8> {
    let (mode, flag) = (kind.mode(), kind.flag());
    if name.is_ascii() && name.len() <= NAME {
        return Block::new(name, mode, size, flag).with_device().finish();
    }
    if let Some((prefix, name)) = split(name) {
        return Block::new(name, mode, size, flag)
            .with_device()
            .with_prefix(prefix)
            .finish();
    }
    let record = record("path", name);
    let mut out = Block::new(&pax_name(name), 0, record.len() as u64, b'x').finish();
    out.extend_from_slice(record.as_bytes());
    out.extend_from_slice(padding(record.len() as u64));
    out.extend(Block::new(&ascii(name), mode, size, flag).with_device().finish());
    out
}

pub(super) fn padding(size: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let used = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    if used == 0 {
        &[]
    } else {
        ZEROS.get(used..).unwrap_or_default()
    }
}

/// Splits a long name at a slash, so that both parts fit their fields.
fn split(name: &str) -> Option<(&str, &str)> {
    if !name.is_ascii() {
        return None;
    }
    let head = name.get(..name.len().min(PREFIX + 1))?;
    let (prefix, _) = head.rsplit_once('/')?;
    let rest = name.get(prefix.len() + 1..)?;
    let fits = !prefix.is_empty() && !rest.is_empty() && rest.len() <= NAME && prefix.len() <= PREFIX;
    fits.then_some((prefix, rest))
}

fn pax_name(name: &str) -> String {
    let full = match name.rsplit_once('/') {
        Some((dir, file)) => format!("{dir}/PaxHeaders.0/{file}"),
        None => format!("PaxHeaders.0/{name}"),
    };
    let mut name = ascii(&full);
    name.truncate(NAME);
    name.trim_end_matches('/').to_owned()
}

/// A PAX record begins with its own length.
fn record(key: &str, value: &str) -> String {
    let rest = key.len() + value.len() + " =\n".len();
    let mut len = rest + rest.to_string().len();
    if rest + len.to_string().len() != len {
        len = rest + len.to_string().len();
    }
    format!("{len} {key}={value}\n")
}

fn ascii(text: &str) -> String {
    text.chars().filter(char::is_ascii).collect()
}

struct Block([u8; BLOCK]);

impl Block {
    fn new(name: &str, mode: u64, size: u64, flag: u8) -> Self {
        let mut block = Self([0; BLOCK]);
        block.text(0, NAME, name);
        block.octal(100, 8, mode);
        block.octal(108, 8, 0);
        block.octal(116, 8, 0);
        block.octal(124, 12, size);
        block.octal(136, 12, 0);
        block.bytes(156, &[flag]);
        block.bytes(257, b"ustar\x0000");
        block
    }

    fn with_device(mut self) -> Self {
        self.octal(329, 8, 0);
        self.octal(337, 8, 0);
        self
    }

    fn with_prefix(mut self, prefix: &str) -> Self {
        self.text(345, PREFIX, prefix);
        self
    }

    /// Returns the block with its checksum, computed with blanks in its field.
    fn finish(mut self) -> Vec<u8> {
        self.bytes(148, b"        ");
        let sum: u64 = self.0.iter().map(|&byte| u64::from(byte)).sum();
        self.octal(148, 7, sum);
        self.0.to_vec()
    }

    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// Writes a string, truncated to the field; a cut must not end with a slash, which would make it a directory.
    fn text(&mut self, at: usize, len: usize, text: &str) {
        let cut = text.as_bytes().get(..len);
        let bytes = match cut {
            Some(cut) if text.len() > len && cut.ends_with(b"/") => cut.trim_ascii_end_slashes(),
            Some(cut) => cut,
            None => text.as_bytes(),
        };
        self.bytes(at, bytes);
    }

    /// Zero-padded octal digits that end with NUL.
    fn octal(&mut self, at: usize, len: usize, value: u64) {
        let digits = format!("{value:0width$o}\0", width = len - 1);
        self.bytes(at, digits.as_bytes());
    }
}

trait TrimSlashes {
    fn trim_ascii_end_slashes(&self) -> &Self;
}

impl TrimSlashes for [u8] {
    fn trim_ascii_end_slashes(&self) -> &Self {
        let end = self
            .iter()
            .rposition(|&byte| byte != b'/')
            .map_or(0, |last| last + 1);
        self.get(..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        assert_eq!(record("path", "ü"), "11 path=ü\n");
        for len in 80..110 {
            let record = record("path", &"x".repeat(len));
            let (said, _) = record.split_once(' ').unwrap();
            assert_eq!(said.parse::<usize>().unwrap(), record.len());
        }
    }

    #[test]
    fn every_name_can_be_read_back() {
        let long = |n: usize| "0123456789/".repeat(n);
        for name in [
            "a".to_owned(),
            "x".repeat(100),
            "x".repeat(101),
            "x".repeat(300),
            format!("{}file", long(12)),
            format!("{}file", long(40)),
            format!("{}{}", long(9), "y".repeat(120)),
            "ünï/cödé.yaml".to_owned(),
            format!("{}é", long(9)),
        ] {
            let mut tarball = header(&name, EntryKind::File { executable: true }, 3);
            tarball.extend_from_slice(b"abc");
            tarball.extend_from_slice(padding(3));
            tarball.extend_from_slice(&END);
            assert_eq!(tarball.len() % BLOCK, 0);
            let mut archive = tar::Archive::new(tarball.as_slice());
            let entry = archive.entries().unwrap().next().unwrap().unwrap();
            assert_eq!(entry.path().unwrap().to_str().unwrap(), name);
            assert_eq!((entry.size(), entry.header().mode().unwrap()), (3, 0o700));
        }
    }
}
