//! URLs of overrides in specs. Pure.

use std::fmt;

use crate::Error;

const SCHEME: &str = "grpc+source-override://";

/// The URL of the stream to a command line: its controller, and the name of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverrideUrl {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    pub id: String,
}

impl OverrideUrl {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let parts = || {
            let (server, id) = text.strip_prefix(SCHEME)?.split_once('/')?;
            let (host, port) = server.rsplit_once(':')?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            let is_valid = is_id && !host.is_empty() && host.len() < 256;
            is_valid.then_some((host, port.parse().ok()?, id))
        };
        let (host, port, id) = parts().ok_or(Error::Url)?;
        Ok(Self {
            host: host.to_owned(),
            port,
            id: id.to_owned(),
        })
    }
}

impl fmt::Display for OverrideUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, id } = self;
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}/{id}"),
            false => write!(f, "{SCHEME}{host}:{port}/{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_host_port_and_id() {
        let id = "0f".repeat(32);
        for host in ["localhost", "10.1.2.3", "fd00::1"] {
            let url = OverrideUrl {
                host: host.to_owned(),
                port: 8082,
                id: id.clone(),
            };
            assert_eq!(OverrideUrl::parse(&url.to_string()).unwrap(), url);
        }
        for text in [
            format!("https://h:1/{id}"),
            format!("{SCHEME}h/{id}"),
            format!("{SCHEME}h:x/{id}"),
            format!("{SCHEME}:1/{id}"),
            format!("{SCHEME}h:1/{id}0"),
            format!("{SCHEME}h:1/{}", "../".repeat(21)),
        ] {
            assert!(OverrideUrl::parse(&text).is_err(), "{text}");
        }
    }
}
