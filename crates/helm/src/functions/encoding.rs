//! Base64, base32 and checksums.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use go::bytes;

use super::{
    arguments::text,
    context::Context,
    table::{Answer, Entry, fixed},
};
use crate::template::FunctionError;
use crate::{Value, template::Type};

const ONE: &[Type] = &[Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("b64enc", ONE, |context, arguments| {
        of_bytes(context, arguments, crate::convert::base64)
    }),
    fixed("b64dec", ONE, |_, arguments| {
        Ok(decoded(decode64(text(arguments, 0)), "base64"))
    }),
    fixed("b32enc", ONE, |context, arguments| {
        of_bytes(context, arguments, encode32)
    }),
    fixed("b32dec", ONE, |_, arguments| {
        Ok(decoded(decode32(text(arguments, 0)), "base32"))
    }),
    fixed("sha1sum", ONE, |context, arguments| {
        of_bytes(context, arguments, |bytes| hex::encode(Sha1::digest(bytes)))
    }),
    fixed("sha256sum", ONE, |context, arguments| {
        of_bytes(context, arguments, |bytes| hex::encode(Sha256::digest(bytes)))
    }),
    fixed("sha512sum", ONE, |context, arguments| {
        of_bytes(context, arguments, |bytes| hex::encode(Sha512::digest(bytes)))
    }),
    fixed("adler32sum", ONE, |context, arguments| {
        of_bytes(context, arguments, |bytes| adler32(bytes).to_string())
    }),
];

fn of_bytes(context: &Context<'_>, arguments: &[Value], make: fn(&[u8]) -> String) -> Answer {
    let bytes = bytes::of_str(text(arguments, 0));
    context.text(bytes.len().saturating_mul(2))?;
    Ok(Value::string(make(&bytes)))
}

/// Returns the decoded string, or a message with the position of the invalid byte.
fn decoded(found: Result<Vec<u8>, usize>, name: &str) -> Value {
    Value::string(match found {
        Ok(bytes) => bytes::to_string(&bytes),
        Err(at) => illegal(name, at),
    })
}

fn illegal(name: &str, at: usize) -> String {
    format!("illegal {name} data at input byte {at}")
}

/// Decodes base64 for functions with an error of their own.
pub(super) fn from_base64(text: &str) -> Result<Vec<u8>, FunctionError> {
    decode64(text).map_err(|at| illegal("base64", at).into())
}

fn value64(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// Decodes base64 with line breaks anywhere. The error is the position of the invalid byte.
fn decode64(text: &str) -> Result<Vec<u8>, usize> {
    let bytes = bytes::of_str(text);
    let mut input = bytes
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    loop {
        let (mut group, mut count) = (0u32, 0usize);
        while count < 4 {
            match input.next() {
                None if count == 0 => return Ok(out),
                None => return Err(bytes.len() - count),
                Some((at, byte)) => match value64(byte) {
                    Some(value) => group = group << 6 | value,
                    None if byte != b'=' || count < 2 => return Err(at),
                    None => {
                        if count == 2 {
                            match input.next() {
                                None => return Err(bytes.len()),
                                Some((_, b'=')) => {}
                                Some((next, _)) => return Err(next - 1),
                            }
                        }
                        if let Some((next, _)) = input.next() {
                            return Err(next);
                        }
                        let group = group << (6 * (4 - count));
                        out.extend(group.to_be_bytes().into_iter().skip(1).take(count - 1));
                        return Ok(out);
                    }
                },
            }
            count += 1;
        }
        out.extend(group.to_be_bytes().into_iter().skip(1));
    }
}

const ALPHABET32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn encode32(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 5 * 8 + 8);
    for chunk in bytes.chunks(5) {
        let group = chunk
            .iter()
            .chain(std::iter::repeat(&0))
            .take(5)
            .fold(0u64, |group, byte| group << 8 | u64::from(*byte));
        let used = (chunk.len() * 8).div_ceil(5);
        for index in 0..8 {
            let letter = ALPHABET32
                .get((group >> (35 - 5 * index) & 31) as usize)
                .filter(|_| index < used);
            out.push(letter.map_or('=', |byte| char::from(*byte)));
        }
    }
    out
}

/// As [`decode64`], for base32.
fn decode32(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = bytes::of_str(text).into_owned();
    bytes.retain(|byte| !matches!(byte, b'\r' | b'\n'));
    let mut out = Vec::with_capacity(bytes.len() / 8 * 5);
    for (index, chunk) in bytes.chunks(8).enumerate() {
        let start = index * 8;
        let (mut group, mut count) = (0u64, 0usize);
        let rest = bytes.len() - start;
        for (at, byte) in chunk.iter().enumerate() {
            // Padding ends the input.
            if *byte == b'=' && at >= 2 && rest - at - 1 < 8 {
                break;
            }
            let value = ALPHABET32
                .iter()
                .position(|letter| letter == byte)
                .ok_or(start + at)?;
            group = group << 5 | value as u64;
            count += 1;
        }
        if count < 8 {
            padding(&bytes, start, count)?;
        }
        let group = group << (5 * (8 - count));
        out.extend(group.to_be_bytes().into_iter().skip(3).take(count * 5 / 8));
        if count < 8 {
            break;
        }
    }
    Ok(out)
}

/// Checks that a last group of `count` characters is padded to eight; anything after the padding is ignored.
fn padding(bytes: &[u8], start: usize, count: usize) -> Result<(), usize> {
    let rest = bytes.get(start + count..).unwrap_or_default();
    if rest.is_empty() {
        return Err(bytes.len() - count);
    }
    if rest.len() + count < 8 {
        return Err(bytes.len());
    }
    match rest.iter().take(8 - count).position(|byte| *byte != b'=') {
        // Go names the byte before.
        Some(at) => Err((start + count + at).saturating_sub(1)),
        None if matches!(count, 1 | 3 | 6) => Err(start + count),
        None => Ok(()),
    }
}

fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    high << 16 | low
}
