//! Names without link-local answers.

use std::net::SocketAddr;

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use url::Host;

use crate::is_link_local;

/// The system's resolver without link-local answers, for whatever is asked at addresses that users give.
#[derive(Debug, Clone, Copy)]
pub struct Resolver;

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
#[must_use]
pub fn is_refused(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(four)) => is_link_local(four.into()),
        Some(Host::Ipv6(six)) => is_link_local(six.into()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_clouds_are_not_asked() {
        for (url, refused) in [
            ("http://169.254.169.254/latest", true),
            ("http://[fe80::1]/x", true),
            ("http://2852039166/", true),
            ("http://127.0.0.1:1/x", false),
            ("https://example.com/x", false),
        ] {
            assert_eq!(is_refused(&Url::parse(url).unwrap()), refused, "{url}");
        }
    }
}
