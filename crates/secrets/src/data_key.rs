//! Decryption of the data key of a file with master keys.

use tree::{Budget, Exceeded};
use zeroize::Zeroizing;

use crate::{
    DataKey, Error, Keys,
    attempts::{Attempts, Refused},
    keys::OpenError,
    metadata::{Master, Metadata},
    shamir,
};

/// Decrypts the data key. Groups are tried in order; within a group, keys that need no network come first.
pub(crate) async fn get(metadata: &Metadata, keys: &Keys, budget: &Budget) -> Result<DataKey, Error> {
    let wanted = match (metadata.groups.len(), metadata.threshold) {
        (groups, 0) => groups,
        (1, _) => 1,
        (_, threshold) => threshold,
    };
    let mut attempts = Attempts::new(budget);
    let mut parts = Vec::new();
    let mut failures = Vec::new();
    for (number, group) in metadata.groups.iter().enumerate() {
        if parts.len() == wanted {
            break;
        }
        match open(group, keys, &mut attempts).await {
            Ok(part) => parts.push(part),
            Err(GroupError::Exceeded(exceeded)) => return Err(exceeded.into()),
            Err(reasons) => failures.push(format!("group {number}: {reasons}")),
        }
    }
    if parts.len() < wanted {
        return Err(Error::DataKey(explained(parts.len(), wanted, &failures, keys)));
    }
    let key = if metadata.groups.len() == 1 {
        parts.pop().unwrap_or_default()
    } else {
        shamir::combine(&parts).map_err(|why| Error::DataKey(why.to_owned()))?
    };
    DataKey::new(&key).ok_or_else(|| Error::DataKey("what was decrypted is no key of 32 bytes".to_owned()))
}

#[derive(Debug, thiserror::Error)]
enum GroupError {
    #[error("it has no keys")]
    Empty,
    #[error("{}", .0.join("; "))]
    Failed(Vec<String>),
    #[error(transparent)]
    Exceeded(Exceeded),
}

async fn open(
    group: &[Master],
    keys: &Keys,
    attempts: &mut Attempts<'_>,
) -> Result<Zeroizing<Vec<u8>>, GroupError> {
    let mut masters: Vec<&Master> = group.iter().collect();
    masters.sort_by_key(|master| master.rank());
    let mut reasons = Vec::new();
    for master in masters {
        match keys.open_within(master, attempts).await {
            Ok(key) if key.is_empty() => reasons.push(format!("{}: it is empty", master.name())),
            Ok(key) => return Ok(key),
            Err(OpenError::TooMuch(Refused::Exceeded(exceeded))) => {
                return Err(GroupError::Exceeded(exceeded));
            }
            Err(why) => reasons.push(format!("{}: {why}", master.name())),
        }
    }
    if reasons.is_empty() {
        return Err(GroupError::Empty);
    }
    Err(GroupError::Failed(reasons))
}

fn explained(got: usize, wanted: usize, failures: &[String], keys: &Keys) -> String {
    let mut text = if wanted > 1 {
        format!("{wanted} groups of keys have to open it, {got} did: ")
    } else {
        "no key opens the file: ".to_owned()
    };
    text.push_str(&failures.join("; "));
    for note in keys.notes() {
        text.push_str("; ");
        text.push_str(note);
    }
    text
}
