//! Entries of a log of signatures (Rekor): the log's signature over the entry and its time, and the proof of inclusion.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{
    Rejected,
    trust::{Log, TrustedRoot},
};

/// Maximum hashes of a proof: enough for a log with 2^64 entries.
const HASHES: usize = 64;

pub(super) struct Entry {
    pub(super) body: String,
    pub(super) time: i64,
    pub(super) log: Vec<u8>,
    pub(super) index: i64,
    pub(super) signature: Vec<u8>,
    pub(super) proof: Option<InclusionProof>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InclusionProof {
    log_index: Number,
    tree_size: Number,
    #[serde(default)]
    hashes: Vec<String>,
    checkpoint: Checkpoint,
}

#[derive(Deserialize)]
struct Checkpoint {
    envelope: String,
}

/// A number, which JSON of protobuf quotes.
#[derive(Deserialize, Clone, Copy)]
#[serde(try_from = "serde_json::Value")]
pub(super) struct Number(pub(super) i64);

impl TryFrom<serde_json::Value> for Number {
    type Error = &'static str;

    fn try_from(value: serde_json::Value) -> Result<Self, Self::Error> {
        let found = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        found.map(Self).ok_or("it is no number")
    }
}

impl Entry {
    pub(super) fn verify(&self, root: &TrustedRoot) -> Result<Vec<u8>, Rejected> {
        let log = root.logs.iter().find(|log| log.id.as_slice() == self.log);
        let log = log.filter(|log| log.valid.has(self.time)).ok_or(Rejected::Log)?;
        let body = STANDARD.decode(&self.body).map_err(|_| Rejected::Log)?;
        // Canonical JSON: sorted, without blanks. Nothing in it needs an escape.
        let signed = format!(
            r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
            self.body,
            self.time,
            hex::encode(&self.log),
            self.index
        );
        if !log.key.verifies(signed.as_bytes(), &self.signature) {
            return Err(Rejected::Log);
        }
        match &self.proof {
            Some(proof) if !proof.holds(&body, log) => Err(Rejected::Log),
            _ => Ok(body),
        }
    }
}

impl InclusionProof {
    /// Returns true if the hashes lead from the entry to the root that the log signed.
    fn holds(&self, body: &[u8], log: &Log) -> bool {
        let Some((size, root)) = checkpoint(&self.checkpoint.envelope, log) else {
            return false;
        };
        let hashes = self
            .hashes
            .iter()
            .take(HASHES + 1)
            .map(|hash| STANDARD.decode(hash));
        let (Ok(hashes), Ok(index), Ok(own)) = (
            hashes.collect::<Result<Vec<_>, _>>(),
            u64::try_from(self.log_index.0),
            u64::try_from(self.tree_size.0),
        ) else {
            return false;
        };
        own == size && computed(body, index, size, &hashes).is_some_and(|found| found.as_slice() == root)
    }
}

fn checkpoint(envelope: &str, log: &Log) -> Option<(u64, Vec<u8>)> {
    let (text, signatures) = envelope.split_once("\n\n")?;
    let signed = format!("{text}\n");
    let is_signed = signatures.lines().any(|line| {
        let last = line
            .rsplit(' ')
            .next()
            .and_then(|text| STANDARD.decode(text).ok());
        // The first four bytes are a hint at the key.
        let signature = last.as_deref().and_then(|bytes| bytes.get(4..));
        signature.is_some_and(|signature| log.key.verifies(signed.as_bytes(), signature))
    });
    let mut lines = text.lines().skip(1);
    let size = lines.next()?.parse().ok()?;
    let root = STANDARD.decode(lines.next()?).ok()?;
    is_signed.then_some((size, root))
}

fn computed(body: &[u8], index: u64, size: u64, hashes: &[Vec<u8>]) -> Option<[u8; 32]> {
    if index >= size || hashes.len() > HASHES {
        return None;
    }
    let node = |left: &[u8], right: &[u8]| -> [u8; 32] {
        Sha256::new()
            .chain_update([1])
            .chain_update(left)
            .chain_update(right)
            .finalize()
            .into()
    };
    let mut found: [u8; 32] = Sha256::new()
        .chain_update([0])
        .chain_update(body)
        .finalize()
        .into();
    let (mut at, mut last) = (index, size - 1);
    for hash in hashes {
        if last == 0 {
            return None;
        }
        if at & 1 == 1 || at == last {
            found = node(hash, &found);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            found = node(&found, hash);
        }
        at >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(body: &[u8]) -> Vec<u8> {
        Sha256::new()
            .chain_update([0])
            .chain_update(body)
            .finalize()
            .to_vec()
    }

    fn node(left: &[u8], right: &[u8]) -> Vec<u8> {
        Sha256::new()
            .chain_update([1])
            .chain_update(left)
            .chain_update(right)
            .finalize()
            .to_vec()
    }

    #[test]
    fn proofs_lead_from_each_entry_to_the_root() {
        let bodies: Vec<Vec<u8>> = (0..5u8).map(|n| vec![n]).collect();
        let leaves: Vec<Vec<u8>> = bodies.iter().map(|body| leaf(body)).collect();
        let (first, second) = (node(&leaves[0], &leaves[1]), node(&leaves[2], &leaves[3]));
        let four = node(&first, &second);
        let root = node(&four, &leaves[4]);
        let proofs = [
            vec![leaves[1].clone(), second.clone(), leaves[4].clone()],
            vec![leaves[0].clone(), second, leaves[4].clone()],
            vec![leaves[3].clone(), first.clone(), leaves[4].clone()],
            vec![leaves[2].clone(), first, leaves[4].clone()],
            vec![four],
        ];
        for (index, proof) in (0u64..).zip(&proofs) {
            let body = &bodies[usize::try_from(index).unwrap()];
            let found = |body: &[u8], index: u64, proof: &[Vec<u8>]| {
                computed(body, index, 5, proof).is_some_and(|found| found.as_slice() == root)
            };
            assert!(found(body, index, proof), "{index}");
            assert!(!found(b"other", index, proof), "{index}");
            assert!(!found(body, (index + 1) % 5, proof), "{index}");
            assert!(!found(body, index, &proof[1..]), "{index}");
            assert_eq!(computed(body, 5, 5, proof), None);
        }
    }
}
