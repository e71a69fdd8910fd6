//! A small HTTP/1 server with limits: connections and their lifetime, size of headers, time for headers, and the pace of answers.
//!
//! It never reads a body by itself; the reader of one bounds it.

mod pace;
mod permits;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use axum::Router;
use http::Extensions;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::Service as _;

pub use pace::Pace;

use crate::error::Error;
use pace::Paced;
use permits::{ConnectionPermit, ConnectionPermits};

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Concurrent connections. One more ends one that waits for the headers of a request, the oldest of the address with the most of them; it
    /// waits while all have requests.
    pub connections: usize,
    /// Concurrent connections of one address. One more ends the connection of the address that has waited longest for the headers of a
    /// request; it is closed itself if all have requests.
    pub connections_of_address: usize,
    /// Bytes of a request's headers, at least 8 KiB; more get 431.
    pub header_bytes: usize,
    pub header_time: Duration,
    /// Slowest pace at which a client may read an answer; slower connections are ended.
    pub slowest: Pace,
    /// Lifetime of a connection: a slow reader must not take one of the connections for ever.
    pub lifetime: Duration,
    /// Time for running requests to end, at shutdown and at the end of the lifetime.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            // Requests from other networks come through a proxy, which has one address.
            connections_of_address: usize::MAX,
            header_bytes: 16 * 1024,
            header_time: Duration::from_secs(10),
            slowest: Pace::DEFAULT,
            lifetime: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(2),
        }
    }
}

/// The address of the client of a request, in the extensions of the request.
#[derive(Debug, Clone, Copy)]
struct Peer(IpAddr);

/// Returns the address of the client of a request with these extensions, which is the address of the proxy if there is one; `None` if [`serve`]
/// did not receive the request.
#[must_use]
pub fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<Peer>().map(|peer| peer.0)
}

/// Listens on an address as in flags: `:8080` is every interface, `127.0.0.1:0` a free port. URLs of users must not lead there.
pub async fn listen(address: &str) -> Result<TcpListener, Error> {
    let listener = bind(address).await?;
    if let Ok(local) = listener.local_addr() {
        net::add_listener(local);
    }
    Ok(listener)
}

async fn bind(address: &str) -> Result<TcpListener, Error> {
    let failed = |source| Error::Listen {
        address: address.to_owned(),
        source,
    };
    match address.strip_prefix(':') {
        // An IPv6 socket takes IPv4 too, where the host has IPv6.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await.map_err(failed),
        },
        None => TcpListener::bind(address).await.map_err(failed),
    }
}

pub async fn serve(listener: TcpListener, router: Router, limits: Limits, shutdown: CancellationToken) {
    let permits = ConnectionPermits::new(limits.connections, limits.connections_of_address);
    let tasks = TaskTracker::new();
    loop {
        let (stream, peer) = match shutdown.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok(accepted)) => accepted,
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(admitted) = permits.admit(peer.ip().to_canonical()) else {
            tracing::debug!(%peer, "a connection was closed: its address has as many as one may have");
            continue;
        };
        let Some(permit) = shutdown.run_until_cancelled(permits.take(admitted)).await else {
            break;
        };
        // Small answers should leave at once; without it they are only slower.
        let _ = stream.set_nodelay(true);
        tasks.spawn(connection(
            stream,
            permit,
            router.clone(),
            limits,
            shutdown.clone(),
        ));
    }
    tasks.close();
    if tokio::time::timeout(limits.grace, tasks.wait()).await.is_err() {
        tracing::info!("requests were cut off at shutdown");
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    permit: ConnectionPermit,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Peer(permit.address()));
        let (request_permit, mut router) = (permit.start_request(), router.clone());
        async move {
            let response = router.call(request).await?;
            Ok::<_, std::convert::Infallible>(response.map(|body| request_permit.until_the_end_of(body)))
        }
    });
    let stream = Paced::new(stream, limits.slowest);
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes.max(8192))
        .max_header_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        () = permit.ended() => {
            tracing::debug!("a connection without a request was closed for another one");
            return;
        }
        _ = tokio::time::timeout(limits.lifetime, shutdown.cancelled()) => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(limits.grace, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection broke off"),
        Err(_) => tracing::debug!("a connection was cut off"),
    }
}

