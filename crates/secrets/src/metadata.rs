//! SOPS metadata of a file: its master keys, the selection of encrypted values, and the MAC.

mod master;
#[cfg(test)]
mod tests;

pub(crate) use master::{Master, MasterKind};

use yaml::{Map, Value};

use crate::{
    Error,
    selection::{Rule, Selection},
};

/// Maximum number of master keys; each one may cost a request.
const MAX_KEYS: usize = 100;

#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    /// Groups of master keys; with several groups each one opens a part of the data key.
    pub(crate) groups: Vec<Vec<Master>>,
    /// Number of groups needed to open the file; 0 means all groups.
    pub(crate) threshold: usize,
    pub(crate) mac: String,
    pub(crate) last_modified: String,
    pub(crate) mac_only_encrypted: bool,
    pub(crate) selection: Selection,
}

impl Metadata {
    pub(crate) fn read(sops: &Value) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Metadata(why.to_owned());
        let sops = sops.as_map().ok_or_else(|| wrong("`sops` is no map"))?;
        let groups = groups(sops)?;
        let keys: usize = groups.iter().map(Vec::len).sum();
        if keys == 0 {
            return Err(wrong("no keys found in file"));
        }
        if keys > MAX_KEYS {
            return Err(Error::Metadata(format!("more than {MAX_KEYS} keys in file")));
        }
        Ok(Self {
            threshold: threshold(sops, groups.len())?,
            groups,
            mac: text(sops, "mac")?,
            last_modified: last_modified(&text(sops, "lastmodified")?)
                .ok_or_else(|| wrong("`lastmodified` is no time of RFC 3339"))?,
            mac_only_encrypted: flag(sops, "mac_only_encrypted")?,
            selection: selection(sops)?,
        })
    }
}

/// Top-level keys are the only group; only without any, `key_groups` counts.
fn groups(sops: &Map) -> Result<Vec<Vec<Master>>, Error> {
    let own = Master::all(sops)?;
    if !own.is_empty() {
        return Ok(vec![own]);
    }
    let Some(groups) = sops.get("key_groups").filter(|groups| !groups.is_null()) else {
        return Ok(Vec::new());
    };
    let groups = groups
        .as_seq()
        .ok_or_else(|| Error::Metadata("`key_groups` is no list".to_owned()))?;
    let group = |group: &Value| match group.as_map() {
        Some(group) => Master::all(group),
        None => Err(Error::Metadata(
            "`key_groups` holds something else than maps".to_owned(),
        )),
    };
    groups.iter().take(MAX_KEYS + 1).map(group).collect()
}

/// Parses a number, which dotenv and INI have as a string, possibly with a fraction.
fn threshold(sops: &Map, groups: usize) -> Result<usize, Error> {
    let text = text(sops, "shamir_threshold")?;
    if text.is_empty() {
        return Ok(0);
    }
    let whole = text.split_once('.').map_or(text.as_str(), |(whole, rest)| {
        if rest.bytes().all(|byte| byte == b'0') {
            whole
        } else {
            ""
        }
    });
    let threshold: Option<usize> = whole.parse().ok();
    threshold.filter(|number| *number <= groups).ok_or_else(|| {
        Error::Metadata("`shamir_threshold` is no number up to that of the key groups".to_owned())
    })
}

fn selection(sops: &Map) -> Result<Selection, Error> {
    let mut found = Vec::new();
    for name in [
        "unencrypted_suffix",
        "encrypted_suffix",
        "unencrypted_regex",
        "encrypted_regex",
        "unencrypted_comment_regex",
        "encrypted_comment_regex",
    ] {
        let rule = text(sops, name)?;
        if !rule.is_empty() {
            found.push((name, rule));
        }
    }
    if found.len() > 1 {
        return Err(Error::Metadata(format!(
            "more than one of the rules that select values: {}",
            found.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        )));
    }
    let Some((name, rule)) = found.pop() else {
        return Ok(Selection::default());
    };
    let regex = || {
        Rule::new(&rule)
            .ok_or_else(|| Error::Metadata(format!("`{name}` is no regular expression that can be used")))
    };
    Ok(match name {
        "unencrypted_suffix" => Selection::UnencryptedSuffix(rule),
        "encrypted_suffix" => Selection::EncryptedSuffix(rule),
        "unencrypted_regex" => Selection::UnencryptedRegex(regex()?),
        "encrypted_regex" => Selection::EncryptedRegex(regex()?),
        "unencrypted_comment_regex" => Selection::UnencryptedCommentRegex(regex()?),
        _ => Selection::EncryptedCommentRegex(regex()?),
    })
}

/// Returns the time as it is printed again: without a fraction of seconds.
fn last_modified(text: &str) -> Option<String> {
    let time = crate::cipher::time(text)?;
    let Some((seconds, rest)) = time.split_once('.') else {
        return Some(time);
    };
    let zone = rest.find(['Z', '+', '-'])?;
    Some(format!("{seconds}{}", rest.get(zone..)?))
}

/// Returns a string, or the spelling of an unquoted number or boolean; empty if it is missing.
fn text(map: &Map, name: &str) -> Result<String, Error> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.to_string()),
        Some(Value::Bool(flag)) => Ok(flag.to_string()),
        Some(Value::Int(number)) => Ok(number.to_string()),
        Some(Value::UInt(number)) => Ok(number.to_string()),
        Some(Value::Float(number)) => Ok(number.to_string()),
        Some(Value::Seq(_) | Value::Map(_)) => Err(Error::Metadata(format!("`{name}` is no text"))),
    }
}

fn flag(map: &Map, name: &str) -> Result<bool, Error> {
    Ok(text(map, name)? == "true")
}
