//! The requests to the services, and their answers.

use reqwest::Method;
use serde_json::{Map, Value as Json};

use super::{HostedRepository, Service, Team, Visibility};

/// Deploy keys on a page: all services allow it.
pub(super) const PAGE: usize = 50;
const DESCRIPTION: &str = "Manifests that Weir applies";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Json>,
    /// True if a conflict says that the work is done.
    pub(super) is_repeatable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) id: u64,
    pub(super) title: String,
    pub(super) key: String,
}

fn get(path: String) -> Call {
    Call {
        method: Method::GET,
        path,
        body: None,
        is_repeatable: false,
    }
}

fn post(path: String, body: Map<String, Json>) -> Call {
    Call {
        method: Method::POST,
        path,
        body: Some(Json::Object(body)),
        is_repeatable: false,
    }
}

fn object<const N: usize>(fields: [(&str, Json); N]) -> Map<String, Json> {
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name.to_owned(), value)).collect()
}

impl HostedRepository {
    /// Returns the path of the repository in the API.
    fn path(&self) -> String {
        let Self { owner, name, .. } = self;
        match self.service {
            Service::GitHub | Service::Gitea => format!("/repos/{owner}/{name}"),
            Service::GitLab => format!("/projects/{}%2F{name}", owner.replace('/', "%2F")),
        }
    }

    pub(super) fn find(&self) -> Call {
        get(self.path())
    }

    /// Returns the request for the ID of the group, which GitLab wants in [`HostedRepository::create`].
    pub(super) fn find_group(&self) -> Option<Call> {
        let is_needed = self.service == Service::GitLab && !self.personal;
        is_needed.then(|| {
            get(format!(
                "/groups/{}?with_projects=false",
                self.owner.replace('/', "%2F")
            ))
        })
    }

    pub(super) fn create(&self, group: Option<u64>) -> Call {
        let mut body = object([
            ("name", self.name.as_str().into()),
            ("description", DESCRIPTION.into()),
        ]);
        match self.service {
            Service::GitHub | Service::Gitea => {
                let is_private = self.visibility != Visibility::Public;
                body.insert("private".to_owned(), is_private.into());
            }
            Service::GitLab => {
                let visibility = match self.visibility {
                    Visibility::Private => "private",
                    Visibility::Internal => "internal",
                    Visibility::Public => "public",
                };
                body.insert("path".to_owned(), self.name.as_str().into());
                body.insert("visibility".to_owned(), visibility.into());
                body.extend(group.map(|group| ("namespace_id".to_owned(), group.into())));
            }
        }
        if self.service != Service::GitHub {
            body.insert("default_branch".to_owned(), self.branch.as_str().into());
        }
        let path = match (self.service, self.personal) {
            (Service::GitLab, _) => "/projects".to_owned(),
            (_, true) => "/user/repos".to_owned(),
            (_, false) => format!("/orgs/{}/repos", self.owner),
        };
        post(path, body)
    }

    fn keys_path(&self) -> String {
        let name = match self.service {
            Service::GitHub | Service::Gitea => "keys",
            Service::GitLab => "deploy_keys",
        };
        format!("{}/{name}", self.path())
    }

    pub(super) fn keys(&self, page: u32) -> Call {
        let size = match self.service {
            Service::GitHub | Service::GitLab => "per_page",
            Service::Gitea => "limit",
        };
        get(format!("{}?{size}={PAGE}&page={page}", self.keys_path()))
    }

    pub(super) fn add_key(&self, title: &str, public: &str, read_only: bool) -> Call {
        let right = match self.service {
            Service::GitHub | Service::Gitea => ("read_only", read_only),
            Service::GitLab => ("can_push", !read_only),
        };
        let body = object([
            ("title", title.into()),
            ("key", public.into()),
            (right.0, right.1.into()),
        ]);
        post(self.keys_path(), body)
    }

    pub(super) fn delete_key(&self, id: u64) -> Call {
        Call {
            method: Method::DELETE,
            path: format!("{}/{id}", self.keys_path()),
            body: None,
            is_repeatable: false,
        }
    }

    /// Returns the request for the ID of a team, which GitLab wants in [`HostedRepository::add_team`].
    pub(super) fn find_team(&self, team: &Team) -> Option<Call> {
        let name = team.name.replace('/', "%2F");
        (self.service == Service::GitLab).then(|| get(format!("/groups/{name}?with_projects=false")))
    }

    pub(super) fn add_team(&self, team: &Team, group: Option<u64>) -> Call {
        let Self { owner, name, .. } = self;
        let (method, path, body) = match self.service {
            Service::GitHub => (
                Method::PUT,
                format!("/orgs/{owner}/teams/{}/repos/{owner}/{name}", team.name),
                Some(object([("permission", team.access.into())])),
            ),
            Service::GitLab => (
                Method::POST,
                format!("{}/share", self.path()),
                Some(object([
                    ("group_id", group.into()),
                    ("group_access", team.level.into()),
                ])),
            ),
            Service::Gitea => (Method::PUT, format!("{}/teams/{}", self.path(), team.name), None),
        };
        Call {
            method,
            path,
            body: body.map(Json::Object),
            is_repeatable: true,
        }
    }
}

/// Reads a list of deploy keys; incomplete entries are left out.
pub(super) fn keys(list: &Json) -> Vec<Key> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let key = |entry: &Json| {
        Some(Key {
            id: entry.get("id")?.as_u64()?,
            title: entry.get("title")?.as_str()?.to_owned(),
            key: entry.get("key")?.as_str()?.to_owned(),
        })
    };
    list.iter().filter_map(key).collect()
}

/// Compares public keys without their comments.
pub(super) fn is_same_key(a: &str, b: &str) -> bool {
    let words = |text: &str| {
        text.split_whitespace()
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    words(a) == words(b)
}