pub(crate) fn local(listener: &TcpListener) -> String {
    listener
        .local_addr()
        .as_ref()
        .map_or_else(|_| "?".to_owned(), SocketAddr::to_string)
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, routing::get};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    async fn started(limits: Limits) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<()>) {
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let router = Router::new().route("/", get(|| async { "hello" }));
        let server = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
        (address, shutdown, server)
    }

    async fn answer(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[tokio::test]
    async fn server_answers_until_its_shutdown() {
        let (address, shutdown, server) = started(Limits::default()).await;
        let text = answer(address, b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        assert!(
            text.starts_with("HTTP/1.1 200") && text.ends_with("hello"),
            "{text}"
        );
        shutdown.cancel();
        server.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn request_has_the_address_of_its_client() {
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handler =
            |request: axum::extract::Request| async move { format!("{:?}", peer(request.extensions())) };
        let router = Router::new().fallback(handler);
        tokio::spawn(serve(
            listener,
            router,
            Limits::default(),
            CancellationToken::new(),
        ));
        let text = rest(ask_from("127.0.0.2", address, "/").await).await;
        assert!(text.ends_with(b"Some(127.0.0.2)"), "{text:?}");
        assert_eq!(peer(&Extensions::new()), None);
    }

    #[tokio::test]
    async fn slow_and_large_headers_are_cut_off() {
        let limits = Limits {
            header_time: Duration::from_millis(200),
            ..Limits::default()
        };
        let (address, _shutdown, _server) = started(limits).await;
        let slow = answer(address, b"GET / HTTP/1.1\r\nhost: a\r\n").await;
        assert!(!slow.contains("200 OK"), "{slow}");
        let mut large = b"GET / HTTP/1.1\r\nx: ".to_vec();
        large.extend(std::iter::repeat_n(b'a', 64 * 1024));
        let text = answer(address, &large).await;
        assert!(text.starts_with("HTTP/1.1 431") || text.is_empty(), "{text}");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_for_a_permit() {
        let limits = Limits {
            connections: 1,
            ..Limits::default()
        };
        let (address, _shutdown, _server) = started(limits).await;
        let first = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let waiting = tokio::spawn(answer(address, request));
        drop(first);
        assert!(waiting.await.unwrap().ends_with("hello"));
    }

    #[tokio::test]
    async fn connections_without_headers_are_ended_for_others_the_oldest_first() {
        const CONNECTIONS: usize = 4;
        let limits = Limits {
            connections: CONNECTIONS,
            header_time: Duration::from_secs(3600),
            ..Limits::default()
        };
        let (address, _shutdown, _server) = started(limits).await;
        let mut slow = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").await.unwrap();
            slow.push(stream);
        }
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let answered = tokio::time::timeout(Duration::from_secs(10), answer(address, request));
        assert!(answered.await.unwrap().ends_with("hello"));
        // One connection was enough.
        for (at, mut stream) in slow.into_iter().enumerate() {
            let _ = stream.write_all(b"connection: close\r\n\r\n").await;
            let mut bytes = Vec::new();
            let _ = stream.read_to_end(&mut bytes).await;
            assert_eq!(bytes.ends_with(b"hello"), at > 0, "connection {at}");
        }
    }

    #[tokio::test]
    async fn requests_keep_their_connections_until_they_are_answered() {
        let (release, released) = tokio::sync::watch::channel(false);
        let limits = Limits {
            connections: 1,
            header_time: Duration::from_secs(3600),
            ..Limits::default()
        };
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (start, mut started) = tokio::sync::mpsc::channel(2);
        let handler = move || {
            let (start, mut released) = (start.clone(), released.clone());
            async move {
                start.send(()).await.unwrap();
                released.wait_for(|released| *released).await.unwrap();
                "hello"
            }
        };
        let router = Router::new().route("/", get(handler));
        tokio::spawn(serve(listener, router, limits, CancellationToken::new()));
        // It stays open after its answer.
        let mut first = TcpStream::connect(address).await.unwrap();
        first
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        started.recv().await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let second = tokio::spawn(answer(address, request));
        let third = TcpStream::connect(address).await.unwrap();
        drop(third);
        assert!(started.try_recv().is_err());
        release.send_replace(true);
        let mut bytes = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(10), first.read_to_end(&mut bytes));
        let _ = ended.await.unwrap();
        assert!(bytes.ends_with(b"hello"));
        let answered = tokio::time::timeout(Duration::from_secs(10), second);
        assert!(answered.await.unwrap().unwrap().ends_with("hello"));
    }

    async fn ask_from(client: &str, server: SocketAddr, path: &str) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{client}:0").parse().unwrap()).unwrap();
        let mut stream = socket.connect(server).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn rest(mut stream: TcpStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut bytes));
        // A reset is an end, too.
        let _ = read.await.expect("the connection has no end");
        bytes
    }

    #[tokio::test]
    async fn reader_that_takes_nothing_loses_its_connection_to_one_that_reads() {
        // More than the buffers of both sides, in pieces like those read from a file.
        const PIECES: usize = 256;
        const SIZE: usize = 64 << 20;
        let limits = Limits {
            connections: 1,
            slowest: Pace {
                bytes: 1 << 20,
                time: Duration::from_secs(1),
            },
            ..Limits::default()
        };
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let piece = |_| Ok::<_, std::io::Error>(vec![7_u8; SIZE / PIECES]);
        let pieces = move || futures::stream::iter((0..PIECES).map(piece));
        let router = Router::new().route("/", get(move || async move { Body::from_stream(pieces()) }));
        tokio::spawn(serve(listener, router, limits, CancellationToken::new()));
        let mut stalled = ask_from("127.0.0.1", address, "/").await;
        // Its request is under way.
        stalled.read_exact(&mut [0; 12]).await.unwrap();
        let reading = ask_from("127.0.0.1", address, "/").await;
        let whole = rest(reading).await;
        assert!(whole.len() > SIZE, "{} bytes", whole.len());
        let cut = rest(stalled).await;
        assert!(cut.len() < SIZE, "{} bytes", cut.len());
    }

    #[tokio::test]
    async fn one_address_takes_no_more_than_its_part_of_the_connections() {
        let (release, released) = tokio::sync::watch::channel(false);
        let (start, mut started) = tokio::sync::mpsc::channel(4);
        let slow = move || {
            let (start, mut released) = (start.clone(), released.clone());
            async move {
                start.send(()).await.unwrap();
                released.wait_for(|released| *released).await.unwrap();
                "slow"
            }
        };
        let limits = Limits {
            connections: 4,
            connections_of_address: 2,
            header_time: Duration::from_secs(3600),
            ..Limits::default()
        };
        let listener = listen("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .route("/slow", get(slow))
            .route("/", get(|| async { "hello" }));
        tokio::spawn(serve(listener, router, limits, CancellationToken::new()));
        let first = ask_from("127.0.0.1", address, "/slow").await;
        started.recv().await.unwrap();
        // One without a request is closed for another one of its address.
        let idle = TcpStream::connect(address).await.unwrap();
        let second = ask_from("127.0.0.1", address, "/slow").await;
        started.recv().await.unwrap();
        assert_eq!(rest(idle).await, b"");
        assert_eq!(rest(ask_from("127.0.0.1", address, "/").await).await, b"");
        let other = rest(ask_from("127.0.0.2", address, "/").await).await;
        assert!(other.ends_with(b"hello"));
        release.send_replace(true);
        for one in [first, second] {
            assert!(rest(one).await.ends_with(b"slow"));
        }
        // The permits are free again once the connections have ended.
        testkit::eventually("a connection to be free", Duration::from_secs(20), || async {
            let answer = rest(ask_from("127.0.0.1", address, "/").await).await;
            anyhow::ensure!(answer.ends_with(b"hello"));
            Ok(())
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn idle_connections_hold_up_no_shutdown() {
        let limits = Limits {
            grace: Duration::from_secs(3600),
            ..Limits::default()
        };
        let (address, shutdown, server) = started(limits).await;
        let _idle = TcpStream::connect(address).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        assert!(answer(address, request).await.ends_with("hello"));
        shutdown.cancel();
        tokio::time::timeout(Duration::from_secs(10), server)
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn a_connection_ends_with_its_lifetime_between_requests_or_in_one() {
        let limits = Limits {
            lifetime: Duration::from_millis(50),
            grace: Duration::from_millis(50),
            ..Limits::default()
        };
        let (address, _shutdown, _server) = started(limits).await;
        for sent in ["", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: a\r\n\r\n"] {
            let ended = tokio::time::timeout(Duration::from_secs(5), answer(address, sent.as_bytes()));
            assert_eq!(
                ended.await.unwrap().is_empty(),
                !sent.ends_with("\r\n\r\n"),
                "{sent:?}"
            );
        }
    }

    #[tokio::test]
    async fn invalid_address_is_named_in_the_error() {
        let error = listen("nonsense").await.unwrap_err().to_string();
        assert!(error.starts_with("cannot listen on nonsense: "), "{error}");
    }
}
