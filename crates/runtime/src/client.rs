//! Clients for the API server: counted, with timeouts, and without requests once the lease is over.

mod bearer;
mod tunnel;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Either, Full, Limited, combinators::MapErr};
use hyper::rt::{Read, Write};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection as Connected, HttpConnector},
    },
    rt::TokioTimer,
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy},
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use net::{AddressPolicy, Resolver};
use tower::{
    BoxError, Layer, Service, ServiceBuilder,
    buffer::BufferLayer,
    filter::{AsyncFilter, AsyncFilterLayer},
    retry::RetryLayer,
};
use url::Url;

pub use bearer::BearerTokens;
use bearer::WithToken;
use tunnel::{ServerCheck, tunnel};

use crate::{error::Error, flags::Connection, gate::WriteGate, metrics::Metrics};

const ANSWER: Duration = Duration::from_secs(30);
const CONNECT: Duration = Duration::from_secs(10);
/// Time after which an idle connection is closed. Each takes some 50 KB, and there are as many as there were concurrent requests.
const IDLE: Duration = Duration::from_secs(15);
const RETRIES: u32 = 8;

/// Reads the configuration of a connection; default KUBECONFIG or the service account of the Pod.
pub async fn configured(connection: &Connection) -> Result<Config, Error> {
    let failed = |why: &dyn std::fmt::Display| Error::Config(why.to_string());
    let options = KubeConfigOptions {
        context: connection.context.clone(),
        ..KubeConfigOptions::default()
    };
    let Some(file) = &connection.kubeconfig else {
        return match &connection.context {
            None => Config::infer().await.map_err(|error| failed(&error)),
            Some(_) => Config::from_kubeconfig(&options)
                .await
                .map_err(|error| failed(&error)),
        };
    };
    let path = file.display();
    let read = Kubeconfig::read_from(file).map_err(|error| match error {
        KubeconfigError::ReadConfig(error, _) => failed(&format_args!("{path}: {error}")),
        // The parser's message may quote a token.
        _ => failed(&format_args!("{path}: it is not a valid kubeconfig")),
    })?;
    let config = Config::from_custom_kubeconfig(read, &options).await;
    config.map_err(|error| failed(&format_args!("{path}: {error}")))
}

pub fn build(config: &Config, gate: WriteGate, metrics: Metrics) -> Result<Client, Error> {
    if let Some(tunnel) = tunnel(config)? {
        return gated(config, tunnel, None, (gate, metrics));
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    gated(config, connector, None, (gate, metrics))
}

/// Makes a client as [`build`] does, for a server that a user names: it connects to `addresses` only. Fails when they refuse the server.
pub fn build_restricted(
    config: &Config,
    addresses: &AddressPolicy,
    tokens: Option<Arc<dyn BearerTokens>>,
    (gate, metrics): (WriteGate, Metrics),
) -> Result<Client, Error> {
    let refused = |why: &dyn std::fmt::Display| Error::Client(format!("its server is refused: {why}"));
    // Connectors resolve names only: an address is checked here.
    let url = Url::parse(&config.cluster_url.to_string()).map_err(|error| refused(&error))?;
    addresses.check_url(&url).map_err(|error| refused(&error))?;
    if let Some(tunnel) = tunnel(config)? {
        let check = ServerCheck::new(config, url, addresses.clone());
        return gated(config, AsyncFilter::new(tunnel, check), tokens, (gate, metrics));
    }
    let mut connector = HttpConnector::new_with_resolver(Resolver::new(addresses.clone()));
    connector.enforce_http(false);
    gated(config, connector, tokens, (gate, metrics))
}

/// Makes a client over a connector. The layers are kube's, but idle connections are closed, and the default retry is left out: it would sit
/// below our gate and could write after the lease; ours sits above it.
fn gated<C>(
    config: &Config,
    connector: C,
    tokens: Option<Arc<dyn BearerTokens>>,
    (gate, metrics): (WriteGate, Metrics),
) -> Result<Client, Error>
where
    C: Service<Uri, Response: Connected + Read + Write + Unpin + Send, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let unusable = |error: kube::Error| Error::Client(error.to_string());
    let https = config.rustls_https_connector_with_connector(connector);
    let mut connector = TimeoutConnector::new(https.map_err(unusable)?);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http = legacy::Builder::new(GatedExecutor(gate.clone()))
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(unusable)?)
        .option_layer(tokens.map(|tokens| AsyncFilterLayer::new(WithToken(tokens))))
        .layer(config.extra_headers_layer().map_err(unusable)?)
        .map_err(BoxError::from)
        .service(http);
    let host = config.cluster_url.authority().map(ToString::to_string);
    let gated = Gated {
        gate,
        metrics,
        host: host.unwrap_or_default(),
    };
    Ok(ClientBuilder::new(service, config.default_namespace.clone())
        .with_layer(&gated)
        .with_layer(&BufferLayer::new(1024))
        .with_layer(&RetryLayer::new(retries()?))
        .build())
}

