//! Google Kubernetes Engine.

use super::{Location, ask, is_part, text};
use crate::{
    Error, Identity,
    http::{Client, Request, address},
};

const SERVICE: &str = "Google Kubernetes Engine";
pub(super) const FORM: &str = "projects/PROJECT/locations/LOCATION/clusters/NAME";
const CONTAINER: &str = "https://container.googleapis.com/";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Gke(String);

impl Gke {
    pub(super) fn parse(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('/').collect();
        let ["projects", project, "locations", location, "clusters", cluster] = parts.as_slice() else {
            return None;
        };
        // Projects of a domain have a colon.
        let is_valid = is_part(project, "-.:") && is_part(location, "-") && is_part(cluster, "-");
        is_valid.then(|| Self(name.to_owned()))
    }

    pub(super) async fn locate(&self, client: &Client, identity: Identity<'_>) -> Result<Location, Error> {
        let base = identity.ambient.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER");
        let base = address(base.unwrap_or(CONTAINER))?;
        let url = base
            .join(&format!("v1/{}", self.0))
            .map_err(|_| Error::Endpoint {
                url: api::redact(base.as_str()),
                why: "it can have no path",
            })?;
        let token = identity.gcp(client).await?;
        let request = Request {
            method: "GET",
            url: &url,
            headers: &[],
            body: b"",
        };
        let found = ask(client, SERVICE, request, &token).await?;
        Ok(Location::Endpoint {
            address: text(SERVICE, &found, "/endpoint")?.to_owned(),
            authority: text(SERVICE, &found, "/masterAuth/clusterCaCertificate")?.to_owned(),
        })
    }
}
