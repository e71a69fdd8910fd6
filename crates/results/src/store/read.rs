//! Reads stored results as a whole.

use yaml::Value;

use super::{ResultStore, StoredResult, contents, pack, secrets, secrets::part_ref};
use crate::Error;

impl ResultStore {
    pub async fn read(&self, stored: &StoredResult) -> Result<Value, Error> {
        let mut result = self.read_compacted(stored).await?;
        let Some(root) = result.as_map_mut() else {
            return Ok(result);
        };
        if let Some(Value::Seq(objects)) = root.remove("compactedObjects") {
            let objects: Result<Vec<Value>, _> = objects.iter().map(contents::expanded).collect();
            let objects = objects.map_err(|error| stored.broken(&error.into()))?;
            root.insert("objects", objects);
        }
        Ok(result)
    }

    /// Reads the whole result of an operation or a validation, in the form that its command prints.
    pub async fn read_compacted(&self, stored: &StoredResult) -> Result<Value, Error> {
        let broken = |reason: ReadError| stored.broken(&reason);
        let secrets = self.read_secrets(stored).await?;
        let unpacked = |key: &'static str| -> Result<Value, ReadError> {
            Ok(pack::unpacked(&secrets::entry(&secrets, key)?)?)
        };
        if stored.is_validation {
            return unpacked("result").map_err(broken);
        }
        let mut result = unpacked("reducedResult").map_err(broken)?;
        let objects = unpacked("compactedObjects").map_err(broken)?;
        if let Some(root) = result.as_map_mut() {
            root.remove("objects");
            root.insert("compactedObjects", objects);
        }
        Ok(result)
    }

    async fn read_secrets(&self, stored: &StoredResult) -> Result<Vec<Value>, Error> {
        let first = self.cluster.get(&stored.secret).await?;
        let mut secrets = vec![first.ok_or_else(|| stored.broken(&ReadError::Gone))?];
        for number in 1..stored.parts {
            let part = self.cluster.get(&part_ref(&stored.secret, number)).await?;
            secrets.push(part.ok_or_else(|| stored.broken(&ReadError::PartGone(number)))?);
        }
        Ok(secrets)
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("it is gone")]
    Gone,
    #[error("part {0} is gone")]
    PartGone(usize),
    #[error("{0} is missing")]
    NoEntry(&'static str),
    #[error("{0} is not valid base64")]
    Base64(&'static str),
    #[error(transparent)]
    Unpack(#[from] pack::UnpackError),
    #[error(transparent)]
    Expand(#[from] contents::ExpandError),
}
