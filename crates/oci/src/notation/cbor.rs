//! Parses CBOR, as far as envelopes need it: values of definite length.

const DEPTH: usize = 8;
/// Maximum number of values; each takes more memory than bytes.
const VALUES: usize = 1024;

/// A value; floats and simple values other than booleans are skipped.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// The largest integers of CBOR are malformed.
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    List(Vec<Value<'a>>),
    /// Pairs in order, with distinct keys.
    Map(Vec<(Value<'a>, Value<'a>)>),
    Tag(u64, Box<Value<'a>>),
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (value, rest) = read(bytes, DEPTH, &mut { VALUES })?;
        rest.is_empty().then_some(value)
    }

    pub(super) fn get(&self, key: &Value<'_>) -> Option<&Self> {
        let Self::Map(pairs) = self else {
            return None;
        };
        let found = pairs.iter().find(|(found, _)| found == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(*int),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

/// Reads the first value, if `left` values may still be read; returns it and the rest.
fn read<'a>(bytes: &'a [u8], depth: usize, left: &mut usize) -> Option<(Value<'a>, &'a [u8])> {
    let depth = depth.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    let (&first, rest) = bytes.split_first()?;
    let (major, argument) = (first >> 5, first & 0x1f);
    let (argument, rest) = number(argument, rest)?;
    if major == 7 {
        return Some((Value::Other, rest));
    }
    let length = || usize::try_from(argument).ok();
    Some(match major {
        0 => (Value::Int(i64::try_from(argument).ok()?), rest),
        1 => (Value::Int(-1 - i64::try_from(argument).ok()?), rest),
        2 => {
            let (content, rest) = rest.split_at_checked(length()?)?;
            (Value::Bytes(content), rest)
        }
        3 => {
            let (content, rest) = rest.split_at_checked(length()?)?;
            (Value::Text(std::str::from_utf8(content).ok()?), rest)
        }
        4 => {
            let (mut list, mut rest) = (Vec::new(), rest);
            for _ in 0..argument {
                let (value, after) = read(rest, depth, left)?;
                list.push(value);
                rest = after;
            }
            (Value::List(list), rest)
        }
        5 => {
            let (mut pairs, mut rest): (Vec<(Value<'_>, Value<'_>)>, _) = (Vec::new(), rest);
            for _ in 0..argument {
                let (key, after) = read(rest, depth, left)?;
                let (value, after) = read(after, depth, left)?;
                // Each comparison is of a short key: maps of envelopes have few.
                if pairs.len() >= 64 || pairs.iter().any(|(found, _)| *found == key) {
                    return None;
                }
                pairs.push((key, value));
                rest = after;
            }
            (Value::Map(pairs), rest)
        }
        _ => {
            let (value, rest) = read(rest, depth, left)?;
            (Value::Tag(argument, Box::new(value)), rest)
        }
    })
}

/// Reads the number in the head of a value; `None` for indefinite length.
fn number(argument: u8, rest: &[u8]) -> Option<(u64, &[u8])> {
    let bytes = match argument {
        0..=23 => return Some((u64::from(argument), rest)),
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let (number, rest) = rest.split_at_checked(bytes)?;
    let number = number.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    Some((number, rest))
}

pub(super) fn head(major: u8, number: usize, out: &mut Vec<u8>) {
    let major = major << 5;
    if let Ok(number) = u8::try_from(number) {
        match number {
            0..=23 => out.push(major | number),
            _ => out.extend([major | 24, number]),
        }
    } else if let Ok(number) = u16::try_from(number) {
        out.push(major | 25);
        out.extend(number.to_be_bytes());
    } else if let Ok(number) = u32::try_from(number) {
        out.push(major | 26);
        out.extend(number.to_be_bytes());
    } else {
        out.push(major | 27);
        out.extend((number as u64).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_definite_length_are_read() {
        let read = |text: &str| {
            let bytes = hex::decode(text).unwrap();
            Value::parse(&bytes).map(|value| format!("{value:?}"))
        };
        for (text, expected) in [
            ("1864", "Int(100)"),
            ("3824", "Int(-37)"),
            ("1a499602d2", "Int(1234567890)"),
            ("4101", "Bytes([1])"),
            ("6161", "Text(\"a\")"),
            ("82010a", "List([Int(1), Int(10)])"),
            ("a10102", "Map([(Int(1), Int(2))])"),
            ("c11a514b67b0", "Tag(1, Int(1363896240))"),
            ("f5", "Other"),
            ("fb3ff199999999999a", "Other"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "18",
            "5f4101ff",
            "6180",
            "9f01ff",
            "a201020103",
            "1bffffffffffffffff",
            "0101",
            "9affffffff",
            "81818181818181818101",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn heads_have_a_type_and_a_number() {
        for (number, expected) in [(5, "45"), (24, "5818"), (256, "590100"), (65_536, "5a00010000")] {
            let mut out = Vec::new();
            head(2, number, &mut out);
            assert_eq!(hex::encode(out), expected);
        }
    }
}
