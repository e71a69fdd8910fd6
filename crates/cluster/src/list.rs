//! Listing the objects that carry a label, over all kinds.

use std::{collections::HashSet, time::Duration};

use futures::{StreamExt as _, stream};
use yaml::{Map, Value};

use crate::{Cluster, Error, Kind, connection::Call, path};

/// How many objects one answer may hold.
const PAGE: usize = 500;
/// How old the list of kinds may be: one that was added since would be overlooked.
const KINDS_AGE: Duration = Duration::from_secs(10);

/// How much of each object is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Full,
    /// Its metadata, which is enough for deciding whether it goes, and far less to send and to read.
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

/// Which objects are listed.
struct Query {
    selector: String,
    detail: Detail,
    /// How many objects there may be.
    most: usize,
}

/// Why a list is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incomplete {
    /// The identity may not list this kind everywhere (but perhaps in the namespaces that were named).
    Forbidden {
        /// Group, version and kind.
        kind: String,
    },
    /// The kind can't be listed at the moment.
    Failed {
        /// Group, version and kind.
        kind: String,
        /// Why.
        reason: String,
    },
}

/// What was found.
#[derive(Debug, Default)]
pub struct Listing {
    /// The objects, each with `apiVersion` and `kind`.
    pub objects: Vec<Value>,
    /// What could not be looked at.
    pub incomplete: Vec<Incomplete>,
    /// The groups and kinds that the API server warns of whenever they are asked for.
    pub warned: HashSet<(String, String)>,
}

/// The objects of a kind, page by page.
struct Pages {
    objects: Vec<Value>,
    /// Whether the API server warned of the kind.
    warned: bool,
}

impl Listing {
    fn add(&mut self, kind: &Kind, pages: Pages) {
        self.objects.extend(pages.objects);
        if pages.warned {
            self.warned.insert((kind.group.clone(), kind.kind.clone()));
        }
    }
}

impl Cluster {
    /// Lists the objects of all kinds with `label=value`. A kind that may not be listed in the whole cluster is listed
    /// in each of `namespaces`. `wanted` tells how much is wanted of a kind; nothing is asked about the others.
    ///
    /// # Errors
    /// When the kinds can't be found out, or the work is cancelled; a kind that fails is reported in the listing.
    pub async fn list_labelled(
        &self,
        label: &str,
        value: &str,
        namespaces: &[String],
        wanted: impl Fn(&Kind) -> Option<Detail>,
    ) -> Result<Listing, Error> {
        let snapshot = self.recent_snapshot(KINDS_AGE).await?;
        let selector = format!("labelSelector={}%3D{}", path::encode(label), path::encode(value));
        let kinds: Vec<(Kind, Query)> = snapshot
            .listable()
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
            let found = found?;
            listing.objects.extend(found.objects);
            listing.incomplete.extend(found.incomplete);
            listing.warned.extend(found.warned);
        }
        Ok(listing)
    }

    /// All objects of a kind, or those in one namespace, as the API server lists them.
    ///
    /// # Errors
    /// When there are more than `most`, or the API server refuses or can't be asked.
    pub async fn list(&self, kind: &Kind, namespace: Option<&str>, most: usize) -> Result<Value, Error> {
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

    async fn list_kind(&self, kind: &Kind, query: &Query, namespaces: &[String]) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let name = format!("{}, Kind={}", kind.api_version(), kind.kind);
        match self.list_pages(kind, None, query).await {
            Ok(pages) => listing.add(kind, pages),
            Err(error) if error.is_forbidden() => {
                listing.incomplete.push(Incomplete::Forbidden { kind: name });
                if kind.namespaced {
                    for namespace in namespaces {
                        match self.list_pages(kind, Some(namespace), query).await {
                            Ok(pages) => listing.add(kind, pages),
                            Err(Error::Cancelled) => return Err(Error::Cancelled),
                            Err(_) => {}
                        }
                    }
                }
            }
            Err(error) if error.is_not_found() => {}
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => listing.incomplete.push(Incomplete::Failed {
                kind: name,
                reason: error.to_string(),
            }),
        }
        Ok(listing)
    }

    async fn list_pages(&self, kind: &Kind, namespace: Option<&str>, query: &Query) -> Result<Pages, Error> {
        let what = format!("list {}", kind.plural);
        let url = path::collection(kind, namespace)?;
        let (mut objects, mut warned) = (Vec::new(), false);
        let mut next = String::new();
        loop {
            let call = Call {
                accept: query.detail.accept(),
                ..Call::get(format!("{url}?{}&limit={PAGE}{next}", query.selector))
            };
            let answer = match self.send(&what, &call).await?.success(None) {
                // The list took so long that its snapshot is gone: begin again.
                Err(error) if error.code() == Some(410) && !next.is_empty() => {
                    objects.clear();
                    next.clear();
                    continue;
                }
                other => other?,
            };
            warned |= !answer.warnings.is_empty();
            let Value::Map(mut list) = answer.value(&what)? else {
                return Err(Error::Malformed {
                    what,
                    reason: "the list is no map".to_owned(),
                });
            };
            let more = list
                .get_map("metadata")
                .and_then(|metadata| metadata.get_str("continue"))
                .filter(|token| !token.is_empty())
                .map(|token| format!("&continue={}", path::encode(token)));
            if let Some(Value::Seq(items)) = list.remove("items") {
                objects.extend(items.into_iter().map(|item| typed(item, kind)));
            }
            if objects.len() > query.most {
                return Err(Error::TooMany {
                    what,
                    limit: query.most,
                });
            }
            match more {
                Some(more) => next = more,
                None => return Ok(Pages { objects, warned }),
            }
        }
    }
}

/// Items of lists do not say what they are.
fn typed(mut item: Value, kind: &Kind) -> Value {
    if let Some(map) = item.as_map_mut() {
        map.insert("apiVersion", kind.api_version());
        map.insert("kind", kind.kind.as_str());
    }
    item
}
