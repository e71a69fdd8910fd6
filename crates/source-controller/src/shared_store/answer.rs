//! Answers to downloads from the shared store.

use artifact::{
    server::{self, Asked, Body, Described, Prepared},
    storage::{is_alias, is_artifact},
};
use futures::TryStreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;

use super::{SharedStore, StoreError, alias_path, content};

const MAX_NAME: usize = 253;

impl SharedStore {
    /// Returns true if a path of the local storage may be served.
    pub(crate) fn is_served_locally(&self, path: &str) -> bool {
        self.ledger.lock().is_served(path)
    }

    /// Answers a request by the service's content, as a stream.
    pub(crate) async fn answer(&self, asked: &Asked) -> Result<http::Response<Body>, StoreError> {
        let Some(path) = self.resolve(asked.path()).await? else {
            return Ok(server::not_found());
        };
        let Some(stat) = self.connection.stat(&path).await? else {
            return Ok(server::not_found());
        };
        let described = Described {
            size: stat.size,
            modified: stat.modified,
            tag: stat.digest.as_deref().unwrap_or_default(),
        };
        let (mut response, first, len) = match described.prepare(asked) {
            Prepared::Complete(response) => return Ok(response),
            Prepared::Part { response, first, len } => (response, first, len),
        };
        if len == 0 {
            return Ok(response);
        }
        let part = (len < stat.size).then_some((first, len));
        match self.connection.get(&path, part).await? {
            Some((now, object)) if part.is_some() || now == stat => {
                let body = StreamBody::new(content(object).map_ok(Frame::data));
                *response.body_mut() = body.boxed_unsync();
                Ok(response)
            }
            // It was replaced meanwhile.
            _ => Ok(server::unavailable()),
        }
    }

    /// Returns the path of the file that a path stands for; `None` if it is not in an artifact.
    async fn resolve(&self, path: &str) -> Result<Option<String>, StoreError> {
        let (dir, file) = path.rsplit_once('/').unwrap_or_default();
        if !is_alias(file) {
            return Ok(is_artifact(file).then(|| path.to_owned()));
        }
        let Some((_, mut object)) = self.connection.get(&alias_path(path), None).await? else {
            return Ok(None);
        };
        let mut name = Vec::new();
        while let Some(piece) = object.chunk().await? {
            name.extend_from_slice(&piece);
            if name.len() > MAX_NAME {
                return Ok(None);
            }
        }
        let name = String::from_utf8(name).ok().filter(|name| is_artifact(name));
        Ok(name.map(|name| format!("{dir}/{name}")))
    }
}
