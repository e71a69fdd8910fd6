//! The description of a cluster in the data of a ConfigMap. Pure.

use std::collections::BTreeMap;

use cloud::{Cloud, ManagedCluster};
use url::Url;

/// The keys of the ConfigMap, as in the original.
const PROVIDER: &str = "provider";
const CLUSTER: &str = "cluster";
const ADDRESS: &str = "address";
const CA: &str = "ca.crt";
const AUDIENCES: &str = "audiences";
const ACCOUNT: &str = "serviceAccountName";
/// The only provider without a service of a cloud.
const GENERIC: &str = "generic";

/// The description of a remote cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    /// URL of the API server; `None` if its cloud knows it.
    pub(super) server: Option<String>,
    /// Certificates in PEM.
    pub(super) authority: Option<String>,
    /// ServiceAccount whose tokens are used; `None` for the cloud's identity of the controller.
    pub(super) account: Option<String>,
    pub(super) access: Access,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// The API server accepts tokens of the ServiceAccount with these audiences.
    Tokens {
        audiences: Vec<String>,
    },
    Cloud(ManagedCluster),
}

impl Description {
    /// Reads the data of a ConfigMap. The error is in words.
    pub(super) fn read(
        data: &BTreeMap<String, String>,
        default_account: &str,
        may_be_controller: bool,
    ) -> Result<Self, String> {
        let given = |key: &str| {
            data.get(key)
                .map(String::as_str)
                .filter(|value| !value.is_empty())
        };
        let provider = given(PROVIDER)
            .ok_or_else(|| format!("it has no key '{PROVIDER}': set it to aws, azure, gcp or {GENERIC}"))?;
        let cloud = Cloud::parse(provider);
        if cloud.is_none() && provider != GENERIC {
            return Err(format!(
                "{PROVIDER} '{provider}' is not known: use aws, azure, gcp or {GENERIC}"
            ));
        }
        let server = given(ADDRESS).map(server).transpose()?;
        let access = match cloud {
            None => generic(given)?,
            Some(cloud) => managed(cloud, given)?,
        };
        // Otherwise whoever writes a ConfigMap could have tokens of the controller sent to any server.
        let account = given(ACCOUNT).or(Some(default_account).filter(|name| !name.is_empty()));
        if let Some(name) = account.filter(|name| !api::is_object_name(name)) {
            return Err(format!("{ACCOUNT} '{name}' is not the name of a ServiceAccount"));
        }
        if account.is_none() && (cloud.is_none() || !may_be_controller) {
            return Err(format!(
                "it has no key '{ACCOUNT}', and the controller no --default-kubeconfig-service-account"
            ));
        }
        Ok(Self {
            server,
            authority: given(CA).map(str::to_owned),
            account: account.map(str::to_owned),
            access,
        })
    }
}

fn generic<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Access, String> {
    if given(CLUSTER).is_some() {
        return Err(format!(
            "the key '{CLUSTER}' is for providers of clouds: remove it, and set '{ADDRESS}'"
        ));
    }
    let address = given(ADDRESS).ok_or_else(|| format!("it has no key '{ADDRESS}'"))?;
    let audiences = given(AUDIENCES).unwrap_or_default().lines().map(str::trim);
    let mut audiences: Vec<String> = audiences
        .filter(|audience| !audience.is_empty())
        .map(str::to_owned)
        .collect();
    if audiences.is_empty() {
        audiences.push(address.to_owned());
    }
    Ok(Access::Tokens { audiences })
}

fn managed<'a>(cloud: Cloud, given: impl Fn(&str) -> Option<&'a str>) -> Result<Access, String> {
    if given(AUDIENCES).is_some() {
        return Err(format!(
            "the key '{AUDIENCES}' is not supported for provider '{}', whose token service has one audience: remove it",
            cloud.name()
        ));
    }
    let cluster = ManagedCluster::parse(cloud, given(CLUSTER));
    let cluster = cluster.map_err(|error| format!("the key '{CLUSTER}': {error}"))?;
    if !cluster.is_named() && (given(ADDRESS).is_none() || given(CA).is_none()) {
        return Err(format!(
            "it has no key '{CLUSTER}', by which the missing '{ADDRESS}' or '{CA}' could be looked up"
        ));
    }
    Ok(Access::Cloud(cluster))
}

