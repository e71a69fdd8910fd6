//! A real NATS server, and a subscriber.

use std::{net::SocketAddr, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use crate::{
    gobuild::{Recipe, program},
    ports::free_address,
    process::{Group, Identity},
    tls::Authority,
    wait::WAIT_TIMEOUT,
};

static RECIPE: Recipe = Recipe {
    module: "nats",
    packages: &["github.com/nats-io/nats-server/v2"],
    programs: &["nats-server"],
    tags: "",
    seconds: 60,
};
/// The user who may subscribe to everything.
const READER: &str = "reader";

#[derive(Debug)]
pub struct NatsServer {
    address: SocketAddr,
    _group: Group,
}

#[derive(Debug)]
pub struct NatsMessages(BufReader<TcpStream>);

#[derive(Debug)]
pub struct NatsMessage {
    pub subject: String,
    /// Headers as they were sent; empty without any.
    pub headers: String,
    pub payload: Vec<u8>,
}

impl NatsServer {
    /// Finds the server in the cache, or builds it.
    pub fn resolve() -> Result<PathBuf> {
        program("nats", &RECIPE, "github.com/nats-io/nats-server/v2")
    }

    /// Starts a server with these users, as entries of `authorization.users` in its configuration. With an authority it wants
    /// TLS of everybody.
    pub async fn start(users: &[&str], authority: Option<&Authority>) -> Result<Self> {
        let program = tokio::task::spawn_blocking(Self::resolve).await??;
        let group = Group::create("nats", Identity::current())?;
        let address = free_address()?;
        let users = users.join("\n");
        let mut text = format!(
            "listen: \"{address}\"\nauthorization {{ users: [\n{{user: {READER}, password: {READER}}}\n{users}\n] }}\n"
        );
        if let Some(authority) = authority {
            let (certificate, key) = (
                group.write("server.pem", &authority.server_pem)?,
                group.write("server.key", &authority.server_key_pem)?,
            );
            text.push_str(&format!(
                "tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\n"
            ));
        }
        let path = group.write("nats.conf", &text)?;
        group.spawn("nats", Command::new(program).arg("-c").arg(&path))?;
        group
            .eventually("the NATS server to answer", WAIT_TIMEOUT, || async {
                TcpStream::connect(address).await?;
                Ok(())
            })
            .await?;
        Ok(Self {
            address,
            _group: group,
        })
    }

    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Subscribes to all subjects, on a server without TLS.
    pub async fn subscribe(&self) -> Result<NatsMessages> {
        let mut stream = BufReader::new(TcpStream::connect(self.address).await?);
        let login = format!(
            "CONNECT {{\"verbose\":false,\"headers\":true,\"user\":\"{READER}\",\"pass\":\"{READER}\"}}\r\nSUB > 1\r\nPING\r\n"
        );
        stream.write_all(login.as_bytes()).await?;
        let mut messages = NatsMessages(stream);
        while messages.line().await?.trim_end() != "PONG" {}
        Ok(messages)
    }
}

impl NatsMessages {
    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(WAIT_TIMEOUT, self.0.read_line(&mut line));
        ensure!(
            read.await.context("the server says nothing")?? > 0,
            "the server went away"
        );
        ensure!(!line.starts_with("-ERR"), "the server says {line}");
        Ok(line)
    }

    pub async fn next(&mut self) -> Result<NatsMessage> {
        loop {
            let line = self.line().await?;
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (subject, head, total) = match words.as_slice() {
                ["MSG", subject, _, total] => (*subject, 0, total.parse::<usize>()?),
                ["HMSG", subject, _, head, total] => (*subject, head.parse()?, total.parse()?),
                ["PING"] => {
                    self.0.write_all(b"PONG\r\n").await?;
                    continue;
                }
                _ => continue,
            };
            let mut bytes = vec![0; total + 2];
            self.0.read_exact(&mut bytes).await?;
            bytes.truncate(total);
            let payload = bytes.split_off(head);
            // The server tells an account about failed logins.
            if subject.starts_with('$') {
                continue;
            }
            return Ok(NatsMessage {
                subject: subject.to_owned(),
                headers: String::from_utf8(bytes)?,
                payload,
            });
        }
    }
}
