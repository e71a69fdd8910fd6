//! A file before it is decrypted.

use crate::{Error, document::Branch};

pub(crate) struct Loaded {
    pub(crate) metadata: ::yaml::Value,
    /// Documents without it; only YAML has more than one.
    pub(crate) documents: Vec<Branch>,
}

pub(super) fn utf8<'b>(format: &'static str, bytes: &'b [u8]) -> Result<&'b str, Error> {
    str::from_utf8(bytes).map_err(|error| {
        let line = bytes
            .iter()
            .take(error.valid_up_to())
            .filter(|byte| **byte == b'\n')
            .count();
        Error::syntax(format, format!("line {} is no UTF-8", line + 1))
    })
}
