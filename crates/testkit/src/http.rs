//! Small HTTP servers that live on threads of their own, and a client for asking ours.

use std::{
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use axum::serve::{Listener, ListenerExt as _};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio::io::AsyncWriteExt as _;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::tls::Authority;

/// A server on its own threads, so that it answers whatever the test does; dropping it cuts all connections.
#[derive(Debug)]
pub(crate) struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    authority: Option<Authority>,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) fn start(router: axum::Router, authority: Option<Authority>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("testkit-server")
            .enable_all()
            .build()?;
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("can't listen on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let inside = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&accepted);
        let count = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        match &authority {
            None => {
                let listener = listener.tap_io(move |_| count());
                drop(runtime.spawn(axum::serve(listener, router).into_future()));
            }
            Some(authority) => {
                let listener = Tls::new(listener, TlsAcceptor::from(authority.server_config()?), address);
                let listener = listener.tap_io(move |_| count());
                drop(runtime.spawn(axum::serve(listener, router).into_future()));
            }
        }
        drop(inside);
        Ok(Self {
            runtime: Some(runtime),
            address,
            authority,
            accepted,
        })
    }

    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn origin(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The authority that clients have to trust, for a server with TLS.
    pub(crate) fn ca_pem(&self) -> Option<&str> {
        self.authority.as_ref().map(|authority| authority.ca_pem.as_str())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Accepts connections whose TLS handshake succeeded; a slow handshake holds up no other.
struct Tls {
    ready: mpsc::Receiver<TlsStream<TcpStream>>,
    address: SocketAddr,
}

impl Tls {
    fn new(listener: TcpListener, acceptor: TlsAcceptor, address: SocketAddr) -> Self {
        let (sender, ready) = mpsc::channel(64);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    // A client that doesn't trust us ends the handshake; that is its right.
                    match acceptor.accept(stream).into_fallible().await {
                        Ok(stream) => drop(sender.send(stream).await),
                        Err((_, mut stream)) => {
                            // Closing a connection with unread bytes resets it, and the client might not get our alert.
                            let _ = stream.shutdown().await;
                            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                        }
                    }
                });
            }
        });
        Self { ready, address }
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(stream) => (stream, self.address),
            None => pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.address)
    }
}

/// An HTTP client that follows no redirect, trusts this authority alone, and gives up after ten seconds.
pub fn client(ca_pem: Option<&str>) -> Result<reqwest::Client> {
    Ok(builder(ca_pem)?.timeout(Duration::from_secs(10)).build()?)
}

/// The same for a server of an authority, which may ask for a client certificate.
pub fn client_of(authority: Option<&Authority>) -> Result<reqwest::Client> {
    let Some(authority) = authority else {
        return client(None);
    };
    let builder = with_tls(authority.client_config()?);
    Ok(builder.timeout(Duration::from_secs(10)).build()?)
}

/// The same without a time limit, for answers that go on.
pub(crate) fn client_without_limit(ca_pem: &str) -> Result<reqwest::Client> {
    Ok(builder(Some(ca_pem))?.build()?)
}

fn builder(ca_pem: Option<&str>) -> Result<reqwest::ClientBuilder> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in ca_pem
        .into_iter()
        .flat_map(|pem| CertificateDer::pem_slice_iter(pem.as_bytes()))
    {
        roots.add(certificate?)?;
    }
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(with_tls(tls))
}

fn with_tls(tls: rustls::ClientConfig) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
}
