//! Connections to API servers through the proxy of a kubeconfig, or of the operator's environment.

use futures::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use kube::Config;
use net::{AddressPolicy, Proxy, ProxyProtocol, basic_auth, server_proxy};
use tower::{BoxError, filter::AsyncPredicate};
use url::Url;

use crate::error::Error;

/// Checks the server before each connection that a proxy makes to it.
#[derive(Clone)]
pub(super) struct ServerCheck {
    server: Url,
    addresses: AddressPolicy,
    /// True if a certificate proves the server.
    is_proven: bool,
}

impl ServerCheck {
    pub(super) fn new(config: &Config, server: Url, addresses: AddressPolicy) -> Self {
        Self {
            is_proven: server.scheme() == "https" && !config.accept_invalid_certs,
            server,
            addresses,
        }
    }
}

impl AsyncPredicate<Uri> for ServerCheck {
    type Future = BoxFuture<'static, Result<Uri, BoxError>>;
    type Request = Uri;

    fn check(&mut self, target: Uri) -> Self::Future {
        let check = self.clone();
        Box::pin(async move {
            check
                .addresses
                .check_proxied(&check.server, check.is_proven)
                .await?;
            Ok(target)
        })
    }
}

/// Returns a connector through the proxy for the server of a configuration, if there is one.
///
/// # Errors
/// Fails if the proxy speaks another protocol than plain http.
pub(super) fn tunnel(config: &Config) -> Result<Option<Tunnel<HttpConnector>>, Error> {
    let Some(proxy) = server_proxy(&config.cluster_url, config.proxy_url.clone()) else {
        return Ok(None);
    };
    // The message has no address, which may contain a password.
    let unsupported = || Error::Client("only http:// proxies are supported for API servers".to_owned());
    let proxy = Proxy::parse(&proxy.to_string(), None, None).map_err(|_| unsupported())?;
    if proxy.protocol != ProxyProtocol::Http || proxy.url.scheme() != "http" {
        return Err(unsupported());
    }
    let address = proxy.url.as_str().parse().map_err(|_| unsupported())?;
    let tunnel = Tunnel::new(address, HttpConnector::new());
    Ok(Some(match proxy.auth {
        Some((user, password)) => tunnel.with_auth(basic_auth(&user, password.expose())),
        None => tunnel,
    }))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, Client};
    use net::ClusterServices;
    use testkit::{HttpProxy, Page, WebServer};

    use super::*;
    use crate::{
        client::{build, build_restricted},
        gate::WriteGate,
        metrics::Metrics,
    };

    const NAME: &str = "api.invalid:8080";

    /// A server that only the proxy reaches by its name.
    struct Behind {
        proxy: HttpProxy,
        _server: WebServer,
        config: Config,
    }

    impl Behind {
        fn start() -> Self {
            let (proxy, server) = (
                HttpProxy::start("me", "c@nary").unwrap(),
                WebServer::start().unwrap(),
            );
            let object = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
            server.page("/api/v1/namespaces/b/configmaps/a", Page::Content(object.into()));
            let address = server.url("").split('/').nth(2).unwrap().to_owned();
            proxy.route(NAME, &address);
            let mut config = Config::new(format!("http://{NAME}").parse().unwrap());
            let url = proxy.url().replace("://", "://me:c%40nary@");
            config.proxy_url = Some(url.parse().unwrap());
            Self {
                proxy,
                _server: server,
                config,
            }
        }
    }

    fn parts() -> (WriteGate, Metrics) {
        (WriteGate::open(), Metrics::new("test").unwrap())
    }

    async fn get(client: Client) -> Result<ConfigMap, kube::Error> {
        Api::namespaced(client, "b").get("a").await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn api_server_is_reached_through_the_proxy_of_its_configuration() {
        let behind = Behind::start();
        let (gate, metrics) = parts();
        let client = build(&behind.config, gate, metrics).unwrap();
        assert_eq!(get(client).await.unwrap().metadata.name.as_deref(), Some("a"));
        assert_eq!(behind.proxy.asked(), [NAME]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn user_reaches_a_server_without_a_certificate_through_trusted_proxies_alone() {
        let behind = Behind::start();
        let strict = AddressPolicy::controller(ClusterServices::default());
        let refused = build_restricted(&behind.config, &strict, None, parts()).unwrap();
        let error = get(refused).await.unwrap_err();
        assert!(
            format!("{:?}", anyhow::Error::from(error)).contains("names are not allowed through a proxy"),
            "the reason is missing"
        );
        assert_eq!(behind.proxy.asked(), [""; 0]);
        let trusting = build_restricted(&behind.config, &strict.trusting_proxies(), None, parts()).unwrap();
        assert_eq!(get(trusting).await.unwrap().metadata.name.as_deref(), Some("a"));
    }

    #[test]
    fn proxies_by_other_protocols_are_refused_without_their_password() {
        let mut config = Config::new("https://api.invalid".parse().unwrap());
        for proxy in [
            "https://me:canary@proxy.invalid",
            "socks5://me:canary@proxy.invalid",
        ] {
            config.proxy_url = Some(proxy.parse().unwrap());
            let error = tunnel(&config).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("only http:// proxies"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }
}
