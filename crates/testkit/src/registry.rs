//! A real OCI registry, with the authentication methods of registries.

pub(crate) mod signer;
mod tokens;

use std::{net::SocketAddr, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Client, RequestBuilder, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    gobuild::{Recipe, program},
    http,
    ports::free_address,
    process::{Group, Identity},
    tls::Authority,
    wait::WAIT_TIMEOUT,
};
use tokens::Tokens;

pub use signer::Signer;

static RECIPE: Recipe = Recipe {
    module: "registry",
    packages: &["weir/hack/registry"],
    programs: &["registry"],
    tags: "",
    seconds: 90,
};

pub const USER: &str = "me";
pub const PASSWORD: &str = "s3cret";
/// Identity token of [`USER`], used instead of the password; only for [`Login::Token`].
pub const IDENTITY: &str = "s3cretidentity";
/// The line of both in a file of htpasswd, with the cheapest hash.
const HTPASSWD: &str = "me:$2a$04$k6MH4RkROWzMyO.o7kIG/.S0K1wMmPd0xSB9RZNpp9wlS/GTm4G8i\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    Anonymous,
    Basic,
    /// By a token that another server gives for user and password.
    Token,
}

#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    login: Login,
    tokens: Tokens,
    authority: Option<Authority>,
    client: Client,
    group: Group,
}

impl Registry {
    /// Finds the registry in the cache, or builds it.
    pub fn resolve() -> Result<PathBuf> {
        program("registry", &RECIPE, "github.com/distribution/distribution/v3")
    }

