//! The server of a controller: keeps the streams to command lines, and asks them for files.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
    time::Duration,
};

use api::Secret;
use bytes::Bytes;
use h2::{
    RecvStream, SendStream,
    server::{Builder, SendResponse},
};
use http::{HeaderValue, Method, Request as HttpRequest, Response as HttpResponse, StatusCode};
use limits::{ByteBudget, PermitLimits, RequestQuota, TenantPermits};
use parking_lot::{Mutex, MutexGuard};
use prost::Message as _;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Answer, Error, MESSAGE_BYTES, Material, RESOLVE, SHORT_MESSAGE_BYTES, STREAM,
    grpc::{self, Reader},
    message::{Auth, Repository, Request, Response},
    proof,
};

/// Maximum number of connections, which addresses share: the one with the most loses its oldest to an address with fewer.
const CONNECTIONS: usize = 64;
const STREAMS: u32 = 4;
/// Answers that are received at the same time, which command lines share: each can have the maximum size of a message.
const RELAYS: PermitLimits = PermitLimits {
    quick: 2,
    reserve: 1,
    slow: 2,
    slow_of_tenant: 1,
    quick_time: Duration::from_secs(5),
    evict_after: Duration::from_secs(15),
};
const HEADER_BYTES: u32 = 16 << 10;
const WINDOW: u32 = 1 << 20;
const HANDSHAKE: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(2 * 60);
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// Streams to command lines; clones share them.
#[derive(Debug, Clone)]
pub struct Sessions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    streams: Mutex<HashMap<String, mpsc::Sender<Question>>>,
    relays: TenantPermits,
}

#[derive(Debug)]
struct Question {
    repo_key: String,
    answer: oneshot::Sender<Result<Answer, Error>>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self(Arc::new(Inner {
            streams: Mutex::default(),
            relays: TenantPermits::new(RELAYS),
        }))
    }
}

impl Sessions {
    /// Asks the command line behind a stream for a repository; `None` if this process has no such stream.
    pub async fn ask(&self, id: &str, repo_key: &str) -> Result<Option<Answer>, Error> {
        let Some(stream) = self.streams().get(id).cloned() else {
            return Ok(None);
        };
        let asking = async {
            let permit = self.0.relays.acquire(id).await;
            let (answer, answered) = oneshot::channel();
            let repo_key = repo_key.to_owned();
            let asked = stream.send(Question { repo_key, answer }).await;
            asked.map_err(|_| Error::Ended)?;
            tokio::select! {
                biased;
                answered = answered => answered.map_err(|_| Error::Ended)?.map(Some),
                () = permit.evicted().cancelled() => Err(Error::Timeout(permit.elapsed())),
            }
        };
        timeout(2 * ANSWER, asking)
            .await
            .map_err(|_| Error::Timeout(2 * ANSWER))?
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Question>>> {
        self.0.streams.lock()
    }

    fn add(&self, id: String) -> Result<Registered<'_>, Error> {
        let (sender, questions) = mpsc::channel(1);
        match self.streams().entry(id.clone()) {
            Entry::Occupied(_) => return Err(Error::Protocol("duplicate server id")),
            Entry::Vacant(entry) => entry.insert(sender),
        };
        Ok(Registered {
            sessions: self,
            id,
            questions,
        })
    }
}

struct Registered<'a> {
    sessions: &'a Sessions,
    id: String,
    questions: mpsc::Receiver<Question>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.sessions.streams().remove(&self.id);
    }
}

/// The server for command lines, and for the other controllers of its namespace.
#[derive(Clone)]
pub struct Server {
    sessions: Sessions,
    acceptor: TlsAcceptor,
    shared: Secret<Vec<u8>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("sessions", &self.sessions)
            .finish_non_exhaustive()
    }
}

impl Server {
    pub fn new(sessions: Sessions, material: &Material) -> Result<Self, Error> {
        Ok(Self {
            sessions,
            acceptor: material.acceptor()?,
            shared: material.shared.clone(),
        })
    }

