//! The HTTP server of the storage: files only, no listing, nothing that is not an artifact.

mod handler;
mod request;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{Error, Storage};

/// What one server takes on.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; further ones wait.
    pub connections: usize,
    /// How long a client may take for the head of a request, and be idle between two.
    pub header_timeout: Duration,
    /// Bytes of the head of a request.
    pub header_bytes: usize,
    /// How long a connection may live in all.
    pub lifetime: Duration,
    /// How long running downloads may go on when the server is told to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            header_timeout: Duration::from_secs(15),
            header_bytes: 16 << 10,
            lifetime: Duration::from_secs(30 * 60),
            grace: Duration::from_secs(5),
        }
    }
}

/// A server that listens but does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    storage: Arc<Storage>,
    limits: Limits,
}

impl Server {
    /// Listens on `address`, as in `:9090` or `127.0.0.1:0`.
    ///
    /// # Errors
    /// When the address is none, or taken.
    pub async fn bind(address: &str, storage: Arc<Storage>, limits: Limits) -> Result<Self, Error> {
        let failed = |source| Error::Listen {
            address: address.to_owned(),
            source,
        };
        let listener = match address.strip_prefix(':') {
            // All addresses, of both families where the system has both.
            Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
                Ok(listener) => listener,
                Err(_) => TcpListener::bind(format!("0.0.0.0:{port}"))
                    .await
                    .map_err(failed)?,
            },
            None => TcpListener::bind(address).await.map_err(failed)?,
        };
        Ok(Self {
            listener,
            storage,
            limits,
        })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// When the system does not know.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        let failed = |source| Error::Listen {
            address: "?".to_owned(),
            source,
        };
        self.listener.local_addr().map_err(failed)
    }

    /// Answers until `stop` is cancelled, and then lets running downloads end for a while.
    pub async fn run(self, stop: CancellationToken) {
        let slots = Arc::new(Semaphore::new(self.limits.connections));
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = accept(&self.listener, &slots) => accepted,
            };
            let Some((stream, slot)) = accepted else { continue };
            let (storage, limits, stop) = (Arc::clone(&self.storage), self.limits.clone(), stop.clone());
            tasks.spawn(async move {
                serve(stream, storage, &limits, stop).await;
                drop(slot);
            });
        }
        tasks.close();
        // What is still running then is cut off with the process.
        let _ = timeout(self.limits.grace, tasks.wait()).await;
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, slot)),
        Err(error) => {
            // Out of file descriptors, most likely: others must end first.
            tracing::warn!(%error, "failed to accept a connection to the storage");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn serve(stream: TcpStream, storage: Arc<Storage>, limits: &Limits, stop: CancellationToken) {
    let answer = service_fn(move |request| {
        let storage = Arc::clone(&storage);
        async move { Ok::<_, Infallible>(handler::answer(storage, &request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes.max(8192))
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let ended = timeout(limits.lifetime, async {
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    });
    if let Ok(Err(error)) = ended.await {
        tracing::debug!(%error, "a connection to the storage ended early");
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
