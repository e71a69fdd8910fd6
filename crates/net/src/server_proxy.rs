//! The proxy for requests to an API server.

use http::{Uri, uri::Scheme};
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::is_loopback;

/// Returns the proxy for requests to an API server. `configured` is the proxy that kube reads of the kubeconfig, or else of `HTTPS_PROXY`.
/// The latter is not used for loopback addresses and the hosts of `NO_PROXY`, as with Go's clients.
#[must_use]
pub fn server_proxy(server: &Uri, configured: Option<Uri>) -> Option<Uri> {
    let variables = ["HTTPS_PROXY", "https_proxy"].map(|name| std::env::var(name).ok());
    let variable = variables.into_iter().flatten().find(|value| !value.is_empty());
    chosen(server, configured?, variable.as_deref(), &Matcher::from_env())
}

fn chosen(server: &Uri, configured: Uri, variable: Option<&str>, environment: &Matcher) -> Option<Uri> {
    let is_of_environment = variable.is_some_and(|value| value.parse().ok().as_ref() == Some(&configured));
    let url = Url::parse(&server.to_string()).ok();
    let is_loopback = url.is_some_and(|url| url.host().is_some_and(|host| is_loopback(&host)));
    if is_of_environment && (is_loopback || environment.intercept(&by_https(server)).is_none()) {
        return None;
    }
    match configured.scheme() {
        Some(_) => Some(configured),
        // As in `proxy.example.com:3128`.
        None => format!("http://{configured}").parse().ok(),
    }
}

/// Returns the server with the scheme for which the environment names the proxy.
fn by_https(server: &Uri) -> Uri {
    let mut parts = server.clone().into_parts();
    parts.scheme = Some(Scheme::HTTPS);
    Uri::from_parts(parts).unwrap_or_else(|_| server.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "http://user:secret@proxy.example.com:3128";

    /// Returns the proxy for a server, of a kubeconfig or of the environment.
    fn proxy(server: &str, configured: &str) -> Option<String> {
        let environment = Matcher::builder()
            .https(PROXY)
            .no("internal.example.com,10.0.0.0/8")
            .build();
        let (server, configured) = (server.parse().unwrap(), configured.parse().unwrap());
        let chosen = chosen(&server, configured, Some(PROXY), &environment);
        chosen.map(|uri| uri.to_string().trim_end_matches('/').to_owned())
    }

    #[test]
    fn proxy_of_the_environment_is_used_unless_no_proxy_names_the_server() {
        assert_eq!(
            proxy("https://api.example.com:6443", PROXY).as_deref(),
            Some(PROXY)
        );
        assert_eq!(proxy("http://api.example.com", PROXY).as_deref(), Some(PROXY));
        for direct in [
            "https://internal.example.com",
            "https://10.1.2.3:6443",
            "https://127.0.0.1:6443",
            "https://[::1]:6443",
            "https://localhost:6443",
        ] {
            assert_eq!(proxy(direct, PROXY), None, "{direct}");
        }
    }

    #[test]
    fn proxy_of_a_kubeconfig_is_used_for_all_servers() {
        let own = "http://own.example.com:8080";
        assert_eq!(proxy("https://internal.example.com", own).as_deref(), Some(own));
        let bare = proxy("https://127.0.0.1:6443", "own.example.com:8080");
        assert_eq!(bare.as_deref(), Some(own));
    }
}
