//! Envelopes of signatures: JWS and COSE.

mod content;
mod cose;
mod jws;

use super::rejected::{Rejected, bounded};

pub(super) use content::{Envelope, Scheme};
pub(super) use cose::COSE;
pub(super) use jws::JWS;

impl Envelope {
    pub(super) fn parse(media_type: &str, bytes: &[u8]) -> Result<Self, Rejected> {
        match media_type {
            JWS => jws::parse(bytes),
            COSE => cose::parse(bytes),
            _ => Err(Rejected::MediaType(bounded(media_type))),
        }
    }
}
