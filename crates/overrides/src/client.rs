//! Clients: command lines, which have files, and controllers, which ask other controllers for them.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use h2::{
    SendStream,
    client::{Builder, ResponseFuture},
};
use http::{
    Request as HttpRequest, StatusCode,
    header::{CONTENT_TYPE, TE},
};
use prost::Message as _;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Answer, Error, MESSAGE_BYTES, Material, OverrideUrl, RESOLVE, SHORT_MESSAGE_BYTES, STREAM,
    grpc::{self, Reader},
    message::{Auth, Repository, Request, Response},
    proof::{self, CHALLENGE, Key},
    tls::{self, NAME},
};

const CONNECT: Duration = Duration::from_secs(20);
/// Bytes of a stream that are read ahead.
const WINDOW: u32 = 1 << 20;
const HEADER_BYTES: u32 = 16 << 10;

pub struct Client {
    reader: Reader,
    stream: SendStream<Bytes>,
    id: String,
    /// Ends the connection together with the client.
    _connection: AbortOnDropHandle<()>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Opens a stream over a connection to a controller whose certificate was signed by `ca`.
    pub async fn connect(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        ca: &str,
    ) -> Result<Self, Error> {
        let connecting = async {
            let key = Key::generate()?;
            let mut call = Call::open(io, ca, STREAM).await?;
            let public = Auth {
                public_key: key.public.clone().into(),
                ..Auth::default()
            };
            send_auth(&mut call.stream, public).await?;
            let mut client = Self {
                reader: call.reader().await?,
                stream: call.stream,
                id: proof::id(&key.public),
                _connection: call.connection,
            };
            let challenge = client.auth().await?.challenge;
            if challenge.len() != CHALLENGE {
                return Err(Error::Protocol("the controller sent no challenge"));
            }
            let proof = Auth {
                proof: key.prove(&challenge)?.into(),
                ..Auth::default()
            };
            send_auth(&mut client.stream, proof).await?;
            match client.auth().await?.error.as_deref() {
                Some("") => Ok(client),
                Some(error) => Err(Error::Refused(error.to_owned())),
                None => Err(Error::Protocol("the controller did not accept the key")),
            }
        };
        timeout(CONNECT, connecting)
            .await
            .map_err(|_| Error::Timeout(CONNECT))?
    }

    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Answers questions for the files of repositories until the connection ends, or `end` is cancelled.
    pub async fn serve<F>(
        mut self,
        end: CancellationToken,
        mut answer: impl FnMut(String) -> F,
    ) -> Result<(), Error>
    where
        F: Future<Output = Answer>,
    {
        let serving = async {
            while let Some(request) = self.next().await? {
                let repository = request.repository.ok_or(Error::Protocol("missing request"))?;
                let response = Response {
                    auth: None,
                    answer: Some(answer(repository.key).await),
                };
                grpc::send(&mut self.stream, &response).await?;
            }
            Ok(())
        };
        end.run_until_cancelled(serving).await.unwrap_or(Ok(()))
    }

    async fn next(&mut self) -> Result<Option<Request>, Error> {
        match self.reader.message(SHORT_MESSAGE_BYTES).await? {
            Some(message) => Ok(Some(Request::decode(message)?)),
            None => self.reader.status().await.map(|()| None),
        }
    }

    async fn auth(&mut self) -> Result<Auth, Error> {
        let request = self.next().await?.ok_or(Error::Ended)?;
        request.auth.ok_or(Error::Protocol("expected auth"))
    }
}

/// Asks the controller at the other end of a connection for a repository. Both controllers have the same certificates and
/// secret.
///
/// # Errors
/// Fails when the other controller belongs to another namespace, has no such stream, or the command line doesn't answer.
pub async fn ask(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    material: &Material,
    url: &OverrideUrl,
    repo_key: &str,
) -> Result<Answer, Error> {
    let request = Request {
        auth: Some(Auth {
            key_hash: Some(url.id.clone()),
            controller_secret: material.shared.expose().clone().into(),
            ..Auth::default()
        }),
        repository: Some(Repository {
            key: repo_key.to_owned(),
        }),
    };
    let opening = timeout(CONNECT, Call::open(io, &material.ca, RESOLVE)).await;
    let mut call = opening.map_err(|_| Error::Timeout(CONNECT))??;
    grpc::send(&mut call.stream, &request).await?;
    call.stream.send_data(Bytes::new(), true)?;
    let mut reader = call.reader().await?;
    match reader.message(MESSAGE_BYTES).await? {
        Some(message) => Ok(Answer::decode(message)?),
        None => {
            reader.status().await?;
            Err(Error::Ended)
        }
    }
}

struct Call {
    stream: SendStream<Bytes>,
    response: ResponseFuture,
    connection: AbortOnDropHandle<()>,
}

impl Call {
    async fn open(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        ca: &str,
        method: &str,
    ) -> Result<Self, Error> {
        let name = ServerName::try_from(NAME).map_err(|_| Error::Protocol("invalid name"))?;
        let io = tls::connector(ca)?.connect(name, io).await?;
        let (client, connection) = Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_header_list_size(HEADER_BYTES)
            .enable_push(false)
            .handshake::<_, Bytes>(io)
            .await?;
        let connection = tokio::spawn(async move {
            // The streams fail, too.
            let _ = connection.await;
        });
        let connection = AbortOnDropHandle::new(connection);
        let request = HttpRequest::post(format!("https://{NAME}{method}"))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(())
            .map_err(|_| Error::Protocol("invalid request"))?;
        let (response, stream) = client.ready().await?.send_request(request, false)?;
        Ok(Self {
            stream,
            response,
            connection,
        })
    }

    /// Waits for the headers of the response, and returns the reader of its messages.
    async fn reader(&mut self) -> Result<Reader, Error> {
        let response = (&mut self.response).await?;
        if response.status() != StatusCode::OK {
            return Err(Error::Refused(format!(
                "the server answered with status {}",
                response.status().as_u16()
            )));
        }
        grpc::check_status(response.headers())?;
        Ok(Reader::new(response.into_body()))
    }
}

async fn send_auth(stream: &mut SendStream<Bytes>, auth: Auth) -> Result<(), Error> {
    let response = Response {
        auth: Some(auth),
        answer: None,
    };
    grpc::send(stream, &response).await
}
