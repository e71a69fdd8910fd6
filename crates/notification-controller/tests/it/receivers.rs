//! Receivers: the manifests of their pages, and requests of strangers.

use std::{fs, path::Path};

use hmac::{Hmac, KeyInit as _, Mac as _};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::setup::{TIMEOUT, TestNamespace};

const TOKEN: &str = "s3cr3t-t0ken";
const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
const V1: &str = "notification.toolkit.fluxcd.io/v1";

pub(crate) struct Hooks {
    pub(crate) setup: TestNamespace,
}

impl Hooks {
    pub(crate) async fn new(name: &str) -> Self {
        Self::of(TestNamespace::new(name).await).await
    }

    pub(crate) async fn of(setup: TestNamespace) -> Self {
        setup.secret("token", &json!({"token": TOKEN})).await;
        Self { setup }
    }

    pub(crate) async fn source(&self, name: &str, labels: &Value) {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": name, "namespace": self.setup.namespace, "labels": labels},
            "spec": {"url": "https://git.example.com/shop", "interval": "1h"},
        });
        self.setup.plane.apply(object).await.unwrap();
    }

    async fn api(&self, version: &str, kind: &str, name: &str) -> Api<DynamicObject> {
        let metadata = json!({"name": name, "namespace": self.setup.namespace});
        let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        self.setup.plane.api_for(object).await.unwrap().0
    }

    /// Returns the last request for a reconciliation of a source.
    pub(crate) async fn requested(&self, name: &str) -> Option<String> {
        let api = self
            .api("source.toolkit.fluxcd.io/v1", "GitRepository", name)
            .await;
        let object = api.get(name).await.unwrap();
        object
            .metadata
            .annotations
            .and_then(|all| all.get(REQUESTED).cloned())
    }

    /// Applies a Receiver of the source `shop`, with `more` in its spec.
    pub(crate) async fn apply(&self, name: &str, more: &Value) {
        let mut spec = json!({
            "type": "generic", "secretRef": {"name": "token"}, "resources": [{"kind": "GitRepository", "name": "shop"}],
        });
        for (key, value) in more.as_object().unwrap() {
            match value.is_null() {
                true => drop(spec.as_object_mut().unwrap().remove(key)),
                false => spec[key] = value.clone(),
            }
        }
        let metadata = json!({"name": name, "namespace": self.setup.namespace});
        let object = json!({"apiVersion": V1, "kind": "Receiver", "metadata": metadata, "spec": spec});
        self.setup.plane.apply(object).await.unwrap();
    }

    /// Applies a Receiver, and returns the URL of its webhook when the server knows it.
    pub(crate) async fn receiver(&self, name: &str, more: &Value) -> String {
        self.apply(name, more).await;
        self.url(name).await
    }

    /// Returns the URL of a Receiver's webhook when the server knows it.
    pub(crate) async fn url(&self, name: &str) -> String {
        let path = self
            .path(name, |object| object.data["status"]["webhookPath"].is_string())
            .await;
        let address = self.setup.controller.addresses().receiver;
        testkit::eventually("the webhook", TIMEOUT, || async {
            // A body that is announced as too large tells if the path is known, and does nothing.
            let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 4000000\r\n\r\n");
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(head.as_bytes()).await?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await?;
            anyhow::ensure!(answer == *b"HTTP/1.1 413", "{}", String::from_utf8_lossy(&answer));
            Ok(())
        })
        .await
        .unwrap();
        let url = format!("http://{address}{path}");
        url
    }

    pub(crate) async fn path(&self, name: &str, fits: impl Fn(&DynamicObject) -> bool) -> String {
        let api = self.api(V1, "Receiver", name).await;
        let settled = |object: &DynamicObject| {
            let ready = testkit::ready(object);
            ready["observedGeneration"] == json!(object.metadata.generation) && fits(object)
        };
        let object = testkit::wait_for(&api, name, "the path", TIMEOUT, settled)
            .await
            .unwrap();
        object.data["status"]["webhookPath"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub(crate) async fn post(&self, url: &str, headers: &[(&str, String)], body: &str) -> u16 {
        let mut request = self.setup.http.post(url).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        if status == 400 {
            assert_eq!(response.text().await.unwrap(), "", "a refusal says nothing");
        }
        status
    }

    async fn ready(&self, name: &str, status: &str) -> Value {
        let api = self.api(V1, "Receiver", name).await;
        let object = testkit::wait_for(&api, name, status, TIMEOUT, |object| {
            let ready = testkit::ready(object);
            ready["status"] == status && ready["observedGeneration"] == json!(object.metadata.generation)
        });
        testkit::ready(&object.await.unwrap())
    }
}

pub(crate) fn hmac256(body: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(TOKEN.as_bytes()).unwrap();
    hex::encode(mac.chain_update(body).finalize().into_bytes())
}

fn hmac1(body: &str) -> String {
    let mac = Hmac::<Sha1>::new_from_slice(TOKEN.as_bytes()).unwrap();
    hex::encode(mac.chain_update(body).finalize().into_bytes())
}

fn hmac512(body: &str) -> String {
    let mac = Hmac::<Sha512>::new_from_slice(TOKEN.as_bytes()).unwrap();
    hex::encode(mac.chain_update(body).finalize().into_bytes())
}

const CDEVENT: &str = r#"{"context": {"version": "0.4.1", "id": "1", "source": "/ci", "type": "dev.cdevents.change.merged.0.2.0",
    "timestamp": "2026-11-21T10:00:00Z"}, "subject": {"id": "c1", "source": "/ci", "type": "change", "content": {}}}"#;

