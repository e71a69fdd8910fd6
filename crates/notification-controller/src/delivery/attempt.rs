//! The result of one attempt to send.

use std::time::Duration;

use crate::error::Error;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Taken,
    /// Success, with the body of the response.
    Answered(Vec<u8>),
    Final(Error),
    /// Another attempt may succeed, after the time that the provider asked for.
    Again(Error, Option<Duration>),
}
