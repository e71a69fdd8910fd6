//! Names without link-local answers.

use std::net::SocketAddr;

use api::address::is_link_local;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use url::Host;

/// The system's resolver without link-local answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|address| !is_link_local(address.ip())).collect();
            if allowed.is_empty() {
                return Err("the host has no address that may be used".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether the host is an address where clouds keep their metadata services. Such hosts are never resolved.
pub(crate) fn is_refused(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(four)) => is_link_local(four.into()),
        Some(Host::Ipv6(six)) => is_link_local(six.into()),
        _ => false,
    }
}