fn retries() -> Result<RetryPolicy, Error> {
    RetryPolicy::new(Duration::from_millis(100), Duration::from_secs(10), RETRIES, true)
        .map_err(|error| Error::Client(error.to_string()))
}

#[derive(Debug, thiserror::Error)]
#[error("this process does not hold the lease: nothing is written")]
pub struct NotLeader;

#[must_use]
pub fn is_not_leader(error: &kube::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(each) = source {
        if each.is::<NotLeader>() {
            return true;
        }
        source = each.source();
    }
    false
}

/// Returns the message of an error of the API server; other errors are redacted.
#[must_use]
pub fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => api::redact(&other.to_string()),
    }
}

/// Runs the connections, each until the gate is over: a request that passed the gate may have waited for a handshake, or for a stopped
/// process.
#[derive(Clone)]
struct GatedExecutor(WriteGate);

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl hyper::rt::Executor<Task> for GatedExecutor {
    fn execute(&self, task: Task) {
        let gate = self.0.clone();
        tokio::spawn(async move { gate.until_over(task).await });
    }
}

#[derive(Clone)]
struct Gated {
    gate: WriteGate,
    metrics: Metrics,
    host: String,
}

impl<S> Layer<S> for Gated {
    type Service = GatedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GatedService {
            inner,
            with: self.clone(),
        }
    }
}

struct GatedService<S> {
    inner: S,
    with: Gated,
}

impl<S, B> Service<Request<Body>> for GatedService<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answer<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request.method().clone();
        if !changes_nothing(&request) && !self.with.gate.is_open() {
            return async { Err(NotLeader.into()) }.boxed();
        }
        let limit = if is_watch(&request) { None } else { Some(ANSWER) };
        let answer = self.inner.call(request);
        let with = self.with.clone();
        async move {
            let result = match limit {
                None => answer.await,
                Some(limit) => match tokio::time::timeout(limit, answer).await {
                    Ok(result) => result,
                    Err(_) => {
                        Err(format!("the API server did not answer within {} s", limit.as_secs()).into())
                    }
                },
            };
            let code = result
                .as_ref()
                .map_or_else(|_| "<error>".to_owned(), |r| r.status().as_str().to_owned());
            with.metrics.request(&code, &with.host, method.as_str());
            Ok(soon_after_initializing(result?).await)
        }
        .boxed()
    }
}

/// The body of an answer: a stream, or read into memory.
type Answer<B> = Either<
    MapErr<B, fn(<B as hyper::body::Body>::Error) -> BoxError>,
    MapErr<Full<Bytes>, fn(Infallible) -> BoxError>,
>;

const REFUSAL: usize = 64 << 10;

