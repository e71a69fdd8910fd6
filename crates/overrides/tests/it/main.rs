//! A server with command lines and controllers over real connections, and with clients that violate the protocol.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use bytes::Bytes;
use overrides::{ARTIFACT_BYTES, Answer, Client, Error, Material, OverrideUrl, Server, Sessions};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

const TIMEOUT: Duration = Duration::from_secs(240);

struct Running {
    sessions: Sessions,
    material: Material,
    address: SocketAddr,
    _end: DropGuard,
}

impl Running {
    async fn start() -> Result<Self, Error> {
        let (sessions, material) = (Sessions::default(), Material::generate()?);
        let server = Server::new(sessions.clone(), &material)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, end) = (listener.local_addr()?, CancellationToken::new());
        tokio::spawn(server.serve(listener, end.clone()));
        Ok(Self {
            sessions,
            material,
            address,
            _end: end.drop_guard(),
        })
    }

    async fn stream(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(self.address).await
    }

    async fn command_line(&self, answer: impl Fn(&str) -> Answer + Send + 'static) -> Result<String, Error> {
        let client = Client::connect(self.stream().await?, &self.material.ca).await?;
        let id = client.id().to_owned();
        let answer = move |repo_key: String| std::future::ready(answer(&repo_key));
        tokio::spawn(client.serve(CancellationToken::new(), answer));
        Ok(id)
    }

    async fn ask_as(&self, material: &Material, id: &str) -> Result<Answer, Error> {
        let url = OverrideUrl {
            host: self.address.ip().to_string(),
            port: self.address.port(),
            id: id.to_owned(),
        };
        overrides::ask(self.stream().await?, material, &url, "git://h/p").await
    }
}

fn files(bytes: usize) -> Answer {
    Answer {
        error: None,
        artifact: Some(Bytes::from(vec![7; bytes])),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_reach_the_command_line_directly_and_through_its_controller() {
    let server = Running::start().await.unwrap();
    let id = server
        .command_line(|repo_key| match repo_key {
            "git://h/p" => files(3 << 20),
            "git://h/broken" => Answer {
                error: Some("it is broken".to_owned()),
                artifact: None,
            },
            _ => Answer::default(),
        })
        .await
        .unwrap();
    let ask = async |repo_key: &str| server.sessions.ask(&id, repo_key).await.unwrap().unwrap();
    assert_eq!(ask("git://h/p").await, files(3 << 20));
    assert_eq!(ask("git://h/broken").await.error.as_deref(), Some("it is broken"));
    assert_eq!(ask("git://h/other").await, Answer::default());
    let relayed = server.ask_as(&server.material, &id).await.unwrap();
    assert_eq!(relayed, files(3 << 20));
    assert_eq!(server.sessions.ask("0", "git://h/p").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_of_other_namespaces_are_refused() {
    let server = Running::start().await.unwrap();
    let id = server.command_line(|_| files(1)).await.unwrap();
    let other = Material::generate().unwrap();
    let error = server.ask_as(&other, &id).await.unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
    let error = Client::connect(server.stream().await.unwrap(), &other.ca)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
    // A controller that knows the certificate, which is public, but not the secret.
    let values = other.values().into_iter();
    let mut values: BTreeMap<String, Vec<u8>> = values
        .map(|(key, value)| (key.to_owned(), value.into_inner()))
        .collect();
    values.insert("ca.pem".to_owned(), server.material.ca.clone().into_bytes());
    let pretender = Material::read(&values).unwrap();
    let error = server.ask_as(&pretender, &id).await.unwrap_err();
    assert_eq!(error.to_string(), "controllerSecret does not match");
    let error = server.ask_as(&server.material, "0").await.unwrap_err();
    assert_eq!(error.to_string(), "connection not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_above_the_limit_is_refused_and_ends_the_stream() {
    let server = Running::start().await.unwrap();
    let id = server
        .command_line(|_| files(ARTIFACT_BYTES + 4096))
        .await
        .unwrap();
    let asked = timeout(TIMEOUT, server.sessions.ask(&id, "git://h/p")).await;
    let error = asked.unwrap().unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let ended = async {
        while !matches!(server.sessions.ask(&id, "git://h/p").await, Ok(None)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_say_nothing_or_nonsense_harm_no_other() {
    let server = Running::start().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(server.stream().await.unwrap());
        let mut nonsense = server.stream().await.unwrap();
        nonsense.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        // The server hangs up.
        let _ = timeout(TIMEOUT, nonsense.read_to_end(&mut answer)).await.unwrap();
    }
    let id = server.command_line(|_| files(1)).await.unwrap();
    assert_eq!(
        server.sessions.ask(&id, "git://h/p").await.unwrap(),
        Some(files(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_address_leave_some_to_others() {
    let server = Running::start().await.unwrap();
    let mut greedy = Vec::new();
    for _ in 0..64 {
        let client = Client::connect(server.stream().await.unwrap(), &server.material.ca).await;
        greedy.push(client.unwrap());
    }
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let stream = socket.connect(server.address).await.unwrap();
    let connecting = timeout(TIMEOUT, Client::connect(stream, &server.material.ca));
    let client = connecting.await.unwrap().unwrap();
    let id = client.id().to_owned();
    tokio::spawn(client.serve(CancellationToken::new(), |_| std::future::ready(files(1))));
    let answer = server.sessions.ask(&id, "git://h/p").await.unwrap();
    assert_eq!(answer, Some(files(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn command_line_that_never_answers_delays_no_other() {
    let server = Running::start().await.unwrap();
    let client = Client::connect(server.stream().await.unwrap(), &server.material.ca)
        .await
        .unwrap();
    let silent = client.id().to_owned();
    tokio::spawn(client.serve(CancellationToken::new(), |_| std::future::pending()));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (sessions, silent) = (server.sessions.clone(), silent.clone());
        asking.spawn(async move { sessions.ask(&silent, "git://h/p").await });
    }
    let id = server.command_line(|_| files(1)).await.unwrap();
    let answer = timeout(TIMEOUT, server.sessions.ask(&id, "git://h/p")).await;
    assert_eq!(answer.unwrap().unwrap(), Some(files(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_of_a_command_line_that_ends_is_forgotten() {
    let server = Running::start().await.unwrap();
    let client = Client::connect(server.stream().await.unwrap(), &server.material.ca)
        .await
        .unwrap();
    let id = client.id().to_owned();
    drop(client);
    let ended = async {
        while !matches!(server.sessions.ask(&id, "git://h/p").await, Ok(None)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, ended).await.unwrap();
}

#[test]
fn unusable_material_is_refused_without_its_values() {
    let good = Material::generate().unwrap();
    for key in ["ca.pem", "tls.crt", "tls.key", "controllerSecret"] {
        for value in [None, Some(b"s3cret".to_vec())] {
            let values = good.values().into_iter();
            let mut values: BTreeMap<String, Vec<u8>> = values
                .map(|(key, value)| (key.to_owned(), value.into_inner()))
                .collect();
            let is_valid = key == "controllerSecret" && value.is_some();
            match value {
                Some(value) => values.insert(key.to_owned(), value),
                None => values.remove(key),
            };
            match Material::read(&values) {
                Ok(_) => assert!(is_valid, "{key}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(key) && !error.contains("s3cret"), "{error}");
                }
            }
        }
    }
}
