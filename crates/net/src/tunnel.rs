//! TCP connections through users' proxies, for protocols other than HTTP.
//!
//! The connectors of hyper-util drop bytes that the server sends together with the proxy's answer, as servers of SSH do.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_socks::tcp::Socks5Stream;
use url::Host;

use crate::{
    AddressPolicy, ConnectError, Proxy, ProxyProtocol, Tls, Unresolved, basic_auth, connect, innermost,
};

const MAX_HEAD: usize = 16 << 10;

pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Proxy {
    /// Connects to a host through the proxy, by `CONNECT` or SOCKS5. The address policy applies to the proxy, and to the host
    /// as far as its name can be resolved here; the proxy resolves it again.
    ///
    /// # Errors
    /// Fails if the policy refuses one of them, the proxy can't be reached or doesn't connect, or the timeout is over. Errors
    /// of the proxy are [`ConnectError::Proxy`], without its address and credentials.
    pub async fn connect(
        &self,
        policy: &AddressPolicy,
        host: &Host<impl AsRef<str>>,
        port: u16,
        timeout: Duration,
    ) -> Result<Box<dyn Duplex>, ConnectError> {
        let connecting = async {
            match policy.resolve_host(host, port).await {
                // The proxy may know names that are unknown here.
                Ok(_) | Err(Unresolved::Unknown) => {}
                Err(refused) => return Err(refused.into()),
            }
            let name = host.to_string();
            let tunnel = self.tunnel(policy, &name, port, timeout);
            tunnel.await.map_err(ConnectError::Proxy)
        };
        let connected = tokio::time::timeout(timeout, connecting).await;
        connected.map_err(|_| ConnectError::Timeout)?
    }

    async fn tunnel(
        &self,
        policy: &AddressPolicy,
        host: &str,
        port: u16,
        timeout: Duration,
    ) -> Result<Box<dyn Duplex>, String> {
        let own = self.url.host().ok_or("it has no host")?;
        let own_port = self.url.port_or_known_default().unwrap_or_default();
        let stream = connect(policy, &own, own_port, timeout).await;
        let stream = stream.map_err(|error| error.to_string())?;
        match (self.protocol, self.url.scheme()) {
            (ProxyProtocol::Socks5, _) => self.by_socks(stream, host, port).await,
            (ProxyProtocol::Http, "https") => {
                let shaken = Tls::default().connect(&own, stream).await;
                let shaken = shaken.map_err(|error| error.to_string())?;
                let stream = shaken.map_err(|error| innermost(&error))?;
                self.by_http(stream, host, port).await
            }
            (ProxyProtocol::Http, _) => self.by_http(stream, host, port).await,
        }
    }

    async fn by_socks(&self, stream: TcpStream, host: &str, port: u16) -> Result<Box<dyn Duplex>, String> {
        // SOCKS has no brackets around addresses.
        let target = (host.trim_matches(['[', ']']), port);
        let stream = match &self.auth {
            None => Socks5Stream::connect_with_socket(stream, target).await,
            Some((user, password)) => {
                let password = password.expose();
                Socks5Stream::connect_with_password_and_socket(stream, target, user, password).await
            }
        };
        let stream = stream.map_err(|error| innermost(&error))?;
        Ok(Box::new(stream.into_inner()))
    }

    async fn by_http<S: Duplex + 'static>(
        &self,
        stream: S,
        host: &str,
        port: u16,
    ) -> Result<Box<dyn Duplex>, String> {
        let target = format!("{host}:{port}");
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(&target)
            .header(header::HOST, &target);
        if let Some((user, password)) = &self.auth {
            request = request.header(header::PROXY_AUTHORIZATION, basic_auth(user, password.expose()));
        }
        let request = request.body(Empty::<Bytes>::new());
        let request = request.map_err(|error| error.to_string())?;
        let shaken = http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .handshake(TokioIo::new(stream));
        let (mut sender, connection) = shaken.await.map_err(|error| innermost(&error))?;
        // It ends with the tunnel, or without its sender.
        tokio::spawn(connection.with_upgrades());
        let answer = sender.send_request(request).await;
        let answer = answer.map_err(|error| innermost(&error))?;
        match answer.status() {
            status if status.is_success() => {}
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                return Err("407: it wants other credentials".to_owned());
            }
            status => return Err(format!("it doesn't connect to {target}: {status}")),
        }
        let upgraded = hyper::upgrade::on(answer).await;
        let upgraded = upgraded.map_err(|error| innermost(&error))?;
        Ok(Box::new(TokioIo::new(upgraded)))
    }
}

