//! Objects of a kind as JSON, one by one: lists of many objects in the memory of one page, and their changes.

use std::{collections::VecDeque, time::Duration};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time;

use crate::{
    AnswerLimit, ApiError, Cluster, Error, ResourceKind,
    connection::send::{Answer, Call},
    path,
    watch::{
        feed::{BROKEN_AFTER, SERVED_FOR},
        lines::{self, Lines},
    },
};

/// Objects on one page of a list. Pages that are too large are repeated with a tenth of it.
const PAGE: usize = 500;
/// Maximum number of pages of a list.
const PAGES: usize = 1000;
/// Pause before a watch that ended is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// The objects of a list or a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// `None` means all namespaces.
    pub namespace: Option<String>,
    /// A label selector; may be empty.
    pub labels: String,
    /// A field selector such as `metadata.name=a`; may be empty.
    pub fields: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListMetadata {
    r#continue: String,
    resource_version: String,
}

/// The error of an expired list, with the token to go on in its newest state.
#[derive(Deserialize)]
struct Expired {
    #[serde(default)]
    metadata: ListMetadata,
}

impl Selection {
    fn url(&self, kind: &ResourceKind) -> Result<String, Error> {
        let mut url = path::collection(kind, self.namespace.as_deref())?;
        url.push('?');
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if !value.is_empty() {
                url.push_str(&format!("{name}={}&", path::encode(value)));
            }
        }
        Ok(url)
    }
}

impl Cluster {
    /// Calls `each` with the JSON of each object of a kind, and returns the version of the list, to watch from.
    ///
    /// Two pages are in memory at most: the API server makes one while the other is read. A list that takes very long may have objects of
    /// different states.
    ///
    /// # Errors
    /// Fails when the API server refuses (also a malformed selector) or can't be reached, or when `each` fails.
    pub async fn each_object<E: From<Error>>(
        &self,
        kind: &ResourceKind,
        selection: &Selection,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<String, E> {
        let mut pages = Pages {
            cluster: self,
            what: format!("list {}", kind.plural),
            url: selection.url(kind)?,
            size: PAGE,
            requested: 0,
        };
        let what = pages.what.clone();
        let mut answer = pages.request(String::new()).await?;
        loop {
            let page = parse_page(&what, &answer)?;
            let ListMetadata {
                r#continue: next,
                resource_version,
            } = page.metadata;
            let items = page.items.unwrap_or_default();
            let read = async { items.iter().try_for_each(|item| each(item.get())) };
            if next.is_empty() {
                read.await?;
                return Ok(resource_version);
            }
            let (following, read) = futures::future::join(pages.request(next), read).await;
            read?;
            answer = following?;
        }
    }

    /// Returns the changes of objects since a version, as [`Cluster::each_object`] returns it.
    #[must_use]
    pub fn changes(&self, kind: &ResourceKind, selection: &Selection, version: String) -> Changes {
        Changes {
            cluster: self.clone(),
            kind: kind.clone(),
            selection: selection.clone(),
            version,
            lines: None,
            listed: VecDeque::new(),
        }
    }
}

/// The pages of a list.
struct Pages<'a> {
    cluster: &'a Cluster,
    what: String,
    /// The URL of the list, up to the number of objects on a page.
    url: String,
    size: usize,
    requested: usize,
}

impl Pages<'_> {
    /// Requests the page that a token continues with; an empty one is the first. Pages that are too large are made smaller.
    async fn request(&mut self, mut next: String) -> Result<Answer, Error> {
        let (cluster, what) = (self.cluster, &self.what);
        while self.requested < PAGES {
            self.requested += 1;
            let token = path::encode(&next);
            let call = Call::get(format!("{}limit={}&continue={token}", self.url, self.size));
            let answer = match cluster.send_beside(what, &call, &cluster.no_memory()).await {
                Err(Error::TooLarge { why, .. }) if why.is_too_large() && self.size > 1 => {
                    self.size = self.size.div_ceil(10);
                    continue;
                }
                other => other?,
            };
            if answer.status == 410 && !next.is_empty() {
                next = token_after_expiry(&answer)?;
                continue;
            }
            return answer.success(None);
        }
        Err(cluster.too_large(what, AnswerLimit::Pages(PAGES)))
    }
}

