//! Hosting services of Git: creating a repository and its deploy key by their REST APIs.

mod calls;
mod team;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use api::Secret;
use net::{AddressPolicy, Client, ClientOptions, Timeouts, Tls};
use reqwest::{
    Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue},
};
use serde_json::Value as Json;
use url::Url;

use calls::{Call, Key};
pub(super) use team::Team;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER: u64 = 8 << 20;
/// Maximum number of pages of deploy keys.
const MAX_PAGES: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    GitHub,
    GitLab,
    Gitea,
}

impl Service {
    pub(super) const fn variable(self) -> &'static str {
        match self {
            Self::GitHub => "GITHUB_TOKEN",
            Self::GitLab => "GITLAB_TOKEN",
            Self::Gitea => "GITEA_TOKEN",
        }
    }

    /// Returns the address of the API of a host.
    fn api(self, host: &str) -> String {
        match (self, host) {
            (Self::GitHub, "github.com") => "https://api.github.com".to_owned(),
            (Self::GitHub, host) => format!("https://{host}/api/v3"),
            (Self::GitLab, host) => format!("https://{host}/api/v4"),
            (Self::Gitea, host) => format!("https://{host}/api/v1"),
        }
    }

    fn authorization(self, token: &str) -> (HeaderName, String) {
        match self {
            Self::GitHub => (AUTHORIZATION, format!("Bearer {token}")),
            Self::GitLab => (HeaderName::from_static("private-token"), token.to_owned()),
            Self::Gitea => (AUTHORIZATION, format!("token {token}")),
        }
    }
}

/// The people who may see a new repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Visibility {
    /// Members
    Private,
    /// All users of the server
    Internal,
    /// Everybody
    Public,
}

/// A repository at a hosting service, which need not exist.
#[derive(Debug, Clone)]
pub(super) struct HostedRepository {
    pub(super) service: Service,
    pub(super) host: String,
    pub(super) owner: String,
    pub(super) name: String,
    /// True if the owner is a user, not an organization or group.
    pub(super) personal: bool,
    pub(super) visibility: Visibility,
    pub(super) branch: String,
}

impl HostedRepository {
    pub(super) fn url(&self) -> String {
        format!("https://{}/{}/{}.git", self.host, self.owner, self.name)
    }

    /// Checks the names, which become parts of addresses.
    pub(super) fn check(&self) -> Result<()> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_path = |text: &str| {
            text.split('/')
                .all(|part| !part.is_empty() && part.chars().all(is_word))
        };
        ensure!(
            is_path(&self.owner) && (self.service == Service::GitLab || !self.owner.contains('/')),
            "--owner '{}' is not the name of a user or organization",
            self.owner
        );
        ensure!(
            !self.name.contains('/') && is_path(&self.name),
            "--repository '{}' is not the name of a repository: the owner is in --owner",
            self.name
        );
        let host = self.host.chars().all(|c| is_word(c) || c == ':');
        ensure!(
            host && !self.host.is_empty(),
            "--hostname '{}' is not a host",
            self.host
        );
        Ok(())
    }
}

/// A connection to the API of a hosting service.
pub(super) struct Hosting {
    repository: HostedRepository,
    api: String,
    token: Secret<String>,
    client: Client,
}

impl Hosting {
    pub(super) fn new(repository: HostedRepository, token: Secret<String>, ca: Option<&str>) -> Result<Self> {
        let api = repository.service.api(&repository.host);
        let options = ClientOptions {
            tls: Tls::with_ca(ca.map(str::as_bytes)),
            timeouts: Timeouts {
                connect: TIMEOUT,
                read: Some(TIMEOUT),
                total: Some(TIMEOUT),
            },
            ..ClientOptions::new(AddressPolicy::command_line())
        };
        Ok(Self {
            repository,
            api,
            token,
            client: options.build()?,
        })
    }

    #[cfg(test)]
    fn at(mut self, api: &str) -> Self {
        api.clone_into(&mut self.api);
        self
    }

