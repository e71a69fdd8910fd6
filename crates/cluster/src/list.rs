//! Listing the objects with a label, over all kinds.

use std::{collections::HashSet, fmt, time::Duration};

use futures::{StreamExt as _, stream};
use limits::Share;
use yaml::{Map, Value};

use crate::{
    AnswerLimit, Cluster, Error, ResourceKind, Snapshot,
    connection::send::{Answer, Call},
    path,
};

/// Objects on one page of a list. Pages that are too large are repeated with a tenth of it.
const PAGE: usize = 500;
/// Maximum number of pages of a list: 500,000 objects.
const PAGES: usize = 1000;
const KINDS_AGE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Full,
    /// The metadata, which is enough for a decision about deletion, and far less to transfer and to parse.
    Metadata,
}

impl Detail {
    const fn accept(self) -> &'static str {
        match self {
            Self::Full => "application/json",
            Self::Metadata => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }
}

struct Query {
    selector: String,
    detail: Detail,
    most: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub group: String,
    pub version: String,
    /// `None` if the kinds of the whole version are unknown, because its API server is down.
    pub kind: Option<String>,
    /// `None` for the whole cluster.
    pub namespace: Option<String>,
    pub forbidden: bool,
    pub reason: String,
}

impl Gap {
    fn new(kind: &ResourceKind, namespace: Option<&str>, error: &Error) -> Self {
        Self {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: Some(kind.kind.clone()),
            namespace: namespace.map(str::to_owned),
            forbidden: error.is_forbidden(),
            reason: error.to_string(),
        }
    }