/// Lets a request that was refused because the storage of its kind is starting be repeated with backoff: the server asks for a pause of a
/// second, and is ready much sooner.
async fn soon_after_initializing<B>(answer: Response<B>) -> Response<Answer<B>>
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = answer.into_parts();
    if head.status != StatusCode::TOO_MANY_REQUESTS {
        return Response::from_parts(
            head,
            Either::Left(body.map_err(Into::into as fn(B::Error) -> BoxError)),
        );
    }
    // An unreadable body is still one of a refusal.
    let read = Limited::new(body, REFUSAL).collect().await;
    let bytes = read.map(|read| read.to_bytes()).unwrap_or_default();
    if api::is_initializing(head.status.as_u16(), &bytes) {
        head.headers.remove(header::RETRY_AFTER);
    }
    let never: fn(Infallible) -> BoxError = |never| match never {};
    Response::from_parts(head, Either::Right(Full::new(bytes).map_err(never)))
}

/// Path of the reviews of tokens: they are posted and never stored.
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Returns true if a request may go out without the lease.
fn changes_nothing<B>(request: &Request<B>) -> bool {
    match *request.method() {
        Method::GET | Method::HEAD | Method::OPTIONS => true,
        Method::POST => request.uri().path() == TOKEN_REVIEWS,
        _ => false,
    }
}

fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| {
        query
            .split('&')
            .any(|pair| pair == "watch=true" || pair == "watch=1")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_reads_are_distinguished() {
        let request = |uri: &str| Request::builder().uri(uri).body(()).unwrap();
        assert!(is_watch(&request("/api/v1/pods?limit=5&watch=true")));
        assert!(!is_watch(&request("/api/v1/pods?watchful=true")));
        assert!(!is_watch(&request("/api/v1/pods")));
        let free = |method: Method, uri: &str| {
            changes_nothing(&Request::builder().method(method).uri(uri).body(()).unwrap())
        };
        assert!(free(Method::GET, "/api/v1/pods") && free(Method::POST, TOKEN_REVIEWS));
        assert!(free(Method::POST, &format!("{TOKEN_REVIEWS}?")));
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            for uri in [
                "/api/v1/pods",
                "/api/v1/namespaces/tokenreviews/pods",
                "/a/apis/authentication.k8s.io/v1/tokenreviews",
            ] {
                assert!(!free(method.clone(), uri), "{method} {uri}");
            }
        }
        assert!(!free(Method::DELETE, TOKEN_REVIEWS));
    }

    #[tokio::test]
    async fn request_for_a_kind_whose_storage_starts_is_repeated_before_the_server_asks_for_it() {
        use std::sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        };

        use axum::{Router, response::IntoResponse as _, routing::get};
        use k8s_openapi::api::core::v1::ConfigMap;

        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let answer = get(move || async move {
            match count.fetch_add(1, Ordering::SeqCst) {
                0 | 1 => {
                    let refusal = serde_json::json!({"kind": "Status", "code": 429, "message": "storage is (re)initializing"});
                    (
                        StatusCode::TOO_MANY_REQUESTS,
                        [(header::RETRY_AFTER, "3600")],
                        refusal.to_string(),
                    )
                        .into_response()
                }
                _ => axum::Json(ConfigMap::default()).into_response(),
            }
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().route("/api/v1/namespaces/b/configmaps/a", answer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let config = Config::new(url.parse().unwrap());
        let client = build(&config, WriteGate::open(), Metrics::new("test").unwrap()).unwrap();
        let api: kube::Api<ConfigMap> = kube::Api::namespaced(client, "b");
        let found = tokio::time::timeout(ANSWER, api.get("a")).await;
        assert!(
            found
                .expect("it waited for the hour that the server asks for")
                .is_ok()
        );
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn a_connection_ends_with_the_gate() {
        use axum::{Json, Router, routing::get};
        use k8s_openapi::api::core::v1::ConfigMap;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = get(|| async { Json(ConfigMap::default()) });
        let app = Router::new().route("/api/v1/namespaces/b/configmaps/a", answer);
        tokio::spawn(async move { axum::serve(listener, app).await });

        let gate = WriteGate::shut();
        let config = Config::new(url.parse().unwrap());
        let client = build(&config, gate.clone(), Metrics::new("test").unwrap()).unwrap();
        let api: kube::Api<ConfigMap> = kube::Api::namespaced(client, "b");
        assert!(api.get("a").await.is_ok(), "before it leads, it reads");
        gate.extend(std::time::Instant::now(), Duration::from_secs(60));
        assert!(api.get("a").await.is_ok());
        gate.close();
        let sent = tokio::time::timeout(Duration::from_secs(1), api.get("a")).await;
        assert!(!matches!(sent, Ok(Ok(_))), "nothing leaves after the lease");
    }

    #[tokio::test]
    async fn a_write_in_flight_is_cut_off_when_the_gate_shuts() {
        use k8s_openapi::api::core::v1::ConfigMap;
        use tokio::io::AsyncReadExt as _;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let gate = WriteGate::shut();
        gate.extend(std::time::Instant::now(), Duration::from_secs(600));
        let client = build(
            &Config::new(url.parse().unwrap()),
            gate.clone(),
            Metrics::new("test").unwrap(),
        );
        let api: kube::Api<ConfigMap> = kube::Api::namespaced(client.unwrap(), "b");
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = [0; 4];
            stream.read_exact(&mut received).await.unwrap();
            gate.close();
            // It never answers, and the client goes.
            let end = async { while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {} };
            tokio::time::timeout(Duration::from_secs(20), end).await.unwrap();
        };
        let params = kube::api::DeleteParams::default();
        let (sent, ()) = tokio::join!(tokio::time::timeout(ANSWER, api.delete("a", &params)), server);
        assert!(sent.expect("it waits for the answer").is_err());
    }

    #[tokio::test]
    async fn a_restricted_client_connects_to_allowed_servers_alone() {
        use axum::{Json, Router, routing::get};
        use k8s_openapi::api::core::v1::ConfigMap;
        use net::ClusterServices;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = get(|| async { Json(ConfigMap::default()) });
        let app = Router::new().route("/api/v1/namespaces/b/configmaps/a", answer);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let strict = AddressPolicy::controller(ClusterServices::default());
        let open = strict.clone().allowing(["127.0.0.0/8".parse().unwrap()]);
        let get = async |host: &str, policy: &AddressPolicy| {
            let config = Config::new(format!("http://{host}:{port}").parse().unwrap());
            let client = build_restricted(
                &config,
                policy,
                None,
                (WriteGate::open(), Metrics::new("test").unwrap()),
            )?;
            let api: kube::Api<ConfigMap> = kube::Api::namespaced(client, "b");
            Ok::<_, Error>(tokio::time::timeout(Duration::from_secs(5), api.get("a")).await)
        };
        for host in ["127.0.0.1", "localhost"] {
            assert!(matches!(get(host, &open).await, Ok(Ok(Ok(_)))), "{host}");
        }
        let error = get("127.0.0.1", &strict).await.unwrap_err().to_string();
        assert!(error.contains("loopback addresses are not allowed"), "{error}");
        let by_name = get("localhost", &strict).await.unwrap();
        assert!(!matches!(by_name, Ok(Ok(_))), "a name must not lead to loopback");
    }

    #[tokio::test]
    async fn a_shut_gate_lets_reads_pass_and_stops_writes() {
        let metrics = Metrics::new("test").unwrap();
        let inner = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, BoxError>(Response::new(http_body_util::Full::new(
                bytes::Bytes::from_static(
                    br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b"}}"#,
                ),
            )))
        });
        let gated = Gated {
            gate: WriteGate::shut(),
            metrics: metrics.clone(),
            host: "h".into(),
        };
        let client = ClientBuilder::new(gated.layer(inner), "default").build();
        let api: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client, "b");
        assert!(api.get("a").await.is_ok());
        let error = api
            .delete("a", &kube::api::DeleteParams::default())
            .await
            .unwrap_err();
        assert!(is_not_leader(&error), "{error}");
        let text = metrics.text();
        assert!(
            text.contains(r#"rest_client_requests_total{code="200",host="h",method="GET"} 1"#),
            "{text}"
        );
    }
}
