//! A real S3-compatible server: `rclone serve s3`.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, process::Command};

use anyhow::{Result, ensure};
use reqwest::{Client, Method};
use serde_json::json;

use crate::{
    gobuild::{Recipe, program},
    http,
    ports::free_address,
    process::{Group, Identity},
    tls::Authority,
    wait::WAIT_TIMEOUT,
};

static RECIPE: Recipe = Recipe {
    module: "s3",
    packages: &["./."],
    programs: &["s3"],
    tags: "",
    seconds: 10,
};

/// The access key of a server that checks signatures.
pub const ACCESS_KEY: &str = "weir-access-key";
pub const SECRET_KEY: &str = "s3cret-of-the-bucket";

#[derive(Debug, Default)]
pub struct S3Options {
    /// Accepts every request; by default, only those that are signed with [`SECRET_KEY`].
    pub anonymous: bool,
    /// Speaks HTTPS with the certificate of this authority.
    pub authority: Option<Authority>,
    /// Accepts only clients with a certificate of the authority.
    pub client_certificates: bool,
}

#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    control: SocketAddr,
    authority: Option<Authority>,
    client: Client,
    group: Group,
}

impl S3Server {
    /// Finds the server in the cache, or builds it.
    pub fn resolve() -> Result<PathBuf> {
        program("s3", &RECIPE, "github.com/rclone/gofakes3")
    }

    pub async fn start() -> Result<Self> {
        Self::start_with(S3Options::default()).await
    }

    pub async fn start_with(options: S3Options) -> Result<Self> {
        let program = tokio::task::spawn_blocking(Self::resolve).await??;
        let group = Group::create("s3", Identity::current())?;
        let (address, control) = (free_address()?, free_address()?);
        let mut configuration = json!({
            "Address": address.to_string(),
            "Control": control.to_string(),
            "Keys": if options.anonymous { json!({}) } else { json!({ACCESS_KEY: SECRET_KEY}) },
        });
        if let (Some(authority), Some(fields)) = (&options.authority, configuration.as_object_mut()) {
            fields.insert(
                "Certificate".to_owned(),
                json!(group.write("server.pem", &authority.server_pem)?),
            );
            fields.insert(
                "Key".to_owned(),
                json!(group.write("server.key", &authority.server_key_pem)?),
            );
            if options.client_certificates {
                fields.insert(
                    "ClientCA".to_owned(),
                    json!(group.write("ca.pem", &authority.ca_pem)?),
                );
            }
        }
        let file = group.write("config.json", &configuration.to_string())?;
        group.spawn("s3", Command::new(program).arg(&file).current_dir(group.dir()))?;
        let this = Self {
            address,
            control,
            authority: options.authority,
            client: http::client(None)?,
            group,
        };
        let answers = this
            .group
            .eventually("the S3 server to answer", WAIT_TIMEOUT, || async {
                this.client.get(this.url("-/requests")).send().await?;
                tokio::net::TcpStream::connect(this.address).await?;
                Ok(())
            });
        answers.await?;
        Ok(this)
    }

    #[must_use]
    pub fn endpoint(&self) -> String {
        self.address.to_string()
    }

    #[must_use]
    pub fn authority(&self) -> Option<&Authority> {
        self.authority.as_ref()
    }

    /// Creates a bucket with these objects, or adds them to it.
    pub async fn put(&self, bucket: &str, objects: &[(&str, impl AsRef<[u8]>)]) -> Result<()> {
        if self.client.head(self.url(bucket)).send().await?.status() == 404 {
            self.control(Method::PUT, bucket, String::new()).await?;
        }
        for (key, content) in objects {
            let path = format!("{bucket}/{}", encoded(key));
            self.control(Method::PUT, &path, content.as_ref().to_vec())
                .await?;
        }
        Ok(())
    }

    pub async fn delete(&self, bucket: &str, key: &str) -> Result<()> {
        self.control(
            Method::DELETE,
            &format!("{bucket}/{}", encoded(key)),
            String::new(),
        )
        .await?;
        Ok(())
    }

    /// Returns the names of the objects of a bucket, a thousand at most.
    pub async fn names(&self, bucket: &str) -> Result<Vec<String>> {
        let listed = self.control(Method::GET, bucket, String::new()).await?;
        let keys = listed.split("<Key>").skip(1);
        let names = keys.filter_map(|rest| Some(rest.split_once("</Key>")?.0.to_owned()));
        Ok(names.collect())
    }

    /// Lets every request of clients fail with status 503, or ends that.
    pub async fn outage(&self, begins: bool) -> Result<()> {
        self.control(Method::PUT, "-/outage", begins.to_string()).await?;
        Ok(())
    }

    /// Writes these objects, or deletes those without content, as soon as the next listing was answered.
    pub async fn change_after_listing(
        &self,
        bucket: &str,
        changes: &BTreeMap<&str, Option<&str>>,
    ) -> Result<()> {
        let changes = changes.iter();
        let changes: Vec<_> = changes
            .map(|(key, content)| json!({"Bucket": bucket, "Key": key, "Content": content}))
            .collect();
        self.control(Method::PUT, "-/after-list", json!(changes).to_string())
            .await?;
        Ok(())
    }

    /// Returns method, path and query of the requests since the last call.
    pub async fn take_requests(&self) -> Result<Vec<String>> {
        let text = self.control(Method::GET, "-/requests", String::new()).await?;
        Ok(serde_json::from_str(&text)?)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.control)
    }

    async fn control(&self, method: Method, path: &str, body: impl Into<Vec<u8>>) -> Result<String> {
        let body = body.into();
        let answer = self
            .client
            .request(method, self.url(path))
            .header("content-length", body.len())
            .body(body)
            .send()
            .await?;
        let status = answer.status();
        let text = answer.text().await?;
        ensure!(status.is_success(), "{path}: {status}: {text}");
        Ok(text)
    }
}

fn encoded(key: &str) -> String {
    let mut out = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
