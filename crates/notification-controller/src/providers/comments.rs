//! `githubpullrequestcomment`, `gitlabmergerequestcomment` and `giteapullrequestcomment`: one comment per object and Provider on the
//! change request that an event names, which later events replace.

use api::{Event, Secret};
use http::Method;
use notification_specs::provider;
use serde_json::{Value, json};

use super::{
    git::{self, Repository},
    gitea,
    github::Hub,
    gitlab,
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

pub(super) const GITHUB: ProviderType = ProviderType {
    rules: provider::GITHUB_COMMENT,
    steps: github,
};

pub(super) const GITLAB: ProviderType = ProviderType {
    rules: provider::GITLAB_COMMENT,
    steps: gitlab,
};

pub(super) const GITEA: ProviderType = ProviderType {
    rules: provider::GITEA_COMMENT,
    steps: gitea,
};

/// A comment: the line that marks it, and its whole content.
struct Comment {
    marker: String,
    text: String,
}

impl Comment {
    fn of(event: &Event, config: &Config, prefix: &str) -> Self {
        let marker = format!("<!-- {prefix}: {}/{} -->", config.uid, wire::full_name(event));
        let text = format!("{marker}\n\n{}", wire::markdown(event));
        Self { marker, text }
    }

    /// Returns the ID of the comment in a server's list, if it exists and the own user wrote it.
    fn find(&self, listed: &[u8], author: &str, own: &Value) -> Result<Option<String>, Error> {
        let listed: Vec<Value> = serde_json::from_slice(listed).map_err(|_| Error::Answer)?;
        let found = listed.iter().find(|comment| {
            let body = comment["body"].as_str().unwrap_or_default();
            body.starts_with(&self.marker) && comment.pointer(author) == Some(own)
        });
        Ok(found
            .and_then(|comment| comment["id"].as_u64())
            .map(|id| id.to_string()))
    }
}

fn github(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let number = git::change_request(event)?;
    let comment = Comment::of(event, config, "flux-pr-comment-key");
    Hub::of(config)?.own_name(config, move |hub, login, name| {
        let all = hub.repository(&["issues", &number, "comments"])?;
        let mut list = all.clone();
        list.set_query(Some("per_page=100"));
        let asked = login.on(wire::get(Secret::new(list)));
        let (hub, login, own) = (hub.clone(), login.clone(), Value::from(name));
        let next = move |body: &[u8]| {
            let found = comment.find(body, "/user/login", &own)?;
            let text = json!({"body": comment.text});
            let request = match found {
                Some(id) => change(
                    Method::PATCH,
                    hub.repository(&["issues", "comments", &id])?,
                    &text,
                )?,
                None => change(Method::POST, all, &text)?,
            };
            Ok(vec![Step::Send(login.on(request))])
        };
        Ok(vec![Step::Ask(asked, Box::new(next))])
    })
}

fn change(method: Method, url: url::Url, body: &Value) -> Result<Request, Error> {
    Ok(Request {
        method,
        ..wire::json(Secret::new(url), body)?
    })
}

fn gitlab(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (repository, number) = (Repository::of(config)?, git::change_request(event)?);
    let comment = Comment::of(event, config, "flux-mr-comment-key");
    let token = Secret::new(config.token_or_password()?.to_owned());
    let login = move |mut request: Request| {
        wire::secret_header(&mut request.headers, gitlab::TOKEN, token.expose())?;
        Ok::<_, Error>(request)
    };
    let user = login(wire::get(repository.at(["api", "v4", "user"])?))?;
    let next = move |body: &[u8]| {
        let user: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
        let own = user
            .get("id")
            .filter(|id| id.is_u64())
            .ok_or(Error::Answer)?
            .clone();
        let project = repository.path.join("/");
        let notes = [
            "api",
            "v4",
            "projects",
            &project,
            "merge_requests",
            &number,
            "notes",
        ];
        let all = repository.at(notes)?.into_inner();
        let mut list = all.clone();
        list.set_query(Some("per_page=100&sort=asc&order_by=created_at"));
        let asked = login(wire::get(Secret::new(list)))?;
        let next = move |body: &[u8]| {
            let text = json!({"body": comment.text});
            let request = match comment.find(body, "/author/id", &own)? {
                Some(id) => {
                    let mut one = all;
                    one.path_segments_mut().map_err(|()| Error::BadAddress)?.push(&id);
                    change(Method::PUT, one, &text)?
                }
                None => change(Method::POST, all, &text)?,
            };
            Ok(vec![Step::Send(login(request)?)])
        };
        Ok(vec![Step::Ask(asked, Box::new(next) as super::interface::Next)])
    };
    Ok(vec![Step::Ask(user, Box::new(next))])
}

fn gitea(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (repository, number) = (Repository::of(config)?, git::change_request(event)?);
    repository.owner_and_name()?;
    let comment = Comment::of(event, config, "flux-pr-comment-key");
    let config = config.clone();
    let user = gitea::login(wire::get(repository.at(["api", "v1", "user"])?), &config)?;
    let next = move |body: &[u8]| {
        let user: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
        let own = user
            .get("id")
            .filter(|id| id.is_u64())
            .ok_or(Error::Answer)?
            .clone();
        let issues = move |rest: [&str; 2]| {
            let own = repository.path.iter().map(String::as_str);
            repository.at(["api", "v1", "repos"]
                .into_iter()
                .chain(own)
                .chain(["issues"])
                .chain(rest))
        };
        let asked = gitea::login(wire::get(issues([&number, "comments"])?), &config)?;
        let next = move |body: &[u8]| {
            let text = json!({"body": comment.text});
            let request = match comment.find(body, "/user/id", &own)? {
                Some(id) => change(Method::PATCH, issues(["comments", &id])?.into_inner(), &text)?,
                None => change(Method::POST, issues([&number, "comments"])?.into_inner(), &text)?,
            };
            Ok(vec![Step::Send(gitea::login(request, &config)?)])
        };
        Ok(vec![Step::Ask(asked, Box::new(next) as super::interface::Next)])
    };
    Ok(vec![Step::Ask(user, Box::new(next))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::{self, with},
        git::testing::{body, follow, printed},
    };

    fn event() -> Event {
        let mut event = fixture::event();
        event.metadata.insert("change_request".into(), "7".into());
        event
    }

    fn both(kind: ProviderType, address: &str, user: &Value, own: &Value, other: &Value) -> [Vec<String>; 2] {
        let config = with(address, "", "t0ken");
        let mut none = follow(kind, &event(), &config, &[&user.to_string(), "[]"]);
        let last = none.last().unwrap();
        let text = body(last)["body"].as_str().unwrap().to_owned();
        assert!(
            text.contains("## Flux Status") && !text.contains("change_request"),
            "{text}"
        );
        let merged = |id: u64, who: &Value| {
            let mut comment = who.clone();
            comment["id"] = id.into();
            comment["body"] = text.clone().into();
            comment
        };
        let listed = json!([merged(1, other), {"id": 2, "body": "else"}, merged(3, own)]).to_string();
        let mut some = follow(kind, &event(), &config, &[&user.to_string(), &listed]);
        [&mut none, &mut some].map(|requests| requests.iter().map(printed).collect())
    }

    #[test]
    fn comment_is_created_once_and_then_replaced() {
        let [none, some] = both(
            GITHUB,
            "https://github.com/team/shop",
            &json!({"login": "bot"}),
            &json!({"user": {"login": "bot"}}),
            &json!({"user": {"login": "eve"}}),
        );
        let base = "https://api.github.com/repos/team/shop/issues";
        assert_eq!(none[1], format!("GET {base}/7/comments?per_page=100"));
        assert_eq!(none[2], format!("POST {base}/7/comments"));
        assert_eq!(some[2], format!("PATCH {base}/comments/3"));
        let [none, some] = both(
            GITLAB,
            "https://gitlab.example/team/shop",
            &json!({"id": 5}),
            &json!({"author": {"id": 5}}),
            &json!({"author": {"id": 6}}),
        );
        let base = "https://gitlab.example/api/v4/projects/team%2Fshop/merge_requests/7/notes";
        assert_eq!(none[2], format!("POST {base}"));
        assert_eq!(some[2], format!("PUT {base}/3"));
        let [none, some] = both(
            GITEA,
            "https://gitea.example/team/shop",
            &json!({"id": 5}),
            &json!({"user": {"id": 5}}),
            &json!({"user": {"id": 6}}),
        );
        let base = "https://gitea.example/api/v1/repos/team/shop/issues";
        assert_eq!(none[2], format!("POST {base}/7/comments"));
        assert_eq!(some[2], format!("PATCH {base}/comments/3"));
    }

    #[test]
    fn comment_needs_the_number_of_a_change_request() {
        for number in ["", "x", "1/../2", "-1"] {
            let mut event = event();
            event.metadata.insert("change_request".into(), number.into());
            let error = github(&event, &with("https://github.com/team/shop", "", "t")).unwrap_err();
            assert!(matches!(error, Error::Event(_)), "{number}");
        }
    }
}
