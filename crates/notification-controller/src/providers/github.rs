//! `github`: the status of a commit on GitHub, as a user with a token or as a GitHub App.

use api::{Event, Secret};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use notification_specs::provider;
use serde_json::{Value, json};
use url::Url;

use super::{
    git::{Listed, Repository, States, Status},
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

const VERSION: HeaderName = HeaderName::from_static("x-github-api-version");
const APP: &str = "Secret of a GitHub App";
const STATES: States = States {
    success: "success",
    failure: "failure",
    pending: None,
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GITHUB,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let hub = Hub::of(config)?;
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    hub.signed_in(config, move |hub, login| {
        let mut list = hub.repository(&["commits", &status.commit, "statuses"])?;
        list.set_query(Some("per_page=50"));
        let body = json!({"state": status.state, "context": status.id, "description": status.description});
        let post = wire::json(Secret::new(hub.repository(&["statuses", &status.commit])?), &body)?;
        let listed = Listed {
            list: "",
            id: "/context",
            state: "/state",
            description: "/description",
        };
        let id = status.id.clone();
        let asked = login.on(wire::get(Secret::new(list)));
        Ok(status.unless_same(asked, listed, id, login.on(post)))
    })
}

/// A repository on GitHub, or on a server of GitHub Enterprise.
#[derive(Debug, Clone)]
pub(super) struct Hub {
    api: Url,
    owner: String,
    name: String,
}

/// Headers that authenticate a request.
#[derive(Debug, Clone)]
pub(super) struct Login(HeaderMap);

impl Login {
    fn bearer(token: &str) -> Result<Self, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/vnd.github+json"),
        );
        headers.insert(VERSION, HeaderValue::from_static("2022-11-28"));
        wire::secret_header(&mut headers, header::AUTHORIZATION, &format!("Bearer {token}"))?;
        Ok(Self(headers))
    }

    pub(super) fn on(&self, mut request: Request) -> Request {
        request.headers.extend(self.0.clone());
        request
    }
}

impl Hub {
    pub(super) fn of(config: &Config) -> Result<Self, Error> {
        let repository = Repository::of(config)?;
        let (owner, name) = repository.owner_and_name()?;
        let (owner, name) = (owner.to_owned(), name.to_owned());
        let base = config.keys.get("githubAppBaseURL");
        let api = match (base, repository.server.host_str()) {
            (Some(base), _) => {
                Url::parse(base.expose()).map_err(|_| Error::Config("githubAppBaseURL is not a URL"))?
            }
            (None, Some("github.com")) => {
                Url::parse("https://api.github.com/").map_err(|_| Error::BadAddress)?
            }
            (None, _) => wire::at(&repository.server, ["api", "v3"])?,
        };
        Ok(Self { api, owner, name })
    }

    pub(super) fn at(&self, path: &[&str]) -> Result<Url, Error> {
        wire::at(&self.api, self.api.path().split('/').chain(path.iter().copied()))
    }

    pub(super) fn repository(&self, path: &[&str]) -> Result<Url, Error> {
        self.at(&[&["repos", &self.owner, &self.name], path].concat())
    }

    /// Returns the steps of `then` with a token: the token of the Secret, or one that GitHub issues to an App.
    pub(super) fn signed_in(
        self,
        config: &Config,
        then: impl FnOnce(&Self, &Login) -> Result<Vec<Step>, Error> + Send + 'static,
    ) -> Result<Vec<Step>, Error> {
        let Some(app) = app_token(config)? else {
            let login = Login::bearer(config.token_or_password()?)?;
            return then(&self, &login);
        };
        let app = Login::bearer(&app)?;
        let token = move |hub: Self, installation: &str, app: &Login| {
            let url = hub.at(&["app", "installations", installation, "access_tokens"])?;
            let asked = app.on(wire::post(Secret::new(url), bytes::Bytes::new()));
            let next = move |body: &[u8]| {
                let answer: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
                let token = answer.get("token").and_then(Value::as_str).ok_or(Error::Answer)?;
                then(&hub, &Login::bearer(token)?)
            };
            Ok(vec![Step::Ask(asked, Box::new(next))])
        };
        if let Some(installation) = config.keys.get("githubAppInstallationID") {
            return token(self, installation.expose(), &app);
        }
        let asked = match config.keys.get("githubAppInstallationOwner") {
            Some(owner) => self.at(&["users", owner.expose(), "installation"])?,
            None => self.repository(&["installation"])?,
        };
        let asked = app.on(wire::get(Secret::new(asked)));
        let next = move |body: &[u8]| {
            let answer: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
            let id = answer.get("id").and_then(Value::as_u64).ok_or(Error::Answer)?;
            token(self, &id.to_string(), &app)
        };
        Ok(vec![Step::Ask(asked, Box::new(next))])
    }

