//! Reading single objects.

use std::time::Duration;

use api::Secret;
use http::Method;
use objects::{
    ObjectRef,
    readiness::{self, StatusNeed},
};
use yaml::Value;

use crate::{
    ApiError, Cluster, Error, ResourceKind,
    connection::send::{Answer, Call},
    path,
};

/// HTTP statuses by which API servers without a cache may refuse a resourceVersion. One that the cache doesn't reach in time is
/// answered with 504, which is a failed attempt.
const NOT_CACHED: [u16; 2] = [400, 410];

impl Answer {
    /// Returns the answer unless it is an error.
    pub(crate) fn success(self, about: Option<&ObjectRef>) -> Result<Self, Error> {
        if self.status < 400 {
            return Ok(self);
        }
        let error = ApiError::parse(self.status, &self.body);
        Err(Error::Api(match about {
            Some(reference) => error.without_secrets(reference),
            None => error,
        }))
    }

    pub(crate) fn value(&self, what: &str) -> Result<Value, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Malformed {
            what: what.to_owned(),
            // Only the position: a quoted part of the body may belong to a Secret.
            reason: format!("no JSON at line {}, column {}", error.line(), error.column()),
        })
    }

    pub(crate) fn is_kind(&self, kind: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Head {
            kind: String,
        }
        serde_json::from_slice::<Head>(&self.body).is_ok_and(|head| head.kind == kind)
    }
}

impl Cluster {
    /// Returns the live object; `None` if it, its namespace or its kind does not exist.
    pub async fn get(&self, reference: &ObjectRef) -> Result<Option<Value>, Error> {
        Ok(self.read(reference).await?.map(|(object, _)| object))
    }

    /// Returns the live object with the API server's warnings; `None` if it, its namespace or its kind does not exist.
    pub async fn read(&self, reference: &ObjectRef) -> Result<Option<(Value, Vec<String>)>, Error> {
        self.read_since(reference, None).await
    }

