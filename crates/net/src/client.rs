//! The one builder of HTTP clients.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{
    Request, Response,
    header::{AUTHORIZATION, HeaderValue},
    redirect::Policy,
};
use tokio::time::Instant;
use url::{Host, Url};

use crate::{AddressPolicy, Error, Proxy, Redirects, Resolver, Tls, redirect, resolver::with_port};

pub const USER_AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Timeout for connecting; default 30 s.
    pub connect: Duration,
    /// Timeout for each read of a response; default 30 s.
    pub read: Option<Duration>,
    /// Timeout for a request with its redirects and the body of its response; default none.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            read: Some(Duration::from_secs(30)),
            total: None,
        }
    }
}

/// Proxies of a client. The policy applies to the targets of requests through them, too.
///
/// A proxy gets names, and resolves them again. A certificate shows that it led to the named server; without one, the policy refuses names
/// while the operator has a proxy, also through a proxy of a user, which may be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxies {
    /// The operator's: the variables `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. No policy applies to these proxies' own addresses.
    Environment,
    Direct,
    /// One for all requests. The policy applies to its own address, too.
    Only(Proxy),
}

#[derive(Debug, Clone)]
pub struct ClientOptions {
    pub policy: AddressPolicy,
    pub tls: Tls,
    pub timeouts: Timeouts,
    /// Default: none are followed.
    pub redirects: Redirects,
    /// Default: the environment's.
    pub proxies: Proxies,
    pub user_agent: &'static str,
    /// Maximum number of idle connections to a host; default 2.
    pub idle_per_host: usize,
    /// Speaks HTTP/1.1 only, so that concurrent downloads have a connection each; default false: HTTP/2 if servers offer it.
    pub http1_only: bool,
}

impl ClientOptions {
    #[must_use]
    pub fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            tls: Tls::default(),
            timeouts: Timeouts::default(),
            redirects: Redirects::None,
            proxies: Proxies::Environment,
            user_agent: USER_AGENT,
            idle_per_host: 2,
            http1_only: false,
        }
    }

    /// Makes the client. It connects to no server yet.
    pub fn build(self) -> Result<Client, Error> {
        self.build_with(OperatorProxies {
            matcher: Matcher::from_env(),
            proxy: None,
        })
    }

    fn build_with(self, operator: OperatorProxies) -> Result<Client, Error> {
        // Another part of the process may have chosen already; then that choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let only = match &self.proxies {
            Proxies::Only(proxy) => {
                self.policy.check_url(&proxy.url)?;
                Some(proxy.for_all()?)
            }
            _ => None,
        };
        let operated = hosts(&operator.matcher);
        let has_operator_proxy = !operated.is_empty();
        let (matcher, proxies) = match &self.proxies {
            Proxies::Environment => (Some(operator.matcher), operated),
            Proxies::Direct | Proxies::Only(_) => (None, Vec::new()),
        };
        let resolver = Resolver::with_proxies(self.policy.clone(), proxies.clone());
        let given = match &self.proxies {
            Proxies::Environment => operator.proxy,
            Proxies::Direct | Proxies::Only(_) => only,
        };
        let http = self.http(&resolver, given.as_ref())?;
        Ok(Client(Arc::new(Inner {
            http,
            policy: self.policy,
            redirects: self.redirects,
            total: self.timeouts.total,
            verifies_tls: !self.tls.insecure_skip_verify,
            has_operator_proxy,
            matcher,
            only_proxy: match self.proxies {
                Proxies::Only(proxy) => Some(proxy.url),
                _ => None,
            },
            proxies,
        })))
    }

    fn http(&self, resolver: &Resolver, proxy: Option<&reqwest::Proxy>) -> Result<reqwest::Client, Error> {
        self.tls.build(|| {
            let builder = reqwest::Client::builder()
                .user_agent(self.user_agent)
                .referer(false)
                .redirect(Policy::none())
                .connect_timeout(self.timeouts.connect)
                .pool_idle_timeout(Duration::from_secs(15))
                .pool_max_idle_per_host(self.idle_per_host)
                .dns_resolver(resolver.clone());
            let builder = match self.http1_only {
                true => builder.http1_only(),
                false => builder,
            };
            let builder = match self.timeouts.read {
                Some(read) => builder.read_timeout(read),
                None => builder,
            };
            match (proxy, &self.proxies) {
                (Some(proxy), _) => builder.proxy(proxy.clone()),
                (None, Proxies::Environment) => builder,
                (None, _) => builder.no_proxy(),
            }
        })
    }
}

/// The proxies of the operator.
struct OperatorProxies {
    matcher: Matcher,
    /// The same for reqwest; `None` if it reads the environment as well.
    proxy: Option<reqwest::Proxy>,
}

