//! Answers of a Git server that means harm.

use std::io;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress};
use futures::{StreamExt as _, stream};
use http::header;

use super::backend::MAX_BODY;

/// The end of the answer's head, in front of the pack.
const PACK_FOLLOWS: &[u8] = b"packfile\n";
/// Bytes of a pack in a line: the longest is 65,520 bytes.
const LINE: usize = 60_000;
const REFS: usize = 1000;

/// Returns a pack of one file that announces `announced` bytes, and inflates to `mib` MiB of zeros without an end.
///
/// # Panics
/// If the zeros can't be compressed.
#[must_use]
pub fn pack_bomb(announced: u64, mib: usize) -> Vec<u8> {
    let mut pack = pack_head(announced);
    pack.extend([0x78, 0x01]);
    let mut deflate = Compress::new(Compression::fast(), false);
    let mut block = Vec::with_capacity(1 << 20);
    // After a full flush nothing refers to earlier bytes, so that the block can be repeated.
    let done = deflate.compress_vec(&vec![0; 1 << 20], &mut block, FlushCompress::Full);
    assert!(done.is_ok(), "zeros can't be compressed");
    pack.extend(block.repeat(mib));
    pack
}

/// Returns a pack of one file that announces `announced` bytes, and has `mib` MiB of compressed bytes that inflate to nothing.
#[must_use]
pub fn padded_pack(announced: u64, mib: usize) -> Vec<u8> {
    let mut pack = pack_head(announced);
    pack.extend([0x78, 0x01]);
    // A stored block without content.
    pack.extend([0, 0, 0, 0xff, 0xff].repeat((mib << 20) / 5));
    pack
}

/// Returns the header of a pack and of its only object, a file of `announced` bytes.
fn pack_head(announced: u64) -> Vec<u8> {
    let low = |value: u64, mask: u64| u8::try_from(value & mask).unwrap_or_default();
    let mut pack = b"PACK\0\0\0\x02\0\0\0\x01".to_vec();
    let (mut rest, mut byte) = (announced >> 4, 3 << 4 | low(announced, 15));
    while rest > 0 {
        pack.push(byte | 0x80);
        byte = low(rest, 0x7f);
        rest >>= 7;
    }
    pack.push(byte);
    pack
}

pub(super) async fn with_pack(response: Response, pack: &[u8]) -> Response {
    let (mut head, body) = response.into_parts();
    let whole = axum::body::to_bytes(body, MAX_BODY).await.unwrap_or_default();
    let found = whole
        .windows(PACK_FOLLOWS.len())
        .position(|part| part == PACK_FOLLOWS);
    let end = found.map_or(whole.len(), |at| at + PACK_FOLLOWS.len());
    let mut answer = whole.slice(..end).to_vec();
    for part in pack.chunks(LINE) {
        answer.extend(format!("{:04x}\x01", part.len() + 5).into_bytes());
        answer.extend(part);
    }
    answer.extend(b"0000");
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(answer))
}

pub(super) fn with_endless_refs(response: Response) -> Response {
    let (mut head, _) = response.into_parts();
    let refs = stream::iter(0_u64..).map(|number| {
        let lines: String = (0..REFS)
            .map(|at| {
                let line = format!("{:040x} refs/heads/main-{number}-{at}\n", number + 1);
                format!("{:04x}{line}", line.len() + 4)
            })
            .collect();
        Ok::<_, io::Error>(Bytes::from(lines))
    });
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from_stream(refs))
}