    /// Serves until `shutdown`, then closes all connections.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) {
        // Only their number counts.
        let slots = RequestQuota::new(CONNECTIONS, ByteBudget::undivided(0));
        let tasks = TaskTracker::new();
        loop {
            let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await else {
                break;
            };
            let Ok((stream, peer)) = accepted else {
                // Out of file descriptors, most likely: let some connections end first.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Some(slot) = slots.start(&peer.ip().to_canonical().to_string()) else {
                tracing::debug!(%peer, "a connection for source overrides was refused: its address has its part of them");
                continue;
            };
            let (server, shutdown) = (self.clone(), shutdown.child_token());
            tasks.spawn(async move {
                let connection = timeout(LIFETIME, server.connection(stream, &shutdown));
                let connection = slot.revoked().run_until_cancelled(connection);
                if let Some(Some(Ok(Err(error)))) = shutdown.run_until_cancelled(connection).await {
                    tracing::debug!(%error, "a connection for source overrides broke off");
                }
                shutdown.cancel();
                drop(slot);
            });
        }
        tasks.close();
        tasks.wait().await;
    }

    async fn connection(&self, stream: TcpStream, shutdown: &CancellationToken) -> Result<(), Error> {
        let opening = async {
            let stream = self.acceptor.accept(stream).await?;
            let mut connection = Builder::new()
                .max_concurrent_streams(STREAMS)
                .max_header_list_size(HEADER_BYTES)
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .handshake::<_, Bytes>(stream)
                .await?;
            let first = connection.accept().await;
            Ok::<_, Error>((connection, first))
        };
        let opened = timeout(HANDSHAKE, opening).await;
        let (mut connection, mut next) = opened.map_err(|_| Error::Timeout(HANDSHAKE))??;
        while let Some(accepted) = next {
            let (request, respond) = accepted?;
            let (server, shutdown) = (self.clone(), shutdown.clone());
            tokio::spawn(async move {
                let answering = server.request(request, respond);
                if let Some(Err(error)) = shutdown.run_until_cancelled(answering).await {
                    tracing::debug!(%error, "a stream for source overrides broke off");
                }
            });
            next = connection.accept().await;
        }
        Ok(())
    }

    async fn request(
        &self,
        request: HttpRequest<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> Result<(), Error> {
        let path = request.uri().path().to_owned();
        let content_type = request.headers().get(http::header::CONTENT_TYPE);
        let is_grpc =
            content_type.is_some_and(|content_type| content_type.as_bytes().starts_with(b"application/grpc"));
        if request.method() != Method::POST || !is_grpc {
            let mut refused = HttpResponse::new(());
            *refused.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            respond.send_response(refused, true)?;
            return Ok(());
        }
        let mut response = HttpResponse::new(());
        response.headers_mut().insert(
            http::header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        let mut stream = respond.send_response(response, false)?;
        let mut reader = Reader::new(request.into_body());
        let ended = match path.as_str() {
            STREAM => self.stream(&mut reader, &mut stream).await,
            RESOLVE => self.resolve(&mut reader, &mut stream).await,
            _ => Err(Error::Protocol("unknown method")),
        };
        stream.send_trailers(grpc::trailers(&ended))?;
        ended
    }

    async fn stream(&self, reader: &mut Reader, stream: &mut SendStream<Bytes>) -> Result<(), Error> {
        let handshake = timeout(HANDSHAKE, self.handshake(reader, stream));
        let mut registered = handshake.await.map_err(|_| Error::Timeout(HANDSHAKE))??;
        loop {
            let mut question = tokio::select! {
                question = registered.questions.recv() => question.ok_or(Error::Ended)?,
                unasked = reader.message(SHORT_MESSAGE_BYTES) => {
                    return match unasked? {
                        Some(_) => Err(Error::Protocol("an answer without a question")),
                        None => Ok(()),
                    };
                }
            };
            let asking = timeout(ANSWER, put(&registered.id, &question.repo_key, reader, stream));
            let answered = tokio::select! {
                answered = asking => answered.unwrap_or(Err(Error::Timeout(ANSWER))),
                // Nobody waits for it any more.
                () = question.answer.closed() => Err(Error::Ended),
            };
            let failed = answered.is_err();
            // The receiver may have given up.
            let _ = question.answer.send(answered);
            if failed {
                return Err(Error::Protocol("a question was not answered"));
            }
        }
    }

    async fn handshake(
        &self,
        reader: &mut Reader,
        stream: &mut SendStream<Bytes>,
    ) -> Result<Registered<'_>, Error> {
        let public_key = next_auth(reader).await?.public_key;
        if public_key.is_empty() {
            return Err(Error::Protocol("expected auth"));
        }
        let challenge = Bytes::copy_from_slice(&proof::random::<{ proof::CHALLENGE }>()?);
        let auth = Auth {
            challenge: challenge.clone(),
            ..Auth::default()
        };
        send_auth(stream, auth).await?;
        proof::check(&public_key, &challenge, &next_auth(reader).await?.proof)?;
        let registered = self.sessions.add(proof::id(&public_key))?;
        let accepted = Auth {
            error: Some(String::new()),
            ..Auth::default()
        };
        send_auth(stream, accepted).await?;
        Ok(registered)
    }

    async fn resolve(&self, reader: &mut Reader, stream: &mut SendStream<Bytes>) -> Result<(), Error> {
        let reading = timeout(HANDSHAKE, reader.message(SHORT_MESSAGE_BYTES)).await;
        let message = reading.map_err(|_| Error::Timeout(HANDSHAKE))??;
        let request = Request::decode(message.ok_or(Error::Ended)?)?;
        let auth = request.auth.unwrap_or_default();
        if !proof::is_same(self.shared.expose(), &auth.controller_secret) {
            return Err(Error::Protocol("controllerSecret does not match"));
        }
        let id = auth.key_hash.ok_or(Error::Protocol("missing pubKeyHash"))?;
        let repository = request.repository.ok_or(Error::Protocol("missing request"))?;
        let answer = self.sessions.ask(&id, &repository.key).await?;
        let answer = answer.ok_or(Error::Protocol("connection not found"))?;
        grpc::send(stream, &answer).await
    }
}

async fn put(
    id: &str,
    repo_key: &str,
    reader: &mut Reader,
    stream: &mut SendStream<Bytes>,
) -> Result<Answer, Error> {
    let request = Request {
        auth: Some(Auth {
            key_hash: Some(id.to_owned()),
            ..Auth::default()
        }),
        repository: Some(Repository {
            key: repo_key.to_owned(),
        }),
    };
    grpc::send(stream, &request).await?;
    let message = reader.message(MESSAGE_BYTES).await?.ok_or(Error::Ended)?;
    let answer = Response::decode(message)?.answer;
    answer.ok_or(Error::Protocol("missing response"))
}

async fn next_auth(reader: &mut Reader) -> Result<Auth, Error> {
    let message = reader.message(SHORT_MESSAGE_BYTES).await?.ok_or(Error::Ended)?;
    let auth = Response::decode(message)?.auth;
    auth.ok_or(Error::Protocol("expected auth"))
}

async fn send_auth(stream: &mut SendStream<Bytes>, auth: Auth) -> Result<(), Error> {
    let request = Request {
        auth: Some(auth),
        repository: None,
    };
    grpc::send(stream, &request).await
}
