//! Name resolution under an address policy.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper_util::client::legacy::connect::dns;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{AddressPolicy, Unresolved};

tokio::task_local! {
    /// The port of the request that a connection is made for. A resolver of reqwest gets the name alone.
    static PORT: u16;
}

/// Runs a request whose names are resolved for a port.
pub(crate) async fn with_port<T>(port: Option<u16>, request: impl Future<Output = T>) -> T {
    match port {
        Some(port) => PORT.scope(port, request).await,
        None => request.await,
    }
}

/// The system's resolver, without refused addresses. It resolves for [`crate::Client`] and, as a tower service, for connectors
/// of hyper.
#[derive(Debug, Clone)]
pub struct Resolver {
    policy: AddressPolicy,
    /// Hosts of the operator's proxies, which no policy applies to.
    proxies: Arc<[String]>,
}

impl Resolver {
    #[must_use]
    pub fn new(policy: AddressPolicy) -> Self {
        Self::with_proxies(policy, Vec::new())
    }

    pub(crate) fn with_proxies(policy: AddressPolicy, proxies: Vec<String>) -> Self {
        Self {
            policy,
            proxies: proxies.into(),
        }
    }

    async fn lookup(self, name: String) -> Result<Vec<SocketAddr>, Unresolved> {
        let is_proxy = self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(&name));
        if is_proxy {
            return AddressPolicy::unrestricted().lookup(&name, None).await;
        }
        self.policy.lookup(&name, None).await
    }

    async fn lookup_for(self, name: String, port: Option<u16>) -> Result<Vec<SocketAddr>, Unresolved> {
        let is_proxy = self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(&name));
        if is_proxy || self.policy.check_name(&name)? {
            return self.lookup(name).await;
        }
        if port.is_some() {
            return self.policy.lookup(&name, port).await;
        }
        // A connection that no request waits for any more.
        let mut found = self.policy.lookup(&name, None).await?;
        found.retain(|socket| !self.policy.needs_port(socket.ip()));
        match found.is_empty() {
            true => Err(Unresolved::Unknown),
            false => Ok(found),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let port = PORT.try_with(|port| *port).ok();
        let lookup = self.clone().lookup_for(name.as_str().to_owned(), port);
        Box::pin(async move {
            let found = lookup.await?;
            // reqwest replaces 0 by the port of the URL.
            let found = found.into_iter().map(|mut socket| {
                socket.set_port(0);
                socket
            });
            Ok(Box::new(found) as Addrs)
        })
    }
}

impl tower::Service<dns::Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Unresolved;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: dns::Name) -> Self::Future {
        let lookup = self.clone().lookup(name.as_str().to_owned());
        Box::pin(async move { Ok(lookup.await?.into_iter()) })
    }
}