    /// Starts an empty registry that speaks HTTP, or HTTPS with the certificate of an authority.
    pub async fn start(login: Login, authority: Option<Authority>) -> Result<Self> {
        let program = tokio::task::spawn_blocking(Self::resolve).await??;
        let group = Group::create("registry", Identity::current())?;
        let address = free_address()?;
        let tokens = Tokens::start()?;
        let configuration = configuration(&group, address, login, &tokens, authority.as_ref())?;
        let file = group.write("config.json", &configuration.to_string())?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg(&file)
            .env("OTEL_TRACES_EXPORTER", "none")
            .current_dir(group.dir());
        group.spawn("registry", &mut command)?;
        let this = Self {
            address,
            login,
            tokens,
            client: http::client_of(authority.as_ref())?,
            authority,
            group,
        };
        let answers = this
            .group
            .eventually("the registry to answer", WAIT_TIMEOUT, || async {
                this.client.get(this.url("")).send().await?;
                Ok(())
            });
        answers.await?;
        Ok(this)
    }

    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns the CA certificate in PEM format; empty without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.authority.as_ref().map_or("", |authority| &authority.ca_pem)
    }

    #[must_use]
    pub fn tokens_given(&self) -> usize {
        self.tokens.given()
    }

    /// Returns method and path of all requests so far, as `HEAD /v2/org/repo/manifests/latest`, except for those that only find out if it
    /// speaks HTTP (`GET /v2/`). A request is listed a moment after it was answered.
    pub fn requests(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.group.log("registry"))?;
        let quoted = log.lines().filter_map(|line| line.split('"').nth(1));
        let requests = quoted.filter_map(|request| request.split(" HTTP/").next().map(str::to_owned));
        Ok(requests
            .filter(|request| request.contains(" /v2/") && request != "GET /v2/")
            .collect())
    }

    fn url(&self, rest: &str) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/v2/{rest}", self.address)
    }

    pub async fn push_chart(&self, repository: &str, tag: &str, archive: &[u8]) -> Result<String> {
        let kinds = [
            "application/vnd.cncf.helm.config.v1+json",
            "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
        ];
        self.push(repository, tag, kinds, archive).await
    }

    /// Pushes the packed files of a project as `kluctl oci push` does, with its annotations about their commit; returns the
    /// digest of its manifest.
    pub async fn push_project(
        &self,
        repository: &str,
        tag: &str,
        archive: &[u8],
        commit: &str,
    ) -> Result<String> {
        let kinds = [
            "application/vnd.cncf.flux.config.v1+json",
            "application/vnd.cncf.flux.content.v1.tar+gzip",
        ];
        let url = format!("https://git.example.com/{repository}.git");
        let info =
            json!({"url": url, "ref": {"branch": "main"}, "subDir": "", "commit": commit, "dirty": false});
        let notes = json!({
            "io.kluctl.image.git_info": info.to_string(),
            "org.opencontainers.image.revision": format!("main@sha1:{commit}"),
            "org.opencontainers.image.source": url,
        });
        self.push_noted(repository, tag, kinds, archive, Some(notes))
            .await
    }

    /// Pushes an artifact of one layer, by the types of its config and its layer; returns the digest of its manifest.
    pub async fn push(&self, repository: &str, tag: &str, kinds: [&str; 2], layer: &[u8]) -> Result<String> {
        self.push_noted(repository, tag, kinds, layer, None).await
    }

    async fn push_noted(
        &self,
        repository: &str,
        tag: &str,
        kinds: [&str; 2],
        layer: &[u8],
        notes: Option<Value>,
    ) -> Result<String> {
        let config = self.push_blob(repository, kinds[0], b"{}").await?;
        let layer = self.push_blob(repository, kinds[1], layer).await?;
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let mut manifest =
            json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]});
        if let (Some(notes), Some(fields)) = (notes, manifest.as_object_mut()) {
            fields.insert("annotations".to_owned(), notes);
        }
        self.push_manifest(repository, tag, &manifest).await
    }

    /// Pushes a manifest under a tag, or under its digest if `tag` is empty; returns its digest. Its blobs have to be there
    /// ([`Self::push_blob`]).
    pub async fn push_manifest(&self, repository: &str, tag: &str, manifest: &Value) -> Result<String> {
        let kind = manifest["mediaType"]
            .as_str()
            .context("a manifest needs a mediaType")?;
        let manifest = manifest.to_string();
        let digest = digest(manifest.as_bytes());
        let reference = if tag.is_empty() { &digest } else { tag };
        let url = self.url(&format!("{repository}/manifests/{reference}"));
        let request = self
            .client
            .put(url)
            .header(header::CONTENT_TYPE, kind)
            .body(manifest);
        let answer = self.allowed(request, repository)?.send().await?;
        let status = answer.status();
        ensure!(status.is_success(), "{status}: {}", answer.text().await?);
        Ok(digest)
    }

    /// Pushes a blob; returns its descriptor with this media type.
    pub async fn push_blob(&self, repository: &str, kind: &str, bytes: &[u8]) -> Result<Value> {
        let begin = self
            .client
            .post(self.url(&format!("{repository}/blobs/uploads/")));
        let answer = self
            .allowed(begin, repository)?
            .send()
            .await?
            .error_for_status()?;
        let location = answer
            .headers()
            .get(header::LOCATION)
            .context("no place to upload to")?;
        let mut url = reqwest::Url::parse(location.to_str()?)?;
        url.query_pairs_mut().append_pair("digest", &digest(bytes));
        let put = self.client.put(url).body(bytes.to_vec());
        self.allowed(put, repository)?.send().await?.error_for_status()?;
        Ok(json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()}))
    }

    fn allowed(&self, request: RequestBuilder, repository: &str) -> Result<RequestBuilder> {
        Ok(match self.login {
            Login::Anonymous => request,
            Login::Basic => request.basic_auth(USER, Some(PASSWORD)),
            Login::Token => {
                request.bearer_auth(self.tokens.sign(&format!("repository:{repository}:pull,push"))?)
            }
        })
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Returns the configuration of the registry, as JSON, which is also YAML.
fn configuration(
    group: &Group,
    address: SocketAddr,
    login: Login,
    tokens: &Tokens,
    authority: Option<&Authority>,
) -> Result<Value> {
    let auth = match login {
        Login::Anonymous => json!({}),
        Login::Basic => json!({"htpasswd": {"realm": "test", "path": group.write("htpasswd", HTPASSWD)?}}),
        Login::Token => json!({"token": {
            "realm": tokens.url(),
            "service": tokens::SERVICE,
            "issuer": tokens::ISSUER,
            "jwks": group.write("jwks.json", &tokens.keys().to_string())?,
            "signingalgorithms": ["EdDSA"],
        }}),
    };
    let tls = match authority {
        None => json!({}),
        Some(authority) => json!({
            "certificate": group.write("server.pem", &authority.server_pem)?,
            "key": group.write("server.key", &authority.server_key_pem)?,
            "clientcas": match authority.clients_ca() {
                Some(ca) => vec![group.write("clients.pem", ca)?],
                None => Vec::new(),
            },
        }),
    };
    Ok(json!({
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": false}},
        "storage": {"inmemory": {}},
        "http": {"addr": address.to_string(), "tls": tls},
        "auth": auth,
    }))
}
