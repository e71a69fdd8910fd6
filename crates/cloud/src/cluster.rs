//! Clusters of the Kubernetes services of clouds: where their API servers are, and tokens for them.

mod aks;
mod eks;
mod gke;

use api::Secret;
use serde_json::Value;

use crate::{
    Cloud, Error, Identity, Token,
    http::{Client, Request},
    token::shortened,
};
use aks::Aks;
use eks::Eks;
use gke::Gke;

/// Maximum length of a part of a cluster's name.
const MAX_PART: usize = 200;

/// A cluster, by its name in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ManagedCluster(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Eks(Eks),
    /// A name is needed to look the cluster up only.
    Aks(Option<Aks>),
    Gke(Option<Gke>),
}

/// The location of an API server, as the cloud says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Endpoint {
        address: String,
        /// Certificates in PEM, encoded in base64.
        authority: String,
    },
    /// A kubeconfig for each of the cluster's addresses.
    Kubeconfigs(Vec<Secret<Vec<u8>>>),
}

impl ManagedCluster {
    /// Parses the name of a cluster. No name leads to another host than the cloud's.
    ///
    /// # Errors
    /// Fails when the name is of another form than the cloud's, or missing for AWS, whose tokens depend on it.
    pub fn parse(cloud: Cloud, name: Option<&str>) -> Result<Self, Error> {
        let form = match cloud {
            Cloud::Aws => eks::FORM,
            Cloud::Azure => aks::FORM,
            Cloud::Gcp => gke::FORM,
        };
        let invalid = || Error::credentials("name of the cluster", format!("it is not {form}"));
        Ok(Self(match (cloud, name) {
            (Cloud::Aws, name) => Kind::Eks(Eks::parse(name.unwrap_or_default()).ok_or_else(invalid)?),
            (Cloud::Azure, None) => Kind::Aks(None),
            (Cloud::Azure, Some(name)) => Kind::Aks(Some(Aks::parse(name).ok_or_else(invalid)?)),
            (Cloud::Gcp, None) => Kind::Gke(None),
            (Cloud::Gcp, Some(name)) => Kind::Gke(Some(Gke::parse(name).ok_or_else(invalid)?)),
        }))
    }

    #[must_use]
    pub const fn cloud(&self) -> Cloud {
        match self.0 {
            Kind::Eks(_) => Cloud::Aws,
            Kind::Aks(_) => Cloud::Azure,
            Kind::Gke(_) => Cloud::Gcp,
        }
    }

    /// Returns true if the name is known, so that the cluster can be looked up.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        !matches!(self.0, Kind::Aks(None) | Kind::Gke(None))
    }

    /// Returns a token for the API server.
    pub async fn token(&self, client: &Client, identity: Identity<'_>) -> Result<Token, Error> {
        match &self.0 {
            Kind::Eks(cluster) => cluster.token(client, identity).await,
            Kind::Aks(_) => identity.azure(client, aks::SCOPE).await,
            Kind::Gke(_) => identity.gcp(client).await,
        }
    }

    /// Asks the cloud for the location of the API server.
    ///
    /// # Errors
    /// Fails when the name is not known, and when the identity may not look the cluster up.
    pub async fn locate(&self, client: &Client, identity: Identity<'_>) -> Result<Location, Error> {
        match &self.0 {
            Kind::Eks(cluster) => cluster.locate(client, identity).await,
            Kind::Aks(Some(cluster)) => cluster.locate(client, identity).await,
            Kind::Gke(Some(cluster)) => cluster.locate(client, identity).await,
            Kind::Aks(None) | Kind::Gke(None) => {
                Err(Error::credentials("name of the cluster", "it is missing"))
            }
        }
    }
}

/// Returns true for a part of a name in these characters.
fn is_part(text: &str, others: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && text.len() <= MAX_PART && text.chars().all(plain) && text != "." && text != ".."
}

