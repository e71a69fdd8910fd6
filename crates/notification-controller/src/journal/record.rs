//! The bytes of a record: length, checksum, kind, ID, payload. Pure.

use sha2::{Digest as _, Sha256};

/// Maximum length of a record, in bytes.
const LONGEST: usize = 16 * 1024 * 1024;
const SUM: usize = 8;
const HEAD: usize = 4 + SUM;
const ADD: u8 = b'A';
const DONE: u8 = b'D';
const PART: u8 = b'P';

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Add(u64, &'a [u8]),
    Done(u64),
    /// The end of one delivery of an event.
    Part(u64, u64),
}

/// A record with its offset in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) record: Record<'a>,
}

pub(super) fn encode(record: &Record<'_>, to: &mut Vec<u8>) {
    let bytes;
    let (kind, id, payload) = match record {
        Record::Add(id, payload) => (ADD, id, *payload),
        Record::Done(id) => (DONE, id, &[][..]),
        Record::Part(id, part) => {
            bytes = part.to_le_bytes();
            (PART, id, &bytes[..])
        }
    };
    let mut body = Vec::with_capacity(9 + payload.len());
    body.push(kind);
    body.extend_from_slice(&id.to_le_bytes());
    body.extend_from_slice(payload);
    to.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend(Sha256::digest(&body).into_iter().take(SUM));
    to.extend_from_slice(&body);
}

pub(super) fn length(payload: &[u8]) -> u64 {
    (HEAD + 9 + payload.len()) as u64
}

/// Returns the records up to the first one that is incomplete or damaged: a write that the end of the process interrupted.
pub(super) fn decode(bytes: &[u8]) -> impl Iterator<Item = Found<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (record, after) = first(rest)?;
        let at = bytes.len() - rest.len();
        let length = rest.len() - after.len();
        rest = after;
        Some(Found { at, length, record })
    })
}

fn first(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (length, sum) = head.split_at_checked(4)?;
    let length = usize::try_from(u32::from_le_bytes(length.try_into().ok()?)).ok()?;
    if length > LONGEST {
        return None;
    }
    let (body, after) = rest.split_at_checked(length)?;
    if Sha256::digest(body).get(..SUM)? != sum {
        return None;
    }
    let (kind, body) = body.split_first()?;
    let (id, payload) = body.split_at_checked(8)?;
    let id = u64::from_le_bytes(id.try_into().ok()?);
    match *kind {
        ADD => Some((Record::Add(id, payload), after)),
        DONE => Some((Record::Done(id), after)),
        PART => Some((
            Record::Part(id, u64::from_le_bytes(payload.try_into().ok()?)),
            after,
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use testkit::fuzz;

    use super::*;

    fn bytes(records: &[Record<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            encode(record, &mut bytes);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Vec<Record<'_>> {
        decode(bytes).map(|found| found.record).collect()
    }

    #[test]
    fn records_end_at_the_first_damage() {
        let records = [
            Record::Add(1, b"one"),
            Record::Part(1, 7),
            Record::Done(1),
            Record::Add(u64::MAX, b""),
        ];
        let whole = bytes(&records);
        assert_eq!(read(&whole), records);
        for cut in 0..whole.len() {
            let read = read(&whole[..cut]);
            assert!(read.len() < 4 && read[..] == records[..read.len()], "{cut}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let read = read(&damaged);
            assert!(read.len() < 4 && read[..] == records[..read.len()], "{at}");
        }
    }

    #[test]
    fn fuzz_journal_records_decode_or_end() {
        fuzz::run("journal", |random| {
            let text = random.text(&["a", "\n", "é", "{}"], 0..9);
            let mut whole = bytes(&[
                Record::Add(1, text.as_bytes()),
                Record::Part(1, 2),
                Record::Done(1),
                Record::Add(2, b"x"),
            ]);
            random.damage(&mut whole, 4);
            for found in decode(&whole) {
                let (Record::Add(id, _) | Record::Done(id) | Record::Part(id, _)) = found.record;
                assert!(id <= 2);
            }
        });
    }
}
