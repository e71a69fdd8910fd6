use bytes::Bytes;
use reqwest::{Method, header::AUTHORIZATION};
use testkit::{Page, WebServer};

use api::Secret;

use super::*;
use crate::{ClusterServices, Refusal, read_body};

/// A controller's policy that allows the servers of the tests.
fn policy() -> AddressPolicy {
    let loopback = ["127.0.0.0/8", "::1"].map(|text| text.parse().unwrap());
    AddressPolicy::controller(ClusterServices::default()).allowing(loopback)
}

fn following(policy: AddressPolicy) -> Client {
    let options = ClientOptions {
        redirects: Redirects::FOLLOW,
        proxies: Proxies::Direct,
        ..ClientOptions::new(policy)
    };
    options.build().unwrap()
}

fn get(url: &str) -> Request {
    let mut request = Request::new(Method::GET, url.parse().unwrap());
    request
        .headers_mut()
        .insert(AUTHORIZATION, basic_auth("me", "s3cret"));
    request
}

fn redirect(server: &WebServer, path: &str, to: &str) -> String {
    server.page(path, Page::Redirect(to.to_owned()));
    server.url(path)
}

#[tokio::test]
async fn redirects_to_refused_addresses_are_not_followed() {
    let server = WebServer::start().unwrap();
    let client = following(policy());
    for (path, to, why) in [
        ("/link", "http://169.254.169.254/latest", Refusal::LinkLocal),
        ("/azure", "http://168.63.129.16/", Refusal::Metadata),
        ("/mapped", "http://[::ffff:169.254.169.254]/", Refusal::LinkLocal),
        ("/api", "https://kubernetes.default.svc/api", Refusal::ApiServer),
        ("/file", "file:///etc/passwd", Refusal::Scheme),
    ] {
        let error = client.send(get(&redirect(&server, path, to))).await.unwrap_err();
        let expected = format!("a redirect leads to a refused address: {why}");
        assert_eq!(error.to_string(), expected, "{to}");
    }
}

#[tokio::test]
async fn refused_hosts_are_not_connected_to() {
    let server = WebServer::start().unwrap();
    server.page("/", Page::Content("x".into()));
    let strict = following(AddressPolicy::controller(ClusterServices::default()));
    for url in [server.url("/"), server.url("/").replace("127.0.0.1", "localhost")] {
        let error = strict.send(get(&url)).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused(Refusal::Loopback)),
            "{url}: {error}"
        );
    }
    assert!(server.asked().is_empty());
    let socket = ClusterServices {
        api_server_sockets: vec![server.url("").split('/').nth(2).unwrap().parse().unwrap()],
        ..ClusterServices::default()
    };
    let api = following(AddressPolicy::command_line().refusing_api_server(socket));
    let error = api.send(get(&server.url("/"))).await.unwrap_err();
    assert!(matches!(error, Error::Refused(Refusal::ApiServer)), "{error}");
    assert!(server.asked().is_empty());
}

/// A name is resolved for the connection, with its port: there is no moment between the check and the connection.
#[tokio::test]
async fn names_are_checked_with_the_port_of_the_connection() {
    let (own, other) = (WebServer::start().unwrap(), WebServer::start().unwrap());
    for server in [&own, &other] {
        server.page("/", Page::Content("x".into()));
    }
    let address = |server: &WebServer| server.url("").split('/').nth(2).unwrap().to_owned();
    let policy = policy();
    policy
        .own_addresses()
        .set_endpoints([address(&own).parse().unwrap()]);
    let client = following(policy);
    let named = |server: &WebServer| server.url("/").replace("127.0.0.1", "localhost");
    let error = client.send(get(&named(&own))).await.unwrap_err();
    // The name may have another address, where nobody listens.
    assert!(
        matches!(error, Error::Refused(Refusal::OwnService)) || error.is_connect(),
        "{error}"
    );
    client.send(get(&named(&other))).await.unwrap();
    client
        .send(get(&redirect(&other, "/own", &named(&own))))
        .await
        .unwrap_err();
    assert!(own.asked().is_empty());
}

