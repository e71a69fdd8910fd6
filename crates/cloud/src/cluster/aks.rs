//! Azure Kubernetes Service, for clusters with users of Entra ID.

use api::Secret;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{Location, ask, is_part};
use crate::{
    Ambient, Error, Identity, Token,
    http::{Client, Request, address},
};

const SERVICE: &str = "Azure Resource Manager";
pub(super) const FORM: &str = "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/\
                               Microsoft.ContainerService/managedClusters/NAME";
/// Scope of tokens for API servers: the application of the service, which is the same in all tenants.
pub(super) const SCOPE: &str = "6dae42f8-4368-4678-94ff-3960e28e3630/.default";
const VERSION: &str = "2024-09-01";
/// Length of the UUID of a subscription.
const SUBSCRIPTION: usize = 36;

/// Resource managers, by a part of the address of their token service, with the audience of their tokens.
const MANAGERS: [(&str, &str, &str); 3] = [
    (
        "chinacloudapi.cn",
        "https://management.chinacloudapi.cn",
        "https://management.core.chinacloudapi.cn",
    ),
    (
        "microsoftonline.us",
        "https://management.usgovcloudapi.net",
        "https://management.core.usgovcloudapi.net",
    ),
    (
        "",
        "https://management.azure.com",
        "https://management.core.windows.net/",
    ),
];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Aks {
    subscription: String,
    group: String,
    name: String,
}

/// The environment of a cloud that is not public, in the file of `AZURE_ENVIRONMENT_FILEPATH`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Environment {
    resource_manager_endpoint: String,
    token_audience: String,
}

impl Aks {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('/').collect();
        let [
            "",
            subscriptions,
            subscription,
            groups,
            group,
            providers,
            provider,
            kind,
            cluster,
        ] = parts.as_slice()
        else {
            return None;
        };
        let fixed = [
            (subscriptions, "subscriptions"),
            (groups, "resourceGroups"),
            (providers, "providers"),
            (provider, "Microsoft.ContainerService"),
            (kind, "managedClusters"),
        ];
        let is_valid = fixed
            .iter()
            .all(|(found, expected)| found.eq_ignore_ascii_case(expected))
            && subscription.len() == SUBSCRIPTION
            && is_part(subscription, "-")
            && is_part(group, "-_.()")
            && is_part(cluster, "-_");
        is_valid.then(|| Self {
            subscription: (*subscription).to_owned(),
            group: (*group).to_owned(),
            name: (*cluster).to_owned(),
        })
    }

    pub(super) async fn locate(&self, client: &Client, identity: Identity<'_>) -> Result<Location, Error> {
        let (manager, scope) = manager(identity.ambient)?;
        let token = identity.azure(client, &scope).await?;
        let found = self.ask(client, (&manager, ""), "GET", &token).await?;
        if found.pointer("/properties/aadProfile").is_none_or(Value::is_null) {
            let why = "the cluster has no users of Entra ID: enable the integration with Microsoft Entra ID";
            return Err(Error::Refused {
                service: SERVICE,
                why: why.to_owned(),
            });
        }
        let found = self.ask(client, (&manager, "/listClusterUserCredential"), "POST", &token);
        let found = found.await?;
        let list = found.get("kubeconfigs").and_then(Value::as_array);
        let decoded = list.into_iter().flatten().map(|one| {
            let text = one.get("value").and_then(Value::as_str);
            text.and_then(|text| BASE64_STANDARD.decode(text).ok())
                .map(Secret::new)
        });
        let kubeconfigs: Option<Vec<_>> = decoded.collect();
        kubeconfigs.map(Location::Kubeconfigs).ok_or(Error::Answer {
            service: SERVICE,
            why: "a kubeconfig in it is not base64",
        })
    }

    async fn ask(
        &self,
        client: &Client,
        (manager, action): (&Url, &str),
        method: &str,
        token: &Token,
    ) -> Result<Value, Error> {
        let Self {
            subscription,
            group,
            name,
        } = self;
        let path = format!(
            "subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ContainerService/managedClusters/{name}"
        );
        let joined = manager.join(&format!("{path}{action}?api-version={VERSION}"));
        let url = joined.map_err(|_| Error::Endpoint {
            url: api::redact(manager.as_str()),
            why: "it can have no path",
        })?;
        let request = Request {
            method,
            url: &url,
            headers: &[],
            body: b"",
        };
        ask(client, SERVICE, request, token).await
    }
}

/// Returns the resource manager of the environment's cloud, and the scope of tokens for it.
fn manager(ambient: &Ambient) -> Result<(Url, String), Error> {
    let (endpoint, audience) = match ambient.file("AZURE_ENVIRONMENT_FILEPATH")? {
        Some(text) => {
            let invalid = |_| {
                Error::credentials(
                    "file of AZURE_ENVIRONMENT_FILEPATH",
                    "it is no JSON with the endpoints of a cloud",
                )
            };
            let found: Environment = serde_json::from_str(&text).map_err(invalid)?;
            (found.resource_manager_endpoint, found.token_audience)
        }
        None => {
            let authority = ambient.get("AZURE_AUTHORITY_HOST").unwrap_or_default();
            let found = MANAGERS.iter().find(|(part, ..)| authority.contains(part));
            let (_, endpoint, audience) = found.copied().unwrap_or_default();
            (endpoint.to_owned(), audience.to_owned())
        }
    };
    let endpoint = format!("{}/", endpoint.trim_end_matches('/'));
    Ok((address(&endpoint)?, format!("{audience}/.default")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_have_their_resource_managers() {
        let of = |authority: &str| {
            let variable = ("AZURE_AUTHORITY_HOST".to_owned(), authority.to_owned());
            let (url, scope) = manager(&Ambient::new([variable])).unwrap();
            (url.to_string(), scope)
        };
        let own = |url: &str, scope: &str| (url.to_owned(), scope.to_owned());
        assert_eq!(
            of(""),
            own(
                "https://management.azure.com/",
                "https://management.core.windows.net//.default"
            )
        );
        assert_eq!(
            of("https://login.microsoftonline.us/"),
            own(
                "https://management.usgovcloudapi.net/",
                "https://management.core.usgovcloudapi.net/.default"
            )
        );
    }
}