    /// Creates the repository unless it exists. Returns true if it was created.
    pub(super) async fn create_repository(&self) -> Result<bool> {
        if self.call(&self.repository.find()).await?.is_some() {
            return Ok(false);
        }
        let group = match self.repository.find_group() {
            Some(call) => {
                let found = self.call(&call).await?;
                let id = found.as_ref().and_then(|group| group.get("id")?.as_u64());
                Some(id.with_context(|| format!("the group '{}' is not found", self.repository.owner))?)
            }
            None => None,
        };
        let created = self.call(&self.repository.create(group)).await?;
        created.with_context(|| {
            format!(
                "the owner '{}' is not found, or the token may not create repositories: use --personal if it is a user",
                self.repository.owner
            )
        })?;
        Ok(true)
    }

    /// Gives a team access; one that has it keeps it.
    pub(super) async fn add_team(&self, team: &Team) -> Result<()> {
        let group = match self.repository.find_team(team) {
            Some(call) => {
                let found = self.call(&call).await?;
                let id = found.as_ref().and_then(|group| group.get("id")?.as_u64());
                Some(id.with_context(|| format!("{team} is not found"))?)
            }
            None => None,
        };
        let added = self.call(&self.repository.add_team(team, group)).await?;
        added.with_context(|| format!("{team} is not found, or the token may not give it access"))?;
        Ok(())
    }

    /// Adds a deploy key; one with the same title and another key is replaced. Returns true if it was added.
    pub(super) async fn add_key(&self, title: &str, public: &str, read_only: bool) -> Result<bool> {
        for page in 1..=MAX_PAGES {
            let listed = self.call(&self.repository.keys(page)).await?;
            let listed = listed.context("the deploy keys of the repository can't be listed")?;
            let keys: Vec<Key> = calls::keys(&listed);
            for key in keys.iter().filter(|key| key.title == title) {
                if calls::is_same_key(&key.key, public) {
                    return Ok(false);
                }
                self.call(&self.repository.delete_key(key.id)).await?;
            }
            if keys.len() < calls::PAGE {
                break;
            }
        }
        let added = self
            .call(&self.repository.add_key(title, public, read_only))
            .await?;
        added.context("the token may not add deploy keys")?;
        Ok(true)
    }

    /// Sends a request. Returns `None` if the server answers that there is nothing.
    async fn call(&self, call: &Call) -> Result<Option<Json>> {
        let url: Url = format!("{}{}", self.api, call.path).parse()?;
        let mut request = Request::new(call.method.clone(), url);
        let (name, value) = self.repository.service.authorization(self.token.expose());
        let mut value = HeaderValue::from_str(&value).context("the token has line ends")?;
        value.set_sensitive(true);
        let headers = request.headers_mut();
        headers.insert(name, value);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(body) = &call.body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(body.to_string().into());
        }
        let what = format!("{} {}{}", call.method, self.api, call.path);
        let mut answer = self.client.send(request).await.with_context(|| what.clone())?;
        let status = answer.status();
        let body = net::read_body(&mut answer, MAX_ANSWER)
            .await
            .with_context(|| what.clone())?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        // The team has access already.
        if status == StatusCode::CONFLICT && call.is_repeatable {
            return Ok(Some(Json::Null));
        }
        if !status.is_success() {
            bail!("{what}: {}", self.refusal(status, &body));
        }
        if call.method == Method::DELETE || body.is_empty() {
            return Ok(Some(Json::Null));
        }
        Ok(Some(
            serde_json::from_slice(&body).with_context(|| format!("{what}: the answer is not JSON"))?,
        ))
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> String {
        let variable = self.repository.service.variable();
        if status == StatusCode::UNAUTHORIZED {
            return format!("the token is refused: set ${variable} to a valid one");
        }
        let said: Json = serde_json::from_slice(body).unwrap_or_default();
        let said = said.get("message").and_then(Json::as_str).unwrap_or_default();
        let said: String = said.chars().filter(|c| !c.is_control()).take(300).collect();
        format!("HTTP status {status}: {}", api::redact(&said))
    }
}