#[tokio::test]
async fn credentials_stay_at_their_origin() {
    let (first, second) = (WebServer::start().unwrap(), WebServer::start().unwrap());
    for server in [&first, &second] {
        server.page("/end", Page::Content("x".into()));
    }
    let client = following(policy());
    client.send(get(&redirect(&first, "/own", "/end"))).await.unwrap();
    client
        .send(get(&redirect(&first, "/other", &second.url("/end"))))
        .await
        .unwrap();
    assert!(first.asked().iter().all(|asked| asked.authorization.is_some()));
    let asked = second.asked();
    assert_eq!((asked.len(), &asked[0].authorization), (1, &None));
}

#[tokio::test]
async fn credentials_in_a_url_are_sent_as_a_header() {
    let server = WebServer::start().unwrap();
    server.page("/a", Page::Content("x".into()));
    let url = server.url("/a").replace("://", "://me:s3cr%C3%A9t@");
    let client = following(policy());
    client
        .send(Request::new(Method::GET, url.parse().unwrap()))
        .await
        .unwrap();
    client.send(get(&url)).await.unwrap();
    let sent = server
        .asked()
        .into_iter()
        .map(|asked| asked.authorization.unwrap());
    let expected = [("me", "s3cr\u{e9}t"), ("me", "s3cret")]
        .map(|(username, password)| basic_auth(username, password).to_str().unwrap().to_owned());
    assert_eq!(sent.collect::<Vec<_>>(), expected, "a header of the request wins");
}

#[tokio::test]
async fn redirects_are_bounded() {
    let server = WebServer::start().unwrap();
    let error = following(policy())
        .send(get(&redirect(&server, "/loop", "/loop")))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("more than 10"), "{error}");
    assert_eq!(server.asked().len(), 11);
    let options = ClientOptions {
        proxies: Proxies::Direct,
        ..ClientOptions::new(policy())
    };
    let response = options
        .build()
        .unwrap()
        .send(get(&server.url("/loop")))
        .await
        .unwrap();
    assert_eq!(response.status().as_u16(), 302);
}

#[tokio::test]
async fn bodies_are_read_up_to_a_limit() {
    let server = WebServer::start().unwrap();
    server.page("/small", Page::Content("hello".into()));
    server.page("/endless", Page::Endless(Bytes::from_static(&[0; 1024])));
    let client = following(policy());
    let mut response = client.send(get(&server.url("/small"))).await.unwrap();
    assert_eq!(read_body(&mut response, 5).await.unwrap(), b"hello");
    for path in ["/small", "/endless"] {
        let mut response = client.send(get(&server.url(path))).await.unwrap();
        let error = read_body(&mut response, 4).await.unwrap_err();
        assert!(matches!(error, Error::TooLarge { limit: 4 }), "{error}");
    }
}