fn parse_page<'a>(what: &str, answer: &'a Answer) -> Result<Page<'a>, Error> {
    serde_json::from_slice(&answer.body).map_err(|error| Error::Malformed {
        what: what.to_owned(),
        // Only the position: a quoted part of the body may belong to a Secret.
        reason: format!("no JSON at line {}, column {}", error.line(), error.column()),
    })
}

/// Returns the token by which the list goes on with the newest state of the remaining objects.
fn token_after_expiry(answer: &Answer) -> Result<String, Error> {
    let token = serde_json::from_slice::<Expired>(&answer.body).map(|error| error.metadata.r#continue);
    match token {
        Ok(token) if !token.is_empty() => Ok(token),
        _ => Err(Error::Api(ApiError::parse(answer.status, &answer.body))),
    }
}

/// A new state of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The object as JSON; its last state if it was deleted.
    pub object: String,
    pub is_deleted: bool,
}

/// The changes of the objects of a selection. A watch that ends is opened again; after a gap, all objects are returned again.
pub struct Changes {
    cluster: Cluster,
    kind: ResourceKind,
    selection: Selection,
    /// The version to go on from; empty after a gap.
    version: String,
    lines: Option<Lines>,
    listed: VecDeque<String>,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes")
            .field("kind", &self.kind.kind)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: ListMetadata,
    #[serde(default)]
    code: u16,
}