/// Sends a request with a bearer token, and returns the object in the answer.
async fn ask(
    client: &Client,
    service: &'static str,
    request: Request<'_>,
    token: &Token,
) -> Result<Value, Error> {
    let bearer = Secret::new(format!("Bearer {}", token.access.expose()));
    let headers = [("authorization", bearer.expose().as_str())];
    let request = Request {
        headers: &headers,
        ..request
    };
    let answer = client.send(request).await?;
    object(service, answer.status, &answer.body)
}

/// Returns the object in an answer, or the service's reason for having none.
fn object(service: &'static str, status: u16, body: &[u8]) -> Result<Value, Error> {
    let found: Value = serde_json::from_slice(body).unwrap_or_default();
    if status == 200 && found.is_object() {
        return Ok(found);
    }
    let reasons = ["/message", "/Message", "/error/message"];
    let why = reasons.iter().find_map(|at| found.pointer(at)?.as_str());
    Err(Error::Refused {
        service,
        why: why.map_or_else(|| format!("status {status}"), shortened),
    })
}

/// Returns a string in an answer.
fn text<'a>(service: &'static str, found: &'a Value, pointer: &str) -> Result<&'a str, Error> {
    let text = found.pointer(pointer).and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).ok_or(Error::Answer {
        service,
        why: "it has no address of an API server, or no certificates",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_the_form_of_their_cloud() {
        let subscription = "01234567-89ab-cdef-0123-456789abcdef";
        let aks = |group: &str| {
            format!(
                "/subscriptions/{subscription}/resourcegroups/{group}/providers/Microsoft.ContainerService/managedClusters/c"
            )
        };
        for (cloud, name) in [
            (
                Cloud::Aws,
                "arn:aws:eks:eu-west-1:123456789012:cluster/shop".to_owned(),
            ),
            (Cloud::Aws, "arn:aws-cn:eks:cn-north-1:1:cluster/a_B-1".to_owned()),
            (Cloud::Azure, aks("a.b_(c)")),
            (
                Cloud::Gcp,
                "projects/example.com:p/locations/europe-west1/clusters/c".to_owned(),
            ),
        ] {
            let found = ManagedCluster::parse(cloud, Some(&name)).unwrap();
            assert!(found.cloud() == cloud && found.is_named());
        }
        for (cloud, name) in [
            (Cloud::Aws, None),
            (Cloud::Aws, Some("shop".to_owned())),
            (
                Cloud::Aws,
                Some("arn:aws:eks:evil.test/:1:cluster/shop".to_owned()),
            ),
            (
                Cloud::Aws,
                Some("arn:aws:eks:eu-west-1:1:cluster/../x".to_owned()),
            ),
            (Cloud::Azure, Some(aks("a/b"))),
            (Cloud::Azure, Some(aks(".."))),
            (Cloud::Azure, Some(aks("g").replace(subscription, "s"))),
            (Cloud::Gcp, Some("projects/p/locations/../clusters/c".to_owned())),
            (Cloud::Gcp, Some("projects/p/locations/l/clusters/c?x".to_owned())),
        ] {
            let error = ManagedCluster::parse(cloud, name.as_deref())
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("the name of the cluster cannot be used: it is not "),
                "{error}"
            );
        }
        assert!(!ManagedCluster::parse(Cloud::Gcp, None).unwrap().is_named());
    }

    #[test]
    fn answers_are_objects_or_say_why_not() {
        assert!(object("x", 200, b"{}").is_ok());
        for (status, body, why) in [
            (403, &br#"{"message":"not you"}"#[..], "not you"),
            (404, br#"{"error":{"message":"none"}}"#, "none"),
            (500, b"<html>", "status 500"),
            (200, b"[]", "status 200"),
        ] {
            let error = object("x", status, body).unwrap_err().to_string();
            assert_eq!(error, format!("x refused the credentials: {why}"));
        }
    }
}
