//! The lines of the answer to a watch.

use bytes::{Buf as _, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use kube::client::Body;

use crate::{AnswerLimit, Cluster, Error};

const ERROR: usize = 64 << 10;

pub(crate) struct Lines {
    body: Body,
    read: BytesMut,
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        Self {
            body,
            read: BytesMut::new(),
        }
    }

    /// Returns the next line; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self, cluster: &Cluster, what: &str) -> Result<Option<Bytes>, Error> {
        let limit = cluster.answer_bytes();
        let mut searched = 0;
        loop {
            if let Some(end) = self.read.iter().skip(searched).position(|byte| *byte == b'\n') {
                let line = self.read.split_to(searched + end).freeze();
                self.read.advance(1);
                return Ok(Some(line));
            }
            searched = self.read.len();
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| Error::Unreachable {
                what: what.to_owned(),
                reason: api::redact(&error.to_string()),
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if self.read.len() + data.len() > limit {
                return Err(cluster.too_large(what, AnswerLimit::Bytes(limit)));
            }
            self.read.extend_from_slice(&data);
        }
    }
}

pub(crate) async fn error_body(mut body: Body) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            read.extend_from_slice(&data);
        }
        if read.len() > ERROR {
            break;
        }
    }
    read
}