#[tokio::test]
async fn failures_do_not_show_the_url() {
    let server = WebServer::start().unwrap();
    let url = server.url("/x?token=s3cret");
    drop(server);
    let error = following(policy()).send(get(&url)).await.unwrap_err();
    assert!(error.is_connect() && !error.is_timeout(), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    let unknown = following(policy())
        .send(get("http://host.invalid/"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::Unresolved), "{unknown:?}");
}

#[tokio::test]
async fn policy_applies_to_a_named_proxy_and_to_what_is_asked_of_it() {
    let proxy = testkit::HttpProxy::start("me", "canary").unwrap();
    let server = WebServer::start().unwrap();
    server.page("/", Page::Content("x".into()));
    let through = |policy: AddressPolicy| ClientOptions {
        proxies: Proxies::Only(Proxy {
            protocol: crate::ProxyProtocol::Http,
            url: proxy.url().parse().unwrap(),
            auth: Some(("me".to_owned(), Secret::new("canary".to_owned()))),
        }),
        ..ClientOptions::new(policy)
    };
    let own: Url = proxy.url().parse().unwrap();
    let strict = AddressPolicy::controller(ClusterServices::default());
    assert!(matches!(
        through(strict.clone()).build(),
        Err(Error::Refused(Refusal::Loopback))
    ));
    // Only the address of the proxy is allowed, and the server has another name for it.
    let only = strict.allowing([own.host_str().unwrap().parse().unwrap()]);
    let url = server.url("/").replace("127.0.0.1", "localhost");
    let refused = through(only.clone())
        .build()
        .unwrap()
        .send(get("http://[::1]/"))
        .await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::Loopback))));
    assert_eq!(proxy.asked(), [] as [&str; 0]);
    let client = through(policy()).build().unwrap();
    let response = client.send(get(&url)).await.unwrap();
    assert!(response.status().is_success());
    assert_eq!(proxy.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn server_that_asks_for_a_certificate_is_told_from_a_broken_connection() {
    let names = &["127.0.0.1"];
    let clients = testkit::Authority::new(names).unwrap();
    let authority = testkit::Authority::new(names).unwrap().asking_for(&clients);
    let server = WebServer::start_tls(authority).unwrap();
    // The server ends the connection during the request, sometimes earlier, sometimes later.
    for attempt in 0..150 {
        let options = ClientOptions {
            tls: Tls::with_ca(Some(server.ca_pem().as_bytes())),
            timeouts: Timeouts {
                total: Some(std::time::Duration::from_secs(5)),
                ..Timeouts::default()
            },
            ..ClientOptions::new(AddressPolicy::command_line())
        };
        let request = reqwest::Request::new(reqwest::Method::GET, server.url("").parse().unwrap());
        let error = options.build().unwrap().send(request).await.unwrap_err();
        let Error::Request(failure) = &error else {
            panic!("{error}");
        };
        // A slow refusal is another failure.
        if failure.is_timeout() {
            continue;
        }
        let cause = failure.tls_cause().unwrap_or_default();
        let need = crate::Need::of_tls(&cause);
        assert_eq!(need, Some(crate::Need::ClientCertificate), "{attempt}: {error}");
    }
}

/// A name that leads to an allowed address here, and to an internal one at the proxy of the operator.
struct Rebound {
    proxy: testkit::HttpProxy,
    internal: WebServer,
    policy: AddressPolicy,
}

impl Rebound {
    const UNKNOWN: &str = "rebound.invalid";
    const PORT: u16 = 8443;

    fn to(internal: WebServer) -> Self {
        internal.page("/", Page::Content("s3cret".into()));
        let address = internal.url("").split('/').nth(2).unwrap().to_owned();
        let proxy = testkit::HttpProxy::start("me", "canary").unwrap();
        for name in [Self::UNKNOWN, "localhost"] {
            proxy.route(&format!("{name}:{}", Self::PORT), &address);
        }
        let policy = policy();
        policy.own_addresses().set_endpoints([address.parse().unwrap()]);
        Self {
            proxy,
            internal,
            policy,
        }
    }

    fn url(scheme: &str, name: &str) -> String {
        format!("{scheme}://{name}:{}/", Self::PORT)
    }

    async fn send(&self, options: ClientOptions, url: &str) -> Result<Response, Error> {
        let address = self.proxy.url().replace("://", "://me:canary@");
        let operator = OperatorProxies {
            matcher: Matcher::builder().all(address.clone()).build(),
            proxy: Some(reqwest::Proxy::all(address).unwrap()),
        };
        options.build_with(operator)?.send(get(url)).await
    }

    fn options(&self) -> ClientOptions {
        ClientOptions::new(self.policy.clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn name_that_the_proxy_of_the_operator_resolves_to_an_internal_address_reads_nothing() {
    let rebound = Rebound::to(WebServer::start().unwrap());
    let by_user = Proxies::Only(Proxy {
        protocol: crate::ProxyProtocol::Http,
        url: rebound.proxy.url().parse().unwrap(),
        auth: Some(("me".to_owned(), Secret::new("canary".to_owned()))),
    });
    for name in ["localhost", Rebound::UNKNOWN] {
        let url = Rebound::url("http", name);
        for proxies in [Proxies::Environment, by_user.clone()] {
            let options = ClientOptions {
                proxies,
                ..rebound.options()
            };
            let refused = rebound.send(options, &url).await;
            assert!(
                matches!(refused, Err(Error::Refused(Refusal::UnprovenName))),
                "{url}: {refused:?}"
            );
        }
    }
    assert_eq!(rebound.proxy.asked(), [] as [&str; 0]);
    let first = WebServer::start().unwrap();
    let options = ClientOptions {
        redirects: Redirects::FOLLOW,
        ..rebound.options()
    };
    let url = redirect(&first, "/", &Rebound::url("http", Rebound::UNKNOWN));
    let error = rebound.send(options, &url).await.unwrap_err().to_string();
    assert!(
        error.starts_with("a redirect leads to a refused address: names are not allowed through a proxy"),
        "{error}"
    );
    assert!(rebound.internal.asked().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn certificate_proves_the_server_behind_the_proxy_of_the_operator() {
    let authority = testkit::Authority::new(&["127.0.0.1"]).unwrap();
    let rebound = Rebound::to(WebServer::start_tls(authority).unwrap());
    // Even if the user trusts the authority of the internal server.
    let trusting = Tls::with_ca(Some(rebound.internal.ca_pem().as_bytes()));
    for name in ["localhost", Rebound::UNKNOWN] {
        let options = ClientOptions {
            tls: trusting.clone(),
            ..rebound.options()
        };
        let error = rebound
            .send(options, &Rebound::url("https", name))
            .await
            .unwrap_err();
        let cause = error.tls_cause().unwrap_or_default();
        assert!(cause.contains("certificate"), "{name}: {error}: {cause}");
    }
    assert_eq!(
        rebound.proxy.asked().len(),
        2,
        "the proxy led to the internal server"
    );
    let options = ClientOptions {
        tls: Tls {
            insecure_skip_verify: true,
            ..trusting
        },
        ..rebound.options()
    };
    let refused = rebound.send(options, &Rebound::url("https", "localhost")).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::UnprovenName))));
    assert!(rebound.internal.asked().is_empty());
    // The right server has a certificate for its name.
    let authority = testkit::Authority::new(&["localhost"]).unwrap();
    let right = WebServer::start_tls(authority).unwrap();
    right.page("/", Page::Content("x".into()));
    let options = ClientOptions {
        tls: Tls::with_ca(Some(right.ca_pem().as_bytes())),
        ..rebound.options()
    };
    let url = right.url("/").replace("127.0.0.1", "localhost");
    assert!(rebound.send(options, &url).await.unwrap().status().is_success());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_go_to_proxies_that_the_operator_trusts_and_for_hosts_that_the_operator_names() {
    let rebound = Rebound::to(WebServer::start().unwrap());
    let url = Rebound::url("http", Rebound::UNKNOWN);
    let policy = || rebound.policy.clone();
    for allowed in [
        policy().trusting_proxies(),
        policy().allowing([Rebound::UNKNOWN.parse().unwrap()]),
        AddressPolicy::command_line(),
    ] {
        let answer = rebound.send(ClientOptions::new(allowed), &url).await.unwrap();
        assert!(answer.status().is_success());
    }
    // The proxy doesn't check addresses: this is left to it.
    assert_eq!(rebound.internal.asked().len(), 3);
    let direct = ClientOptions {
        proxies: Proxies::Direct,
        ..rebound.options()
    };
    let local = rebound.internal.url("/").replace("127.0.0.1", "localhost");
    let refused = rebound.send(direct, &local).await.unwrap_err();
    assert!(matches!(refused, Error::Refused(Refusal::OwnService)) || refused.is_connect());
}
