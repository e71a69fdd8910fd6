//! Compresses and decompresses results.

use std::io::{self, Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use yaml::{Map, Value};

use crate::Error;

const UNPACKED_BYTES: u64 = 512 << 20;

pub(super) fn value(value: &Value) -> Result<Vec<u8>, Error> {
    pack(|packer| write(packer, value))
}

/// Compresses a list of values. Each is dropped before the next one is made: all of them may be hundreds of megabytes.
pub(super) fn list(values: impl Iterator<Item = Value>) -> Result<Vec<u8>, Error> {
    pack(|packer| write_list(packer, values))
}

/// Compresses a map with a list under a name that it does not have itself.
pub(super) fn with_list(
    map: &Map,
    name: &str,
    values: impl Iterator<Item = Value>,
) -> Result<Vec<u8>, Error> {
    let members = map.iter().map(|(key, value)| (key, Some(value)));
    let mut members: Vec<(&str, Option<&Value>)> = members.chain([(name, None)]).collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    let mut values = Some(values);
    pack(|packer| {
        let mut before = b"{";
        for (key, value) in members {
            packer.write_all(before)?;
            before = b",";
            write(packer, &Value::from(key))?;
            packer.write_all(b":")?;
            match value {
                Some(value) => write(packer, value)?,
                None => write_list(packer, values.take().into_iter().flatten())?,
            }
        }
        packer.write_all(b"}")
    })
}

fn write_list(packer: &mut impl io::Write, values: impl Iterator<Item = Value>) -> io::Result<()> {
    packer.write_all(b"[")?;
    for (index, value) in values.enumerate() {
        if index > 0 {
            packer.write_all(b",")?;
        }
        write(packer, &value)?;
    }
    packer.write_all(b"]")
}

fn pack(write: impl FnOnce(&mut GzEncoder<Vec<u8>>) -> io::Result<()>) -> Result<Vec<u8>, Error> {
    // The highest level takes several times as long for a few percent.
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let written = write(&mut packer);
    written
        .and_then(|()| packer.finish())
        .map_err(|error| Error::StoredResult {
            id: String::new(),
            reason: error.to_string(),
        })
}

fn write(packer: &mut impl io::Write, value: &Value) -> io::Result<()> {
    packer.write_all(yaml::print::json_sorted_html(value).as_bytes())
}

#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackError {
    #[error("it can't be unpacked: {0}")]
    Gzip(io::Error),
    #[error("it is larger than {UNPACKED_BYTES} bytes")]
    TooLarge,
    #[error("invalid JSON: {0}")]
    Json(serde_json::Error),
}

pub(super) fn unpacked(bytes: &[u8]) -> Result<Value, UnpackError> {
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes)
        .take(UNPACKED_BYTES + 1)
        .read_to_end(&mut text);
    let len = read.map_err(UnpackError::Gzip)?;
    if len as u64 > UNPACKED_BYTES {
        return Err(UnpackError::TooLarge);
    }
    serde_json::from_slice(&text).map_err(UnpackError::Json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packed_values_are_unpacked() {
        for list in [json!([]), json!([{"a": "<ü>"}]), json!([1, [2], "three"])] {
            let all = Value::from_json(list);
            let items = all.as_seq().unwrap().iter().cloned();
            assert_eq!(super::list(items).unwrap(), value(&all).unwrap());
            assert_eq!(unpacked(&value(&all).unwrap()).unwrap(), all);
            let map = Map::from([("z", Value::from(1)), ("a", Value::from("<"))]);
            let mut whole = map.clone();
            let items = all.as_seq().unwrap().iter().cloned();
            let packed = with_list(&map, "list", items).unwrap();
            whole.insert("list", all);
            assert_eq!(packed, value(&Value::Map(whole)).unwrap());
        }
        assert!(unpacked(b"no gzip").is_err());
    }
}
