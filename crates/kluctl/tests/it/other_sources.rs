//! Values of other repositories, the cluster, servers and stores.

mod encrypted;
mod history;
mod repositories;
mod vars;

use std::sync::Arc;

use kluctl::{
    CallbackError, Error, FetchedSource, GitReference, HttpAnswer, HttpRequest, ObjectQuery, ObjectSelection,
    RemoteRef, Rendered, Request, SecretQuery, SourceAddress, Sources, VarsError, VarsSources,
};
use tree::{Budget, Mem};
use yaml::Value;

use crate::support::render_files;

type Files = Vec<(&'static str, &'static str)>;

/// Address, reference and files.
struct Repositories(Vec<(&'static str, GitReference, Files)>);

impl Sources for Repositories {
    fn fetch(&self, address: &SourceAddress, _: &Budget) -> Result<FetchedSource, CallbackError> {
        let wanted = match address {
            SourceAddress::Git { reference, .. } => reference.clone(),
            SourceAddress::Oci { tag, .. } => GitReference::Tag(tag.clone().unwrap_or_default()),
        };
        let found = self
            .0
            .iter()
            .find(|(url, reference, _)| *url == address.url() && *reference == wanted);
        let (.., files) = found.ok_or_else(|| CallbackError::new(format!("no {wanted}")))?;
        let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
        Ok(FetchedSource {
            tree: Arc::new(Mem::from_files(files).unwrap()),
            commit: None,
            revision: None,
        })
    }

    fn references(&self, url: &str, _: &Budget) -> Result<Vec<RemoteRef>, CallbackError> {
        let of_url = self.0.iter().filter(|(known, ..)| *known == url);
        Ok(of_url
            .map(|(_, reference, _)| RemoteRef {
                name: reference.to_string(),
                commit: "c0ffee".to_owned(),
                target: None,
            })
            .collect())
    }
}

/// Variables of a small environment, cluster, server and store.
struct TestVars;

fn yaml(text: &str) -> Value {
    yaml::read::goyaml(text, &Budget::default()).unwrap().value
}

impl VarsSources for TestVars {
    fn environment(&self, name: &str) -> Result<Option<String>, VarsError> {
        Ok(match name {
            "NUMBER" => Some("4".to_owned()),
            "EMPTY" => Some(String::new()),
            "TOKEN" => Some("*s3cret".to_owned()),
            _ => None,
        })
    }

    fn objects(&self, query: &ObjectQuery, _: &Budget) -> Result<Vec<Value>, VarsError> {
        let objects = [
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: ns, labels: {a: b, x: z}}, data: {v: '2'}}",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: ns, labels: {a: b}}, data: {v: '1', k: 'cm: \"{{ who }}\"', s: '42'}}",
            "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}, data: {k: c2VjOiB5ZXM=}}",
        ];
        let matches = |object: &Value| {
            object.get("kind").and_then(Value::as_str) == Some(&query.kind)
                && match &query.which {
                    ObjectSelection::Name(name) => {
                        object.pointer(&["metadata", "name"]).and_then(Value::as_str) == Some(name)
                    }
                    ObjectSelection::Labels(labels) => labels.iter().all(|(key, value)| {
                        object
                            .pointer(&["metadata", "labels", key])
                            .and_then(Value::as_str)
                            == Some(value)
                    }),
                }
        };
        Ok(objects.into_iter().map(yaml).filter(matches).collect())
    }

    fn http(&self, request: &HttpRequest, _: &Budget) -> Result<HttpAnswer, VarsError> {
        let (status, body) = match request.url.as_str() {
            "https://x/v?key=s3cret" => (
                200,
                format!("{{\"m\": \"{}\", \"in\": \"{{a: 1}}\"}}", request.method),
            ),
            "https://x/gone" => (404, String::new()),
            _ => (500, String::new()),
        };
        Ok(HttpAnswer {
            status,
            body: body.into(),
        })
    }

    fn secret(&self, query: &SecretQuery, _: &Budget) -> Result<String, VarsError> {
        match query {
            SecretQuery::Aws { name, profile, .. } if name == "there" => Ok(format!(
                "aws: {} {{{{ who }}}}",
                profile.as_deref().unwrap_or_default()
            )),
            SecretQuery::Vault { path, .. } => match path.as_str() {
                "there" => Ok("{\"vault\": 1}".to_owned()),
                "broken" => Ok("a: 1\ns3cret: *s3cret\n".to_owned()),
                "template" => Ok("a: 1\nb: {{ s3cret }}\n".to_owned()),
                "tag" => Ok("{% s3cret %}".to_owned()),
                _ => Err(VarsError::Missing("no such secret".to_owned())),
            },
            _ => Err(VarsError::Missing("no such secret".to_owned())),
        }
    }
}

fn request(repositories: Repositories) -> Request {
    Request {
        sources: Some(Arc::new(repositories)),
        vars: Some(Arc::new(TestVars)),
        ..Request::default()
    }
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  v: \"{{ v }}\"\n";

/// Renders a deployment with one item `app`, whose ConfigMap prints `v`.
fn render(deployment: &str, repositories: Repositories) -> Result<Rendered, Error> {
    let files = [("deployment.yaml", deployment), ("app/m.yaml", MAP)];
    render_files(&files, &request(repositories))
}

fn values(rendered: &Rendered) -> Vec<&str> {
    let value = |object| Value::pointer(object, &["data", "v"]).and_then(Value::as_str);
    rendered.objects().filter_map(value).collect()
}
