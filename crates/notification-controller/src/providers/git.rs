//! The parts that the types for Git servers share: the repository, the commit, and the status of a commit.

use api::{Event, Secret};
use serde_json::Value;
use url::Url;

use super::{
    interface::{Check, Config, Request, Step},
    wire,
};
use crate::error::Error;

const NO_REPOSITORY: Error = Error::Config("the address is not the URL of a Git repository");
const NO_REVISION: Error = Error::Event("missing revision metadata: the event names no commit");

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) server: Url,
    /// The segments of the path, without `.git`.
    pub(super) path: Vec<String>,
}

impl Repository {
    /// Parses the repository of an address: an http or https URL, one of ssh, or `user@host:path`. The API of a server that is
    /// reached over ssh is expected at https.
    pub(super) fn of(config: &Config) -> Result<Self, Error> {
        let address = config.address()?;
        let url = match Url::parse(address) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => url,
            Ok(url) if matches!(url.scheme(), "ssh" | "git" | "git+ssh") => {
                let host = url.host_str().ok_or(NO_REPOSITORY)?;
                Url::parse(&format!("https://{host}{}", url.path())).map_err(|_| NO_REPOSITORY)?
            }
            Ok(_) => return Err(NO_REPOSITORY),
            Err(_) => {
                let (host, path) = address.split_once(':').ok_or(NO_REPOSITORY)?;
                let host = host.rsplit('@').next().unwrap_or(host);
                Url::parse(&format!("https://{host}/{}", path.trim_start_matches('/')))
                    .map_err(|_| NO_REPOSITORY)?
            }
        };
        let path = url.path().trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let path: Vec<_> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let mut server = wire::at(&url, [])?;
        let plain = server.set_username("").and_then(|()| server.set_password(None));
        plain.map_err(|()| NO_REPOSITORY)?;
        if path.is_empty() || server.host_str().is_none_or(str::is_empty) {
            return Err(NO_REPOSITORY);
        }
        Ok(Self { server, path })
    }

    /// Returns owner and name; fails for any other number of segments.
    pub(super) fn owner_and_name(&self) -> Result<(&str, &str), Error> {
        match &self.path[..] {
            [owner, name] => Ok((owner, name)),
            _ => Err(Error::Config(
                "the address does not name a repository as owner/name",
            )),
        }
    }

    pub(super) fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Result<Secret<Url>, Error> {
        wire::at(&self.server, path).map(Secret::new)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    /// Statuses with the same name replace each other.
    pub(super) id: String,
    /// The hash of the commit, in hexadecimal digits.
    pub(super) commit: String,
    /// The name of the state on the server.
    pub(super) state: &'static str,
    pub(super) description: String,
}

pub(super) struct States {
    pub(super) success: &'static str,
    pub(super) failure: &'static str,
    /// The state for work in progress; without one, such events are skipped.
    pub(super) pending: Option<&'static str>,
}

impl Status {
    /// Returns the status that an event gives its commit, or `None` if it gives none.
    /// Fails when the event names no commit, or its severity is neither `info` nor `error`.
    pub(super) fn of(event: &Event, config: &Config, states: &States) -> Result<Option<Self>, Error> {
        let state = match (&event.severity, wire::is_progressing(event)) {
            (_, true) => match states.pending {
                Some(pending) => pending,
                None => return Ok(None),
            },
            (api::Severity::Info, _) => states.success,
            (api::Severity::Error, _) => states.failure,
            _ => return Err(Error::Event("its severity is neither info nor error")),
        };
        let (kind, _, name) = wire::object(event);
        let uid = config.uid.split('-').next().unwrap_or_default();
        let usual = || format!("{kind}/{name}/{uid}").to_lowercase();
        Ok(Some(Self {
            id: config.status_id.clone().unwrap_or_else(usual),
            commit: commit(event)?,
            state,
            description: wire::description(event),
        }))
    }

    /// Returns the key for servers that limit its length: the hash of the ID.
    pub(super) fn key(&self) -> String {
        use sha2::Digest as _;
        hex::encode(sha1::Sha1::digest(&self.id))
    }

    /// Returns the steps of a status: it is posted unless the newest one with its ID in the response to `asked` is equal. `at` has the
    /// JSON pointer of the list and the names of ID, state and description in its items.
    pub(super) fn unless_same(self, asked: Request, at: Listed, id: String, post: Request) -> Vec<Step> {
        let next = move |body: &[u8]| {
            if body.is_empty() {
                return Ok(vec![Step::Send(post)]);
            }
            let listed: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
            let items = listed.pointer(at.list).and_then(Value::as_array);
            let text = |item: &Value, at: &str| item.pointer(at).and_then(Value::as_str).map(str::to_owned);
            let newest = items
                .into_iter()
                .flatten()
                .find(|item| text(item, at.id).as_deref() == Some(&id));
            let same = newest.is_some_and(|newest| {
                text(newest, at.state).as_deref() == Some(self.state)
                    && text(newest, at.description).as_deref() == Some(&self.description)
            });
            Ok(if same { Vec::new() } else { vec![Step::Send(post)] })
        };
        vec![Step::Ask(asked, Box::new(next))]
    }
}

/// The form of a list of statuses, newest first, as JSON pointers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    pub(super) list: &'static str,
    pub(super) id: &'static str,
    pub(super) state: &'static str,
    pub(super) description: &'static str,
}

/// Returns a GET that takes 404 for an empty list.
pub(super) fn find(address: Secret<Url>) -> Request {
    Request {
        check: Check::Found,
        ..wire::get(address)
    }
}