#[cfg(test)]
mod tests {
    use api::Secret;
    use testkit::HttpProxy;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::ClusterServices;

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn proxy(address: &str, password: &str) -> Proxy {
        let password = Secret::new(password.to_owned());
        Proxy::parse(address, Some("me"), Some(password)).unwrap()
    }

    async fn talkative() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    stream.write_all(b"banner\n").await.unwrap();
                    let (mut read, mut write) = stream.split();
                    drop(tokio::io::copy(&mut read, &mut write).await);
                });
            }
        });
        port
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn both_protocols_lead_to_a_server_that_speaks_first() {
        let (through, port) = (HttpProxy::start("me", "canary").unwrap(), talkative().await);
        let (policy, host) = (AddressPolicy::command_line(), Host::parse("127.0.0.1").unwrap());
        for address in [through.url(), through.socks_url()] {
            let proxy = proxy(&address, "canary");
            let mut stream = proxy.connect(&policy, &host, port, TIMEOUT).await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            let mut got = [0; 12];
            stream.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"banner\nhello", "{address}");
        }
        assert_eq!(through.asked(), vec![format!("127.0.0.1:{port}"); 2]);
    }

    async fn hasty(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head).await.unwrap();
                    stream.write_all(answer).await.unwrap();
                    drop(stream.read(&mut head).await);
                });
            }
        });
        address
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn bytes_that_come_with_the_answer_are_kept_and_long_answers_refused() {
        let (policy, host) = (AddressPolicy::command_line(), Host::parse("127.0.0.1").unwrap());
        let address = hasty(b"HTTP/1.1 200 OK\r\n\r\nbanner").await;
        let connected = proxy(&address, "x").connect(&policy, &host, 22, TIMEOUT).await;
        let mut got = [0; 6];
        connected.unwrap().read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"banner");
        static LONG: [u8; 2 * MAX_HEAD] = [b'x'; 2 * MAX_HEAD];
        for (answer, words) in [
            (
                &b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"[..],
                "502",
            ),
            (b"SSH-2.0-x\r\n\r\n", "invalid HTTP version"),
            (&LONG, "invalid HTTP version"),
        ] {
            let address = hasty(answer).await;
            let refused = proxy(&address, "x").connect(&policy, &host, 22, TIMEOUT).await;
            let error = refused.map(drop).unwrap_err().to_string();
            assert!(error.starts_with("proxy: ") && error.contains(words), "{error}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn policy_applies_to_the_proxy_and_to_the_host_and_credentials_are_in_no_error() {
        let (through, port) = (HttpProxy::start("me", "canary").unwrap(), talkative().await);
        let open = AddressPolicy::command_line();
        let closed = AddressPolicy::controller(ClusterServices::default());
        let (local, public) = (
            Host::parse("127.0.0.1").unwrap(),
            Host::parse("192.0.2.1").unwrap(),
        );
        for address in [through.url(), through.socks_url()] {
            let wrong = proxy(&address, "canary-wrong");
            for (policy, host, words) in [
                (&open, &local, "proxy: "),
                (&open, &Host::parse("169.254.169.254").unwrap(), "link-local"),
                (&closed, &local, "loopback addresses are not allowed"),
                (&closed, &public, "proxy: loopback addresses are not allowed"),
            ] {
                let refused = wrong.connect(policy, host, port, TIMEOUT).await;
                let error = refused.map(drop).unwrap_err().to_string();
                assert!(error.contains(words) && !error.contains("canary"), "{error}");
            }
        }
        assert_eq!(through.asked(), [] as [&str; 0]);
    }
}