    /// Returns the live object in a state that is not older than `known`, a resourceVersion of it. The API server answers from
    /// its cache, which costs less than a read from etcd (docs/adr/0039). etcd is read if no version is known, or if the cache
    /// stays behind it.
    pub async fn read_since(
        &self,
        reference: &ObjectRef,
        known: Option<&str>,
    ) -> Result<Option<(Value, Vec<String>)>, Error> {
        let kind = match self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await
        {
            Ok(kind) => kind,
            Err(Error::NoMatch { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let what = format!("get {reference}");
        let url = path::object(&kind, reference)?;
        let cached = match known {
            Some(version) => {
                let url = format!("{url}?resourceVersion={}", path::encode(version));
                self.send_once(&what, &Call::get(url)).await
            }
            None => None,
        };
        let answer = match cached {
            Some(answer) if !NOT_CACHED.contains(&answer.status) => answer,
            // After any failure, this request decides.
            _ => self.send(&what, &Call::get(url)).await?,
        };
        if answer.status == 404 {
            return Ok(None);
        }
        let answer = answer.success(Some(reference))?;
        Ok(Some((answer.value(&what)?, answer.warnings)))
    }

    pub async fn version(&self) -> Result<String, Error> {
        let what = "version";
        let answer = self.send(what, &Call::get("/version".to_owned())).await?;
        let version = answer.success(None)?.value(what)?;
        let version = version.get("gitVersion").and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| Error::Malformed {
            what: what.to_owned(),
            reason: "it has no gitVersion".to_owned(),
        })
    }

    /// Returns a token of a service account for a server outside of the cluster that checks the `audience`.
    pub async fn service_account_token(
        &self,
        account: &ObjectRef,
        audience: &str,
        age: Duration,
    ) -> Result<Secret<String>, Error> {
        let what = format!("token of {account}");
        let kind = self.kind("", "v1", "ServiceAccount").await?;
        let body = serde_json::json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"audiences": [audience], "expirationSeconds": age.as_secs()},
        });
        let call = Call {
            method: Method::POST,
            content_type: "application/json",
            body: body.to_string().into(),
            ..Call::get(format!("{}/token", path::object(&kind, account)?))
        };
        let answer = self.send(&what, &call).await?.success(None)?.value(&what)?;
        let token = answer.pointer(&["status", "token"]).and_then(Value::as_str);
        let token = token.map(|token| Secret::new(token.to_owned()));
        token.ok_or_else(|| Error::Malformed {
            what,
            reason: "it has no token".to_owned(),
        })
    }

    /// Returns the identity of the cluster: the UID of its namespace `kube-system`. The right to list namespaces suffices.
    pub async fn id(&self) -> Result<String, Error> {
        let namespace = ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: "kube-system".to_owned(),
        };
        let object = match self.get(&namespace).await {
            Err(error) if error.is_forbidden() => self.listed_namespace(&namespace.name, error).await?,
            other => other?,
        };
        object
            .as_ref()
            .and_then(objects::meta::uid)
            .map(str::to_owned)
            .ok_or_else(|| Error::Malformed {
                what: "cluster id".to_owned(),
                reason: "kube-system namespace has no uid".to_owned(),
            })
    }

    async fn listed_namespace(&self, name: &str, refused: Error) -> Result<Option<Value>, Error> {
        let kind = self.kind("", "v1", "Namespace").await?;
        let url = format!(
            "{}?fieldSelector=metadata.name%3D{name}",
            path::collection(&kind, None)?
        );
        let what = format!("list namespace {name}");
        let answer = self.send(&what, &Call::get(url)).await?;
        if answer.status == 403 {
            return Err(refused);
        }
        let list = answer.success(None)?.value(&what)?;
        let items = list.get("items").and_then(Value::as_seq).unwrap_or_default();
        Ok(items.first().cloned())
    }

    /// Returns the need of an object for a status: known for built-in kinds; for others, the definition's schema decides, and if there
    /// is none or it may not be read, the object's status subresource. Unknown if neither may be read.
    ///
    /// # Errors
    /// Fails when the API server can't be reached.
    pub async fn status_need(&self, reference: &ObjectRef) -> Result<StatusNeed, Error> {
        if let Some(known) = readiness::builtin_status(&reference.group, &reference.kind) {
            return Ok(known);
        }
        let kind = match self
            .kind(&reference.group, &reference.version, &reference.kind)
            .await
        {
            Ok(kind) => kind,
            Err(Error::NoMatch { .. }) => return Ok(StatusNeed::Unknown),
            Err(error) => return Err(error),
        };
        let definition = ObjectRef {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            namespace: None,
            name: format!("{}.{}", kind.plural, kind.group),
        };
        match self.get(&definition).await {
            Ok(Some(definition)) if schema_has_status(&definition, &kind.version) => Ok(StatusNeed::Required),
            Ok(Some(_)) => Ok(StatusNeed::NotRequired),
            Ok(None) => self.status_subresource(&kind, reference).await,
            Err(error) if error.is_forbidden() => self.status_subresource(&kind, reference).await,
            Err(error) => Err(error),
        }
    }

    async fn status_subresource(
        &self,
        kind: &ResourceKind,
        reference: &ObjectRef,
    ) -> Result<StatusNeed, Error> {
        let what = format!("get the status of {reference}");
        let call = Call::get(format!("{}/status", path::object(kind, reference)?));
        match self.send(&what, &call).await?.success(Some(reference)) {
            Ok(_) => Ok(StatusNeed::Required),
            Err(error) if error.is_not_found() => Ok(StatusNeed::NotRequired),
            Err(error) if error.is_forbidden() => Ok(StatusNeed::Unknown),
            Err(error) => Err(error),
        }
    }
}

fn schema_has_status(definition: &Value, version: &str) -> bool {
    let versions = definition
        .pointer(&["spec", "versions"])
        .and_then(Value::as_seq)
        .unwrap_or_default();
    versions
        .iter()
        .filter(|served| served.get("name").and_then(Value::as_str) == Some(version))
        .any(|served| {
            served
                .pointer(&["schema", "openAPIV3Schema", "properties", "status"])
                .is_some()
        })
}
