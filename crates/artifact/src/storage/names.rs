//! Names of artifacts: different bytes never share one while a status may name it.

use super::{Key, Storage};
use crate::{Digest, Error};

const ENDS: [&str; 3] = [".tar.gz", ".tgz", ".yaml"];
/// Maximum characters of a name that stay beside a digest.
const MAX_STEM: usize = 180;
const DIGEST: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    pub file: String,
    pub digest: String,
}

impl Storage {
    /// Returns the name for bytes with this digest: `file`, unless the storage has other bytes under it, or the status has it
    /// with another digest (the file may be lost, and consumers may still ask for it).
    pub(super) fn name(
        &self,
        key: &Key,
        file: &str,
        digest: &Digest,
        current: Option<&Current>,
    ) -> Result<String, Error> {
        let own = with_digest(file, digest);
        if let Some(current) = current {
            let is_same = current.digest == digest.to_string();
            if is_same && (current.file == file || current.file == own) {
                return Ok(current.file.clone());
            }
            if current.file == file {
                return Ok(own);
            }
        }
        let found = self.digest(&key.path(file), digest.algorithm())?;
        let is_taken = found.is_some_and(|found| found != *digest);
        Ok(if is_taken { own } else { file.to_owned() })
    }
}

/// Inserts the start of a digest before the suffix: `1.tar.gz` becomes `1-<digest>.tar.gz`.
fn with_digest(file: &str, digest: &Digest) -> String {
    let ends = ENDS.iter().find_map(|end| Some((file.strip_suffix(end)?, *end)));
    let (stem, end) = ends.unwrap_or((file, ""));
    let stem: String = stem.chars().take(MAX_STEM).collect();
    let digest: String = digest.hex().chars().take(DIGEST).collect();
    format!("{stem}-{digest}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, digest::of};

    #[test]
    fn digest_is_before_the_end_of_a_name() {
        let digest = of(Algorithm::Sha256, b"one");
        let hex = &digest.hex()[..16];
        for (file, expected) in [
            ("1.tar.gz", format!("1-{hex}.tar.gz")),
            ("sha256:ab.tar.gz", format!("sha256:ab-{hex}.tar.gz")),
            ("shop-1.2.3.tgz", format!("shop-1.2.3-{hex}.tgz")),
            ("index-ab.yaml", format!("index-ab-{hex}.yaml")),
            ("1.2", format!("1.2-{hex}")),
        ] {
            assert_eq!(with_digest(file, &digest), expected);
        }
        let long = with_digest(&format!("{}.tgz", "x".repeat(249)), &digest);
        assert!(super::super::plain_name(&long).is_ok(), "{long}");
    }
}