/// Returns the URL of an API server, whose scheme may be missing. The error is in words.
pub(super) fn server(address: &str) -> Result<String, String> {
    let url = match address.starts_with("http") {
        true => address.to_owned(),
        false => format!("https://{address}"),
    };
    let url =
        Url::parse(&url).map_err(|error| format!("{ADDRESS} '{address}' is not an address: {error}"))?;
    let host = url.host_str().filter(|host| !host.is_empty());
    match (url.scheme(), host) {
        ("https", Some(host)) => Ok(format!("https://{host}:{}", url.port().unwrap_or(443))),
        _ => Err(format!("{ADDRESS} '{address}' must use the scheme https")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(change: &[(&str, &str)], default: &str) -> Result<Description, String> {
        let base = [
            (PROVIDER, GENERIC),
            (ADDRESS, "Api.example.com"),
            (ACCOUNT, "deployer"),
        ];
        let all = base.iter().chain(change);
        let data = all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Description::read(&data.collect(), default, false)
    }

    #[test]
    fn descriptions_have_defaults() {
        let plain = described(&[], "").unwrap();
        let audiences = |list: &[&str]| Access::Tokens {
            audiences: list.iter().map(|&audience| audience.to_owned()).collect(),
        };
        assert_eq!(plain.server.as_deref(), Some("https://api.example.com:443"));
        assert_eq!(plain.access, audiences(&["Api.example.com"]));
        assert_eq!(plain.account.as_deref(), Some("deployer"));
        let more = described(
            &[
                (ADDRESS, "https://10.0.0.1:6443/path"),
                (AUDIENCES, " a \n\nb\n"),
                (ACCOUNT, ""),
                (CA, "pem"),
            ],
            "default",
        );
        let more = more.unwrap();
        assert_eq!(more.server.as_deref(), Some("https://10.0.0.1:6443"));
        assert_eq!(more.access, audiences(&["a", "b"]));
        assert_eq!(
            (more.account.as_deref(), more.authority.as_deref()),
            (Some("default"), Some("pem"))
        );
    }

    #[test]
    fn clusters_of_clouds_are_known_by_their_names() {
        let gke = (CLUSTER, "projects/p/locations/l/clusters/c");
        let named = described(&[(PROVIDER, "gcp"), (ADDRESS, ""), gke], "").unwrap();
        assert!(matches!(&named.access, Access::Cloud(cluster) if cluster.is_named()));
        assert_eq!(named.server, None);
        let unnamed = described(&[(PROVIDER, "azure"), (CA, "pem")], "").unwrap();
        assert!(matches!(&unnamed.access, Access::Cloud(cluster) if !cluster.is_named()));
        // The identity of the controller is for objects that may deploy as the controller.
        let data = [(PROVIDER, "gcp"), gke].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let own = Description::read(&data.clone().into(), "", true).unwrap();
        assert_eq!(own.account, None);
        let error = Description::read(&data.into(), "", false).unwrap_err();
        assert!(error.contains("--default-kubeconfig-service-account"), "{error}");
    }

    #[test]
    fn invalid_descriptions_say_what_to_do() {
        for (change, part) in [
            ((PROVIDER, "x"), "provider 'x' is not known"),
            ((PROVIDER, ""), "it has no key 'provider'"),
            (
                (PROVIDER, "aws"),
                "the key 'cluster': the name of the cluster cannot be used: it is not arn:aws:eks:",
            ),
            ((PROVIDER, "gcp"), "it has no key 'cluster'"),
            ((CLUSTER, "c"), "the key 'cluster' is for providers of clouds"),
            ((ADDRESS, ""), "it has no key 'address'"),
            ((ADDRESS, "http://a"), "must use the scheme https"),
            ((ADDRESS, "https://"), "is not an address"),
            ((ACCOUNT, ""), "--default-kubeconfig-service-account"),
            ((ACCOUNT, "a/../b"), "is not the name of a ServiceAccount"),
        ] {
            let error = described(&[change], "").unwrap_err();
            assert!(error.contains(part), "{change:?}: {error}");
        }
        let error = described(&[(PROVIDER, "azure"), (CA, "pem"), (AUDIENCES, "a")], "").unwrap_err();
        assert!(
            error.contains("the key 'audiences' is not supported for provider 'azure'"),
            "{error}"
        );
    }
}