/// Type, body, right headers, and headers that are refused.
type Case = (
    &'static str,
    &'static str,
    Vec<(&'static str, String)>,
    Vec<Vec<(&'static str, String)>>,
);

fn cases() -> Vec<Case> {
    let push = r#"{"ref": "refs/heads/main"}"#;
    let json = || ("content-type", "application/json; charset=utf-8".to_owned());
    let header = |name: &'static str, value: &str| (name, value.to_owned());
    vec![
        ("generic", "", vec![], vec![]),
        (
            "generic-hmac",
            push,
            vec![("x-signature", format!("sha512={}", hmac512(push)))],
            vec![
                vec![],
                vec![("x-signature", format!("sha512={}", hmac256(push)))],
                vec![("x-signature", hmac256(push))],
                vec![header("x-signature", "sha256=")],
                vec![header("x-signature", "md5=00")],
            ],
        ),
        (
            "github",
            push,
            vec![
                json(),
                ("x-hub-signature-256", format!("sha256={}", hmac256(push))),
            ],
            vec![
                vec![json()],
                vec![
                    json(),
                    ("x-hub-signature-256", format!("sha256={}", hmac256("other"))),
                ],
                vec![
                    header("content-type", "text/plain"),
                    ("x-hub-signature-256", format!("sha256={}", hmac256(push))),
                ],
            ],
        ),
        (
            "bitbucket",
            push,
            vec![json(), ("x-hub-signature", format!("sha1={}", hmac1(push)))],
            vec![
                vec![json()],
                vec![
                    json(),
                    ("x-hub-signature-256", format!("sha256={}", hmac256(push))),
                ],
            ],
        ),
        (
            "gitlab",
            push,
            vec![header("x-gitlab-token", TOKEN)],
            vec![
                vec![],
                vec![header("x-gitlab-token", "s3cr3t-t0keN")],
                vec![header("x-gitlab-token", "")],
            ],
        ),
        (
            "harbor",
            "{}",
            vec![header("authorization", TOKEN)],
            vec![vec![], vec![("authorization", format!("Bearer {TOKEN}"))]],
        ),
        (
            "dockerhub",
            r#"{"push_data": {"tag": "v1"}, "repository": {"repo_url": "u"}}"#,
            vec![json()],
            vec![],
        ),
        (
            "quay",
            r#"{"docker_url": "quay.io/a/b", "updated_tags": ["v1"]}"#,
            vec![json()],
            vec![],
        ),
        (
            "acr",
            r#"{"action": "push", "target": {"repository": "a", "tag": "v1"}}"#,
            vec![json()],
            vec![],
        ),
        (
            "nexus",
            r#"{"action": "CREATED", "repositoryName": "a"}"#,
            vec![(
                "x-nexus-webhook-signature",
                hmac1(r#"{"action": "CREATED", "repositoryName": "a"}"#),
            )],
            vec![vec![], vec![("x-nexus-webhook-signature", hmac256("{}"))]],
        ),
        (
            "cdevents",
            CDEVENT,
            vec![json(), header("ce-type", "dev.cdevents.change.merged.0.2.0")],
            vec![],
        ),
    ]
}

#[tokio::test]
async fn each_type_accepts_its_sender_alone() {
    let hooks = Hooks::new("hooks").await;
    for (kind, body, right, wrong) in cases() {
        hooks.source("shop", &json!({})).await;
        let url = hooks.receiver(kind, &json!({"type": kind})).await;
        let before = hooks.requested("shop").await;
        for headers in wrong {
            assert_eq!(hooks.post(&url, &headers, body).await, 400, "{kind} {headers:?}");
        }
        if matches!(kind, "dockerhub" | "quay" | "acr" | "nexus" | "cdevents") {
            for body in [
                "",
                "[]",
                "no json",
                r#"{"docker_url": 1, "push_data": 1, "target": 1, "context": 1}"#,
            ] {
                let mut headers = right.clone();
                if kind == "nexus" {
                    headers = vec![("x-nexus-webhook-signature", hmac1(body))];
                    if body.starts_with('{') {
                        continue;
                    }
                }
                assert_eq!(hooks.post(&url, &headers, body).await, 400, "{kind} {body}");
            }
        }
        assert_eq!(
            hooks.requested("shop").await,
            before,
            "{kind}: a refused request does nothing"
        );
        assert_eq!(hooks.post(&url, &right, body).await, 200, "{kind}");
        assert_ne!(hooks.requested("shop").await, before, "{kind}");
    }
    assert!(!hooks.setup.controller.log().contains(TOKEN));
}

#[tokio::test]
async fn events_are_compared_with_the_list_in_any_case() {
    let hooks = Hooks::new("events").await;
    hooks.source("shop", &json!({})).await;
    for (kind, header, event) in [
        ("gitlab", "x-gitlab-event", "Push Hook"),
        ("cdevents", "ce-type", "dev.cdevents.change.merged.0.2.0"),
    ] {
        let url = hooks
            .receiver(
                kind,
                &json!({"type": kind, "events": ["ping", event.to_uppercase()]}),
            )
            .await;
        let mut headers = vec![("x-gitlab-token", TOKEN.to_owned()), (header, event.to_owned())];
        assert_eq!(hooks.post(&url, &headers, CDEVENT).await, 200, "{kind}");
        headers[1].1 = "other".to_owned();
        assert_eq!(hooks.post(&url, &headers, CDEVENT).await, 400, "{kind}");
        headers.pop();
        assert_eq!(hooks.post(&url, &headers, CDEVENT).await, 400, "{kind}");
    }
}

#[tokio::test]
async fn the_path_is_that_of_the_token_and_follows_it() {
    let hooks = Hooks::new("paths").await;
    let namespace = hooks.setup.namespace.clone();
    hooks.source("shop", &json!({})).await;
    let url = hooks.receiver("hook", &json!({})).await;
    let path = |token: &str| {
        format!(
            "/hook/{}",
            hex::encode(Sha256::digest(format!("{token}hook{namespace}")))
        )
    };
    assert!(url.ends_with(&path(TOKEN)), "{url}");
    let ready = hooks.ready("hook", "True").await;
    assert_eq!(
        ready["message"],
        format!("Receiver initialized for path: {}", path(TOKEN))
    );
    // Unlike its query, or another path.
    for url in [
        format!("{url}?x=1"),
        format!("{url}/"),
        url.replace("/hook/", "/"),
        url.replace("/hook/", "/hook/0"),
    ] {
        assert_eq!(hooks.post(&url, &[], "").await, 404, "{url}");
    }
    let secrets: Api<k8s_openapi::api::core::v1::Secret> =
        Api::namespaced(hooks.setup.client.clone(), &namespace);
    let patch = json!({"metadata": {"labels": {"reconcile.fluxcd.io/watch": "Enabled"}}, "stringData": {"token": "new"}});
    secrets
        .patch("token", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    let new = path("new");
    hooks
        .path("hook", |object| {
            object.data["status"]["webhookPath"] == new.as_str()
        })
        .await;
    let new = hooks.url("hook").await;
    assert_eq!(
        (hooks.post(&url, &[], "").await, hooks.post(&new, &[], "").await),
        (404, 200)
    );
    // The path exists only while the Secret exists.
    secrets.delete("token", &Default::default()).await.unwrap();
    assert_eq!(hooks.ready("hook", "False").await["reason"], "TokenNotFound");
    hooks
        .path("hook", |object| {
            object.data["status"].get("webhookPath").is_none()
        })
        .await;
    let secret = serde_json::from_value(json!({
        "metadata": {"name": "token", "labels": {"reconcile.fluxcd.io/watch": "Enabled"}}, "stringData": {"token": TOKEN},
    }));
    secrets
        .create(&Default::default(), &secret.unwrap())
        .await
        .unwrap();
    hooks.ready("hook", "True").await;
    assert_eq!(hooks.post(&hooks.url("hook").await, &[], "").await, 200);
}

#[tokio::test]
async fn suspended_and_failing_receivers_answer_503() {
    let hooks = Hooks::new("states").await;
    hooks.source("shop", &json!({})).await;
    let url = hooks.receiver("hook", &json!({})).await;
    let answers = |status: u16| {
        let (hooks, url) = (&hooks, &url);
        async move {
            let what = format!("status {status}");
            testkit::eventually(&what, TIMEOUT, || async {
                let found = hooks.post(url, &[], "").await;
                anyhow::ensure!(found == status, "{found}");
                Ok(())
            })
            .await
            .unwrap();
        }
    };
    hooks.apply("hook", &json!({"suspend": true})).await;
    answers(503).await;
    hooks.apply("hook", &json!({"suspend": false})).await;
    answers(200).await;
    hooks.apply("hook", &json!({"resourceFilter": "req.ref"})).await;
    assert_eq!(
        hooks.ready("hook", "False").await["reason"],
        "InvalidCELExpression"
    );
    answers(503).await;
    assert!(
        hooks
            .setup
            .controller
            .metric("gotk_receiver_http_request_duration_seconds_count{code=\"503\",handler=\"/hook/\"")
            .await
            .unwrap()
            > 0.0
    );
}

#[tokio::test]
async fn one_bad_resource_does_not_stop_the_others() {
    let hooks = Hooks::new("targets").await;
    hooks.source("shop", &json!({"team": "a"})).await;
    hooks.source("blog", &json!({"team": "a"})).await;
    hooks.source("other", &json!({"team": "b"})).await;
    let labelled = json!({"kind": "GitRepository", "name": "*", "matchLabels": {"team": "a"}});
    for (number, (resource, expected)) in [
        (labelled.clone(), 200),
        (
            json!({"kind": "GitRepository", "name": "*", "matchLabels": {"team": "nobody"}}),
            200,
        ),
        (json!({"kind": "GitRepository", "name": "*"}), 500),
        (json!({"kind": "GitRepository", "name": "missing"}), 500),
        (json!({"kind": "Kustomization", "name": "shop"}), 500),
        (
            json!({"kind": "Unknown", "name": "shop", "apiVersion": "example.com/v1"}),
            500,
        ),
        (json!({"kind": "GitRepository", "name": "../../x"}), 500),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("hook-{number}");
        let url = hooks
            .receiver(&name, &json!({"resources": [resource, labelled]}))
            .await;
        let before = [hooks.requested("shop").await, hooks.requested("blog").await];
        assert_eq!(hooks.post(&url, &[], "").await, expected, "{resource}");
        let after = [hooks.requested("shop").await, hooks.requested("blog").await];
        assert!(before[0] != after[0] && before[1] != after[1], "{resource}");
    }
    assert_eq!(hooks.requested("other").await, None);
}

#[tokio::test]
async fn other_namespaces_are_out_of_reach_with_the_flag() {
    for refused in [true, false] {
        let flag = format!("--no-cross-namespace-refs={refused}");
        let hooks = Hooks::of(TestNamespace::with("cross", |launch| launch.flag(&flag)).await).await;
        let elsewhere = hooks.setup.plane.namespace("elsewhere").await.unwrap();
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "far", "namespace": elsewhere},
            "spec": {"url": "https://git.example.com/shop", "interval": "1h"},
        });
        hooks.setup.plane.apply(source.clone()).await.unwrap();
        let resources = json!([{"kind": "GitRepository", "name": "far", "namespace": elsewhere}]);
        let url = hooks.receiver("hook", &json!({"resources": resources})).await;
        assert_eq!(hooks.post(&url, &[], "").await, if refused { 500 } else { 200 });
        let (api, _) = hooks.setup.plane.api_for(source).await.unwrap();
        let annotations = api
            .get("far")
            .await
            .unwrap()
            .metadata
            .annotations
            .unwrap_or_default();
        assert_eq!(annotations.contains_key(REQUESTED), !refused);
    }
}

#[tokio::test]
async fn filters_choose_by_request_and_object() {
    let hooks = Hooks::new("filters").await;
    hooks.source("shop", &json!({"branch": "main"})).await;
    let spec = json!({
        "resourceFilter": "req.ref.endsWith('/' + res.metadata.labels.branch)",
        "resources": [{"kind": "GitRepository", "name": "shop", "filter": "res.metadata.name == 'shop' && req.?skip.orValue(false) != true"}],
    });
    let url = hooks.receiver("hook", &spec).await;
    let json = || vec![("content-type", "application/json".to_owned())];
    for (body, headers, expected, annotated) in [
        (r#"{"ref": "refs/heads/main"}"#, json(), 200, true),
        (r#"{"ref": "refs/heads/dev"}"#, json(), 200, false),
        (r#"{"ref": "refs/heads/main", "skip": true}"#, json(), 200, false),
        (r#"{"other": 1}"#, json(), 500, false),
        ("no json", json(), 500, false),
        (r#"{"ref": "refs/heads/main"}"#, vec![], 500, false),
    ] {
        let before = hooks.requested("shop").await;
        assert_eq!(hooks.post(&url, &headers, body).await, expected, "{body}");
        assert_eq!(hooks.requested("shop").await != before, annotated, "{body}");
    }
}

#[tokio::test]
async fn a_restarted_controller_knows_all_paths_before_it_is_ready() {
    let mut hooks = Hooks::new("restart").await;
    hooks.source("shop", &json!({})).await;
    let url = hooks.receiver("hook", &json!({})).await;
    hooks.setup.controller.kill().await.unwrap();
    hooks.setup.controller.restart().await.unwrap();
    assert_eq!(hooks.post(&url, &[], "").await, 200);
}

#[tokio::test]
async fn manifests_of_all_receiver_pages_become_ready() {
    let setup = TestNamespace::new("hook-pages").await;
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/receivers");
    let mut names = Vec::new();
    for page in fs::read_dir(pages).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let yaml = text
            .split("```yaml\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();
        for document in yaml.split("---\n") {
            let read = yaml::read::goyaml(document, &tree::Budget::default()).unwrap();
            let mut object: Value = read.value.to_json();
            object["metadata"]["namespace"] = setup.namespace.clone().into();
            object["metadata"]["name"] = name.clone().into();
            if object["kind"] == "Receiver" {
                assert_eq!(object["spec"]["type"], name);
                if object["spec"].get("secretRef").is_some() {
                    object["spec"]["secretRef"]["name"] = name.clone().into();
                }
            }
            setup.plane.apply(object).await.unwrap();
        }
        names.push(name);
    }
    let mut implemented = notification_controller::receiver_types();
    implemented.sort_unstable();
    names.sort();
    assert_eq!(names, implemented, "each type has a page");
    let hooks = Hooks { setup };
    for name in names {
        hooks.ready(&name, "True").await;
    }
}