    /// Returns the login name of an App or a user, and the steps that follow from it.
    pub(super) fn own_name(
        self,
        config: &Config,
        then: impl FnOnce(&Self, &Login, &str) -> Result<Vec<Step>, Error> + Send + 'static,
    ) -> Result<Vec<Step>, Error> {
        let read = |body: &[u8], key: &str| {
            let answer: Value = serde_json::from_slice(body).map_err(|_| Error::Answer)?;
            let text = answer.get(key).and_then(Value::as_str);
            text.map(str::to_owned).ok_or(Error::Answer)
        };
        match app_token(config)? {
            None => self.signed_in(config, move |hub, login| {
                let asked = login.on(wire::get(Secret::new(hub.at(&["user"])?)));
                let (hub, login) = (hub.clone(), login.clone());
                let next = move |body: &[u8]| then(&hub, &login, &read(body, "login")?);
                Ok(vec![Step::Ask(asked, Box::new(next))])
            }),
            Some(app) => {
                let asked = Login::bearer(&app)?.on(wire::get(Secret::new(self.at(&["app"])?)));
                let config = config.clone();
                let next = move |body: &[u8]| {
                    let name = format!("{}[bot]", read(body, "slug")?);
                    self.signed_in(&config, move |hub, login| then(hub, login, &name))
                };
                Ok(vec![Step::Ask(asked, Box::new(next))])
            }
        }
    }
}

/// Returns the token of an App for ten minutes, or `None` if the Secret has no App.
fn app_token(config: &Config) -> Result<Option<String>, Error> {
    let (id, key) = (
        config.keys.get("githubAppID"),
        config.keys.get("githubAppPrivateKey"),
    );
    let (id, key) = match (id, key) {
        (Some(id), Some(key)) => (id.expose(), key.expose()),
        (None, None) => return Ok(None),
        _ => {
            return Err(Error::Config(
                "a GitHub App needs both keys githubAppID and githubAppPrivateKey in the Secret of spec.secretRef",
            ));
        }
    };
    let now = jiff::Timestamp::now().as_second();
    // Clocks differ.
    let claims = json!({"iat": now - 60, "exp": now + 540, "iss": id});
    let token = cloud::jwt::rs256(APP, &claims, key);
    let token = token.map_err(|_| Error::Config("githubAppPrivateKey is no RSA key in PEM"))?;
    Ok(Some(token))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::{self, with},
        git::testing::{HASH, body, event, follow, printed},
    };

    #[test]
    fn github_status_is_posted_unless_the_newest_says_the_same() {
        let config = with("https://github.com/team/shop.git", "", "t0ken");
        let requests = follow(TYPE, &event(), &config, &["[]"]);
        let base = "https://api.github.com/repos/team/shop";
        assert_eq!(
            printed(&requests[0]),
            format!("GET {base}/commits/{HASH}/statuses?per_page=50")
        );
        assert_eq!(printed(&requests[1]), format!("POST {base}/statuses/{HASH}"));
        assert_eq!(requests[1].headers["authorization"], "Bearer t0ken");
        let expected = json!({
            "state": "success", "context": "gitrepository/shop/0c9c2e41", "description": "new artifact",
        });
        assert_eq!(body(&requests[1]), expected);
        let same = json!([expected]).to_string();
        assert_eq!(follow(TYPE, &event(), &config, &[&same]).len(), 1);
        let mut other = expected.clone();
        other["state"] = "failure".into();
        // The newest counts.
        let mixed = json!([other, expected]).to_string();
        assert_eq!(follow(TYPE, &event(), &config, &[&mixed]).len(), 2);
    }

    #[test]
    fn github_enterprise_has_its_api_below_a_path() {
        let requests = follow(
            TYPE,
            &event(),
            &with("git@ghe.example:team/shop.git", "", "t"),
            &["[]"],
        );
        assert_eq!(
            printed(&requests[1]),
            format!("POST https://ghe.example/api/v3/repos/team/shop/statuses/{HASH}")
        );
    }

    #[test]
    fn github_status_needs_a_repository_and_a_token() {
        for config in [
            with("https://github.com/team", "", "t"),
            with("https://github.com/team/shop", "", ""),
        ] {
            assert!(steps(&event(), &config).is_err());
        }
        let mut half = with("https://github.com/team/shop", "", "");
        half.keys.insert("githubAppID", Secret::new("1".into()));
        assert!(steps(&event(), &half).is_err());
        assert!(steps(&fixture::event(), &with("https://github.com/team/shop", "", "t")).is_err());
    }
}
