//! Addresses of buckets. Pure.

use url::{Host, Url};

use crate::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) url: Url,
    /// Without a trailing slash; empty if the host names the bucket.
    pub(super) path: String,
}

pub(crate) fn parse(endpoint: &str, insecure: bool) -> Result<Url, Error> {
    let refused = |why| Error::Endpoint {
        endpoint: printable(endpoint),
        why,
    };
    if endpoint.contains("://") {
        return Err(refused(
            "write it as host or host:port, without https:// or http://",
        ));
    }
    let scheme = if insecure { "http" } else { "https" };
    let url =
        Url::parse(&format!("{scheme}://{endpoint}")).map_err(|_| refused("it is no host or host:port"))?;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    if has_credentials || url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(refused("write it as host or host:port, without a path"));
    }
    Ok(url)
}

fn printable(endpoint: &str) -> String {
    let host = endpoint.rsplit_once('@').map_or(endpoint, |(_, host)| host);
    api::redact(host.split(['?', '#']).next().unwrap_or_default())
}

/// Returns the region in a host of AWS, as in `s3.eu-west-1.amazonaws.com`.
pub(super) fn region(base: &Url) -> Option<String> {
    let (rest, _) = amazon(base)?;
    let region = rest.strip_prefix('.').or_else(|| rest.strip_prefix('-'))?;
    let region = region.strip_prefix("dualstack.").unwrap_or(region);
    let region = region.strip_prefix("fips.").unwrap_or(region);
    cloud::aws::is_region(region).then(|| region.to_owned())
}

/// Returns true for the S3-compatible address of Google Cloud Storage, which lists by markers.
pub(super) fn is_google(base: &Url) -> bool {
    base.host_str() == Some("storage.googleapis.com")
}

/// Returns the part between `s3` and the domain of AWS in a host, and the domain.
fn amazon(base: &Url) -> Option<(&str, &'static str)> {
    let host = base.host_str()?;
    let domain = [".amazonaws.com", ".amazonaws.com.cn"]
        .into_iter()
        .find(|domain| host.ends_with(domain))?;
    let rest = host.strip_suffix(domain)?.strip_prefix("s3")?;
    let is_service = rest.is_empty() || rest.starts_with(['.', '-']);
    is_service.then_some((rest, domain))
}

impl Address {
    /// Returns the address of a bucket: in the host at AWS, in the path for all others, and if a certificate wouldn't fit the
    /// host. The host of AWS without a region leads to the region's.
    pub(super) fn new(base: &Url, region: &str, bucket: &str) -> Self {
        let in_path = |url: Url| Self {
            url,
            path: format!("/{}", crate::encode::percent(bucket, false)),
        };
        let Some((rest, domain)) = amazon(base) else {
            return in_path(base.clone());
        };
        let mut url = base.clone();
        // Neither can fail: the parts come from a host.
        if rest.is_empty() {
            let domain = if region.starts_with("cn-") {
                ".amazonaws.com.cn"
            } else {
                domain
            };
            let _ = url.set_host(Some(&format!("s3.{region}{domain}")));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = (3..=63).contains(&bucket.len()) && bucket.chars().all(plain);
        let host = match url.host() {
            Some(Host::Domain(host)) if fits => format!("{bucket}.{host}"),
            _ => return in_path(url),
        };
        let _ = url.set_host(Some(&host));
        Self {
            url,
            path: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_hosts() {
        for (endpoint, insecure, expected) in [
            ("minio.test:9000", false, "https://minio.test:9000/"),
            ("127.0.0.1:9000", true, "http://127.0.0.1:9000/"),
            ("s3.amazonaws.com", false, "https://s3.amazonaws.com/"),
            ("h/", false, "https://h/"),
        ] {
            assert_eq!(parse(endpoint, insecure).unwrap().as_str(), expected);
        }
        for endpoint in ["https://h", "h/path", "u:canary@h", "h?x", "", "h:port", "h#x"] {
            let error = parse(endpoint, false).unwrap_err().to_string();
            assert!(
                error.contains("can't be used") && !error.contains("canary"),
                "{error}"
            );
        }
    }

    #[test]
    fn buckets_are_in_the_host_at_aws_and_else_in_the_path() {
        for (endpoint, named, region_, bucket, expected) in [
            (
                "minio.test:9000",
                None,
                "us-east-1",
                "shop",
                "https://minio.test:9000/ /shop",
            ),
            (
                "s3.amazonaws.com",
                None,
                "eu-west-1",
                "shop",
                "https://shop.s3.eu-west-1.amazonaws.com/ ",
            ),
            (
                "s3.amazonaws.com",
                None,
                "cn-north-1",
                "shop",
                "https://shop.s3.cn-north-1.amazonaws.com.cn/ ",
            ),
            (
                "s3.eu-west-1.amazonaws.com",
                Some("eu-west-1"),
                "eu-west-1",
                "a.b",
                "https://s3.eu-west-1.amazonaws.com/ /a.b",
            ),
            (
                "s3-eu-west-1.amazonaws.com",
                Some("eu-west-1"),
                "eu-west-1",
                "A_b",
                "https://s3-eu-west-1.amazonaws.com/ /A_b",
            ),
            (
                "s3.dualstack.us-west-2.amazonaws.com",
                Some("us-west-2"),
                "us-west-2",
                "shop",
                "https://shop.s3.dualstack.us-west-2.amazonaws.com/ ",
            ),
            (
                "s3x.amazonaws.com",
                None,
                "us-east-1",
                "shop",
                "https://s3x.amazonaws.com/ /shop",
            ),
            ("h", None, "us-east-1", "../x", "https://h/ /..%2Fx"),
        ] {
            let base = parse(endpoint, false).unwrap();
            assert_eq!(region(&base).as_deref(), named, "{endpoint}");
            let address = Address::new(&base, region_, bucket);
            assert_eq!(
                format!("{} {}", address.url, address.path),
                expected,
                "{endpoint}"
            );
        }
    }
}