    /// Returns true if objects of this kind may be missing because of the gap.
    #[must_use]
    pub fn concerns(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind.as_ref().is_none_or(|own| own == kind)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api_version = objects::join_api_version(&self.group, &self.version);
        write!(f, "can't list {api_version}")?;
        if let Some(kind) = &self.kind {
            write!(f, ", Kind={kind}")?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// The effect of missing rights on a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Restriction {
    /// All kinds may be listed in the whole cluster.
    #[default]
    None,
    /// Some kind may not be listed in the whole cluster, and the given namespaces have no object of it.
    Refused,
    ByNamespace,
}

#[derive(Debug, Default)]
pub struct Listing {
    pub objects: Vec<Value>,
    /// Parts that could not be listed: nothing is known about objects in them.
    pub gaps: Vec<Gap>,
    pub restriction: Restriction,
    /// Groups and kinds with a warning of the API server on every request.
    pub warned: HashSet<(String, String)>,
    shares: Vec<Share>,
}

struct Pages {
    objects: Vec<Value>,
    warned: bool,
    share: Share,
}

impl Listing {
    fn add(&mut self, kind: &ResourceKind, pages: Pages) {
        self.objects.extend(pages.objects);
        self.shares.push(pages.share);
        if pages.warned {
            self.warned.insert((kind.group.clone(), kind.kind.clone()));
        }
    }

    /// Adds the objects of another listing, without its gaps.
    pub fn add_objects(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.shares.extend(other.shares);
        self.warned.extend(other.warned);
    }

    fn extend(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.shares.extend(other.shares);
        self.gaps.extend(other.gaps);
        self.restriction = self.restriction.max(other.restriction);
        self.warned.extend(other.warned);
    }
}

impl Cluster {
    /// Lists the objects of all kinds with `label=value`, except for Events, which nobody deploys. A kind that may not be
    /// listed in the whole cluster is listed in each of `namespaces`. `wanted` returns the requested part of a kind's objects;
    /// kinds without one are not listed.
    ///
    /// # Errors
    /// Fails when discovery fails or the operation is cancelled. A kind that can't be listed is a gap of the listing.
    pub async fn list_labelled(
        &self,
        label: &str,
        value: &str,
        namespaces: &[String],
        wanted: impl Fn(&ResourceKind) -> Option<Detail>,
    ) -> Result<Listing, Error> {
        let snapshot = self.recent_snapshot(KINDS_AGE).await?;
        self.list_kinds(&snapshot, (label, value), namespaces, wanted)
            .await
    }

    /// Lists objects as [`Cluster::list_labelled`] does, of the kinds of a snapshot.
    pub async fn list_kinds(
        &self,
        snapshot: &Snapshot,
        (label, value): (&str, &str),
        namespaces: &[String],
        wanted: impl Fn(&ResourceKind) -> Option<Detail>,
    ) -> Result<Listing, Error> {
        let selector = format!("labelSelector={}%3D{}", path::encode(label), path::encode(value));
        let kinds: Vec<(ResourceKind, Query)> = snapshot
            .listable()
            .filter(|kind| !kind.is_event())
            .filter_map(|kind| {
                let query = Query {
                    selector: selector.clone(),
                    detail: wanted(kind)?,
                    most: usize::MAX,
                };
                Some((kind.clone(), query))
            })
            .collect();
        let mut lists = stream::iter(kinds)
            .map(|(kind, query)| async move { self.list_kind(&kind, &query, namespaces).await })
            .buffer_unordered(16);
        let mut listing = Listing::default();
        while let Some(found) = lists.next().await {
            listing.extend(found?);
        }
        listing.gaps.extend(snapshot.stale().iter().map(|stale| Gap {
            group: stale.group.clone(),
            version: stale.version.clone(),
            kind: None,
            namespace: None,
            forbidden: false,
            reason: "the API server of this group is not available, so its kinds are unknown".to_owned(),
        }));
        Ok(listing)
    }

    /// Returns the objects of a kind with a label selector (all if it is empty), in one namespace or all, each with
    /// `apiVersion` and `kind`.
    ///
    /// # Errors
    /// Fails when there are more than `most` objects, or the API server refuses (also a malformed selector) or can't be
    /// reached.
    pub async fn list_selected(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        selector: &str,
        detail: Detail,
        most: usize,
    ) -> Result<Vec<Value>, Error> {
        let query = Query {
            selector: match selector {
                "" => String::new(),
                selector => format!("labelSelector={}", path::encode(selector)),
            },
            detail,
            most,
        };
        Ok(self.list_pages(kind, namespace, &query).await?.objects)
    }

    /// Returns all objects of a kind, or all in one namespace, as a list object of the API server.
    pub async fn list(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        most: usize,
    ) -> Result<Value, Error> {
        let query = Query {
            selector: String::new(),
            detail: Detail::Full,
            most,
        };
        let items = self.list_pages(kind, namespace, &query).await?.objects;
        let list: [(String, Value); 4] = [
            ("apiVersion".to_owned(), kind.api_version().into()),
            ("kind".to_owned(), format!("{}List", kind.kind).into()),
            ("metadata".to_owned(), Value::Map(Map::new())),
            ("items".to_owned(), Value::Seq(items)),
        ];
        Ok(Value::Map(list.into_iter().collect()))
    }

    async fn list_kind(
        &self,
        kind: &ResourceKind,
        query: &Query,
        namespaces: &[String],
    ) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        match self.list_pages(kind, None, query).await {
            Ok(pages) => listing.add(kind, pages),
            Err(error) if error.is_forbidden() => {
                listing.restriction = Restriction::Refused;
                if !kind.namespaced || namespaces.is_empty() {
                    listing.gaps.push(Gap::new(kind, None, &error));
                    return Ok(listing);
                }
                for namespace in namespaces {
                    match self.list_pages(kind, Some(namespace), query).await {
                        Ok(pages) => listing.add(kind, pages),
                        Err(Error::Cancelled) => return Err(Error::Cancelled),
                        Err(error) => listing.gaps.push(Gap::new(kind, Some(namespace), &error)),
                    }
                }
                if !listing.objects.is_empty() {
                    listing.restriction = Restriction::ByNamespace;
                }
            }
            Err(error) if error.is_not_found() => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => listing.gaps.push(Gap::new(kind, None, &error)),
        }
        // Objects that can't be deleted were never applied, like metrics.
        listing.gaps.retain(|_| kind.deletable);
        Ok(listing)
    }

    async fn list_pages(
        &self,
        kind: &ResourceKind,
        namespace: Option<&str>,
        query: &Query,
    ) -> Result<Pages, Error> {
        let what = format!("list {}", kind.plural);
        let url = path::collection(kind, namespace)?;
        let mut pages = Pages {
            objects: Vec::new(),
            warned: false,
            share: self.no_memory(),
        };
        let (mut size, mut next) = (PAGE, String::new());
        for _ in 0..PAGES {
            let call = Call {
                accept: query.detail.accept(),
                ..Call::get(format!("{url}?{}&limit={size}{next}", query.selector))
            };
            let answer = match self.send_beside(&what, &call, &pages.share).await {
                // A server may send more than asked for: each size is tried once.
                Err(Error::TooLarge { why, .. }) if why.is_too_large() && size > 1 => {
                    size = size.div_ceil(10);
                    continue;
                }
                other => other?.success(None),
            };
            let mut answer = match answer {
                // The pages took so long that the snapshot of the list expired: start again.
                Err(error) if error.code() == Some(410) && !next.is_empty() => {
                    pages.objects.clear();
                    pages.share = self.no_memory();
                    next.clear();
                    continue;
                }
                other => other?,
            };
            let merged = pages.share.merge(&mut answer.share);
            merged.map_err(|why| self.too_large(&what, why.into()))?;
            match pages.add(kind, &what, &answer)? {
                _ if pages.objects.len() > query.most => {
                    return Err(Error::TooMany {
                        what,
                        limit: query.most,
                    });
                }
                Some(more) => next = more,
                None => return Ok(pages),
            }
        }
        Err(self.too_large(&what, AnswerLimit::Pages(PAGES)))
    }
}

impl Pages {
    fn add(&mut self, kind: &ResourceKind, what: &str, answer: &Answer) -> Result<Option<String>, Error> {
        self.warned |= !answer.warnings.is_empty();
        let Value::Map(mut list) = answer.value(what)? else {
            return Err(Error::Malformed {
                what: what.to_owned(),
                reason: "the list is not a map".to_owned(),
            });
        };
        if let Some(Value::Seq(items)) = list.remove("items") {
            self.objects
                .extend(items.into_iter().map(|item| typed(item, kind)));
        }
        let token = list.get_map("metadata").and_then(|data| data.get_str("continue"));
        let token = token.filter(|token| !token.is_empty());
        Ok(token.map(|token| format!("&continue={}", path::encode(token))))
    }
}

fn typed(mut item: Value, kind: &ResourceKind) -> Value {
    if let Some(map) = item.as_map_mut() {
        map.insert("apiVersion", kind.api_version());
        map.insert("kind", kind.kind.as_str());
    }
    item
}