impl Changes {
    /// Waits for the next change.
    ///
    /// # Errors
    /// Fails when the API server refuses the watch, or the operation is cancelled.
    pub async fn next(&mut self) -> Result<Change, Error> {
        loop {
            if let Some(object) = self.listed.pop_front() {
                return Ok(Change {
                    object,
                    is_deleted: false,
                });
            }
            let cancel = self.cluster.cancellation().clone();
            let step = cancel.run_until_cancelled(self.step()).await;
            if let Some(change) = step.ok_or(Error::Cancelled)?? {
                return Ok(change);
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Change>, Error> {
        let what = format!("watch {}", self.kind.plural);
        if self.version.is_empty() {
            let (cluster, listed) = (self.cluster.clone(), &mut self.listed);
            let add = |object: &str| -> Result<(), Error> {
                listed.push_back(object.to_owned());
                Ok(())
            };
            self.version = cluster.each_object(&self.kind, &self.selection, add).await?;
            return Ok(None);
        }
        let Some(lines) = &mut self.lines else {
            self.open(&what).await?;
            return Ok(None);
        };
        let line = time::timeout(BROKEN_AFTER, lines.next(&self.cluster, &what)).await;
        let Ok(Ok(Some(line))) = line else {
            // The server ended the watch, or the connection broke.
            self.lines = None;
            self.cluster.pause(AGAIN).await?;
            return Ok(None);
        };
        let change = self.line(&line);
        if self.lines.is_none() {
            self.cluster.pause(AGAIN).await?;
        }
        Ok(change)
    }

    async fn open(&mut self, what: &str) -> Result<(), Error> {
        let url = self.selection.url(&self.kind)?;
        let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds={SERVED_FOR}");
        let call = Call::get(format!(
            "{url}{query}&resourceVersion={}",
            path::encode(&self.version)
        ));
        match self.cluster.open(what, &call).await {
            Ok((410, _)) => self.version.clear(),
            Ok((status, body)) if status >= 500 || status == 429 => {
                drop(body);
                self.cluster.pause(AGAIN).await?;
            }
            Ok((status, body)) if status >= 400 => {
                return Err(Error::Api(ApiError::parse(
                    status,
                    &lines::error_body(body).await,
                )));
            }
            Ok((_, body)) => self.lines = Some(Lines::new(body)),
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(_) => self.cluster.pause(AGAIN).await?,
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Option<Change> {
        let parsed = serde_json::from_slice::<Line<'_>>(line).ok();
        let head = parsed.and_then(|line| {
            let head = serde_json::from_str::<Head>(line.object.get()).ok()?;
            Some((line, head))
        });
        match head {
            Some((line, head)) if matches!(&*line.r#type, "ADDED" | "MODIFIED" | "DELETED") => {
                self.version = head.metadata.resource_version;
                Some(Change {
                    object: line.object.get().to_owned(),
                    is_deleted: line.r#type == "DELETED",
                })
            }
            Some((line, head)) if line.r#type == "BOOKMARK" => {
                self.version = head.metadata.resource_version;
                None
            }
            Some((_, head)) if head.code != 410 && head.code != 0 => {
                self.lines = None;
                None
            }
            // Changes may have been missed.
            _ => {
                self.lines = None;
                self.version.clear();
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube::{Client, Config, client::Body};
    use serde_json::json;

    use super::*;

    fn things() -> ResourceKind {
        ResourceKind {
            group: "x.io".to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: "things".to_owned(),
            namespaced: true,
            listable: true,
            deletable: true,
            preferred: true,
            status: true,
        }
    }

    fn changes() -> Changes {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        Changes {
            cluster: Cluster::new(client),
            kind: things(),
            selection: Selection::default(),
            version: "1".to_owned(),
            lines: Some(Lines::new(Body::empty())),
            listed: VecDeque::new(),
        }
    }

    #[tokio::test]
    async fn lines_of_a_watch_are_changes_until_some_were_missed() {
        let mut changes = changes();
        let mut line = |type_: &str, object: serde_json::Value| {
            changes.lines = Some(Lines::new(Body::empty()));
            let line = json!({"type": type_, "object": object}).to_string();
            let change = changes.line(line.as_bytes());
            let is_deleted = change.map(|change| change.is_deleted);
            (is_deleted, changes.version.clone(), changes.lines.is_some())
        };
        let object = |version: &str| json!({"metadata": {"resourceVersion": version}});
        let version = |version: &str| version.to_owned();
        assert_eq!(line("ADDED", object("2")), (Some(false), version("2"), true));
        assert_eq!(line("BOOKMARK", object("3")), (None, version("3"), true));
        assert_eq!(line("DELETED", object("4")), (Some(true), version("4"), true));
        // The server failed: the watch goes on from the same version.
        assert_eq!(line("ERROR", json!({"code": 500})), (None, version("4"), false));
        assert_eq!(line("ERROR", json!({"code": 410})), (None, String::new(), false));
        assert_eq!(line("ADDED", json!("odd")), (None, String::new(), false));
    }

    #[tokio::test]
    async fn expired_lists_go_on_with_the_token_of_the_error() {
        let expired = |body: &'static str| {
            token_after_expiry(&Answer {
                status: 410,
                warnings: Vec::new(),
                body: Bytes::from_static(body.as_bytes()),
                share: changes().cluster.no_memory(),
            })
        };
        let with = r#"{"kind": "Status", "code": 410, "metadata": {"continue": "next"}}"#;
        assert_eq!(expired(with).unwrap(), "next");
        let without = expired(r#"{"kind": "Status", "metadata": {}}"#);
        assert_eq!(without.unwrap_err().code(), Some(410));
    }

    #[test]
    fn selections_are_encoded_in_the_url() {
        let selection = Selection {
            namespace: Some("n".to_owned()),
            labels: "a in (b,c)".to_owned(),
            fields: "metadata.name=x".to_owned(),
        };
        assert_eq!(
            selection.url(&things()).unwrap(),
            "/apis/x.io/v1/namespaces/n/things?labelSelector=a%20in%20%28b%2Cc%29&fieldSelector=metadata.name%3Dx&"
        );
    }
}