/// Returns the hash of the commit of an event: from `commit`, `originRevision` or `revision`, in this order.
/// Fails when the event has none of them, or it has no hash.
pub(super) fn commit(event: &Event) -> Result<String, Error> {
    let revision = ["commit", "originRevision", "revision"]
        .iter()
        .find_map(|key| event.metadata.get(*key));
    let revision = revision.ok_or(NO_REVISION)?;
    // `main@sha1:1234`, `sha256:1234`, `main/1234` of old releases, or the hash alone.
    let last = revision.rsplit(['@', '/']).next().unwrap_or_default();
    let hash = last.rsplit(':').next().unwrap_or_default();
    if (7..=64).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash.to_owned());
    }
    Err(Error::Event("its revision has no hash of a commit"))
}
/// Fails when the event names none, or the name is not a number.
pub(super) fn change_request(event: &Event) -> Result<String, Error> {
    let number = event
        .metadata
        .get("change_request")
        .and_then(|number| number.parse::<u64>().ok());
    let number = number.ok_or(Error::Event(
        "its metadata change_request is not the number of a change request",
    ))?;
    Ok(number.to_string())
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::providers::{fixture, interface::ProviderType};

    pub(crate) const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

    pub(crate) fn event() -> Event {
        let mut event = fixture::event();
        event
            .metadata
            .insert("revision".into(), format!("main@sha1:{HASH}"));
        event
    }

    /// Returns the steps of a type for the event: the question, and the steps that follow from these responses, in order.
    pub(crate) fn follow(
        kind: ProviderType,
        event: &Event,
        config: &Config,
        answers: &[&str],
    ) -> Vec<Request> {
        let mut answers = answers.iter();
        let mut steps: std::collections::VecDeque<_> = (kind.steps)(event, config).unwrap().into();
        let mut requests = Vec::new();
        while let Some(step) = steps.pop_front() {
            requests.push(step.request().unwrap().clone());
            if let Step::Ask(_, next) = step {
                steps.extend(next(answers.next().unwrap().as_bytes()).unwrap());
            }
        }
        requests
    }

    pub(crate) fn printed(request: &Request) -> String {
        format!("{} {}", request.method, request.address.expose())
    }

    pub(crate) fn body(request: &Request) -> Value {
        serde_json::from_slice(&request.body).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fixture;

    #[test]
    fn repository_is_read_of_all_forms_of_addresses() {
        for (address, server, path) in [
            ("https://github.com/team/shop", "https://github.com/", "team/shop"),
            (
                "http://git.example:3000/team/shop.git/",
                "http://git.example:3000/",
                "team/shop",
            ),
            (
                "https://u:s3cret@git.example/team/sub/shop.git",
                "https://git.example/",
                "team/sub/shop",
            ),
            (
                "ssh://git@git.example:2222/team/shop.git",
                "https://git.example/",
                "team/shop",
            ),
            ("git@github.com:team/shop.git", "https://github.com/", "team/shop"),
        ] {
            let found = Repository::of(&fixture::with(address, "", "")).unwrap();
            assert_eq!(
                (found.server.as_str(), found.path.join("/").as_str()),
                (server, path)
            );
        }
        for address in [
            "https://github.com",
            "file:///x",
            "nonsense",
            "git@:x",
            "https://",
        ] {
            assert!(
                Repository::of(&fixture::with(address, "", "")).is_err(),
                "{address}"
            );
        }
    }

    #[test]
    fn commit_is_the_hash_of_the_first_known_revision() {
        let hash = testing::HASH;
        for (key, value) in [
            ("revision", format!("main@sha1:{hash}")),
            ("revision", format!("main/{hash}")),
            ("revision", hash.to_owned()),
            ("originRevision", format!("refs/heads/main@sha1:{hash}")),
            ("commit", format!("sha1:{hash}")),
        ] {
            let mut event = fixture::event();
            event.metadata.insert(key.into(), value);
            assert_eq!(commit(&event).unwrap(), hash, "{key}");
        }
        let mut event = fixture::event();
        for odd in ["../../x", "main@sha1:", "main@sha1:zz34567", ""] {
            event.metadata.insert("revision".into(), odd.into());
            assert!(commit(&event).is_err(), "{odd}");
        }
        event.metadata.clear();
        assert_eq!(commit(&event), Err(NO_REVISION));
    }

    #[test]
    fn status_is_left_out_while_work_is_in_progress() {
        let states = |pending| States {
            success: "s",
            failure: "f",
            pending,
        };
        let mut event = testing::event();
        let status = Status::of(&event, &fixture::config(), &states(None))
            .unwrap()
            .unwrap();
        assert_eq!(
            (status.id.as_str(), status.state),
            ("gitrepository/shop/0c9c2e41", "s")
        );
        event.severity = api::Severity::Error;
        assert_eq!(
            Status::of(&event, &fixture::config(), &states(None))
                .unwrap()
                .unwrap()
                .state,
            "f"
        );
        event.reason = "Progressing".into();
        assert_eq!(
            Status::of(&event, &fixture::config(), &states(None)).unwrap(),
            None
        );
        assert_eq!(
            Status::of(&event, &fixture::config(), &states(Some("p")))
                .unwrap()
                .unwrap()
                .state,
            "p"
        );
        (event.reason, event.severity) = ("x".into(), api::Severity::Trace);
        assert!(Status::of(&event, &fixture::config(), &states(None)).is_err());
    }
}