fn hosts(matcher: &Matcher) -> Vec<String> {
    let schemes = ["http://proxied.invalid/", "https://proxied.invalid/"];
    let uris = schemes.iter().filter_map(|uri| uri.parse().ok());
    let proxies = uris.filter_map(|uri| matcher.intercept(&uri));
    proxies
        .filter_map(|proxy| proxy.uri().host().map(str::to_owned))
        .collect()
}

/// An HTTP client with an [`AddressPolicy`]. Clones share its connections.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    policy: AddressPolicy,
    redirects: Redirects,
    total: Option<Duration>,
    verifies_tls: bool,
    has_operator_proxy: bool,
    matcher: Option<Matcher>,
    /// The user's proxy for all requests.
    only_proxy: Option<Url>,
    proxies: Vec<String>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Client {
    #[must_use]
    pub fn policy(&self) -> &AddressPolicy {
        &self.0.policy
    }

    /// Sends a request, and follows redirects as configured. Any status is a response. Credentials in the URL are sent in the
    /// `Authorization` header, unless the request has one.
    ///
    /// # Errors
    /// Fails if the policy refuses the URL or the target of a redirect, or the server does not respond.
    pub async fn send(&self, mut request: Request) -> Result<Response, Error> {
        self.move_url_credentials(&mut request)?;
        let deadline = self.0.total.map(|total| Instant::now() + total);
        let mut followed = 0;
        loop {
            self.permit(request.url()).await.map_err(|error| match error {
                Error::Refused(why) if followed > 0 => {
                    Error::Redirect(format!("a redirect leads to a refused address: {why}"))
                }
                error => error,
            })?;
            if let Some(deadline) = deadline {
                *request.timeout_mut() = Some(deadline.saturating_duration_since(Instant::now()));
            }
            let port = self.connected_port(request.url());
            let Redirects::Follow { to_http } = self.0.redirects else {
                return Ok(with_port(port, self.0.http.execute(request)).await?);
            };
            let again = request.try_clone();
            let response = with_port(port, self.0.http.execute(request)).await?;
            let next = match again {
                Some(again) => {
                    redirect::next(again, response.status(), response.headers(), followed, to_http)?
                }
                None => None,
            };
            let Some(next) = next else {
                return Ok(response);
            };
            request = next;
            followed += 1;
        }
    }

    fn move_url_credentials(&self, request: &mut Request) -> Result<(), Error> {
        let url = request.url();
        if url.username().is_empty() && url.password().is_none() {
            return Ok(());
        }
        // The builder decodes them and takes them out of the URL.
        let moved = self
            .0
            .http
            .request(request.method().clone(), url.clone())
            .build()?;
        *request.url_mut() = moved.url().clone();
        if let Some(value) = moved.headers().get(AUTHORIZATION)
            && !request.headers().contains_key(AUTHORIZATION)
        {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        Ok(())
    }

    /// Checks a URL before it is requested. Addresses of a name are checked when a connection is made, or here if a proxy makes
    /// it, which resolves the name again.
    async fn permit(&self, url: &Url) -> Result<(), Error> {
        let inner = &self.0;
        inner.policy.check_url(url)?;
        if let Some(proxy) = &inner.only_proxy {
            inner.policy.resolve(proxy).await?;
        }
        if self.is_intercepted(url) || inner.only_proxy.is_some() {
            let is_verified = url.scheme() == "https" && inner.verifies_tls;
            let is_proven = is_verified || !inner.has_operator_proxy;
            return Ok(inner.policy.check_proxied(url, is_proven).await?);
        }
        let is_proxy = |name| inner.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name));
        if let Some(Host::Domain(name)) = url.host()
            && is_proxy(name)
        {
            inner.policy.resolve(url).await?;
        }
        Ok(())
    }

    fn is_intercepted(&self, url: &Url) -> bool {
        let uri = url.as_str().parse::<http::Uri>().ok();
        let matcher = self.0.matcher.as_ref();
        matcher
            .zip(uri)
            .is_some_and(|(matcher, uri)| matcher.intercept(&uri).is_some())
    }

    /// Returns the port of the connection for a URL: the server's, or the port of the user's proxy. No policy applies to the operator's.
    fn connected_port(&self, url: &Url) -> Option<u16> {
        match &self.0.only_proxy {
            Some(proxy) => proxy.port_or_known_default(),
            None if self.is_intercepted(url) => None,
            None => url.port_or_known_default(),
        }
    }
}

/// Returns the `Authorization` header for a user and a password, marked as sensitive so that logs don't contain it.
#[must_use]
pub fn basic_auth(username: &str, password: &str) -> HeaderValue {
    let pair = STANDARD.encode(format!("{username}:{password}"));
    // Base64 is always a valid header value.
    let mut value =
        HeaderValue::try_from(format!("Basic {pair}")).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Returns the `Authorization` header for a bearer token, marked as sensitive; `None` if no header can contain the token.
#[must_use]
pub fn bearer_auth(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests;
