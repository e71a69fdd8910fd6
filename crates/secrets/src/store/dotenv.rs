//! Lines of `KEY=value`.

use super::{
    flat,
    loaded::{Loaded, utf8},
};
use crate::{
    Error,
    document::{Branch, Item, Value},
};

const FORMAT: &str = "dotenv file";
const PREFIX: &str = "sops_";

pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded>, Error> {
    let text = utf8(FORMAT, bytes)?;
    let mut branch = Branch::new();
    let mut metadata = Vec::new();
    for (number, line) in text.split('\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        if let Some(comment) = line.strip_prefix('#') {
            branch.push(Item::Comment(comment.to_owned()));
            continue;
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| Error::syntax(FORMAT, format!("line {} has no `=`", number + 1)))?;
        match key.strip_prefix(PREFIX) {
            Some(name) => metadata.push((name, value)),
            None => {
                let value = Value::Text(value.replace("\\n", "\n"));
                branch.push(Item::Entry(key.to_owned(), value));
            }
        }
    }
    if !metadata
        .iter()
        .any(|(name, _)| *name == "mac" || *name == "lastmodified")
    {
        return Ok(None);
    }
    Ok(Some(Loaded {
        metadata: flat::unflatten(metadata)?,
        documents: vec![branch],
    }))
}

pub(super) fn print(branch: &Branch) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    for item in branch {
        match item {
            Item::Comment(text) => {
                out.push(b'#');
                out.extend_from_slice(text.as_bytes());
            }
            Item::Entry(key, value) => {
                let text = flat::text(value).ok_or(Error::Print {
                    format: FORMAT,
                    why: "it has lists or maps",
                })?;
                out.extend_from_slice(key.as_bytes());
                out.push(b'=');
                for byte in text {
                    match byte {
                        b'\n' => out.extend_from_slice(b"\\n"),
                        byte => out.push(byte),
                    }
                }
            }
        }
        out.push(b'\n');
    }
    Ok(out)
}
