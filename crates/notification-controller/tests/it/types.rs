//! Each type of provider, by the manifest of its page, and by the request that a local server receives.

use std::{fs, path::Path};

use serde_json::{Value, json};
use testkit::Answer;

use crate::setup::TestNamespace;

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

#[tokio::test]
async fn manifests_of_all_provider_pages_become_ready() {
    let setup = TestNamespace::new("pages").await;
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers");
    let mut names = Vec::new();
    for page in fs::read_dir(pages).unwrap() {
        let path = page.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().replace('.', "-");
        let text = fs::read_to_string(&path).unwrap();
        let yaml = text
            .split("```yaml\n")
            .nth(1)
            .unwrap()
            .split("```")
            .next()
            .unwrap();
        for document in yaml.split("---\n") {
            let mut object: Value = yaml::read::goyaml(document, &tree::Budget::default())
                .unwrap()
                .value
                .to_json();
            object["metadata"]["namespace"] = setup.namespace.clone().into();
            object["metadata"]["name"] = name.clone().into();
            if object["kind"] == "Provider" && object["spec"].get("secretRef").is_some() {
                object["spec"]["secretRef"]["name"] = name.clone().into();
            }
            setup.plane.apply(object).await.unwrap();
        }
        names.push(name);
    }
    let mut implemented: Vec<_> = notification_controller::providers::ALL
        .iter()
        .map(|kind| kind.rules.name.replace('.', "-"))
        .collect();
    implemented.sort();
    names.sort();
    assert_eq!(names, implemented, "each type has a page");
    for name in names {
        setup.wait_ready("Provider", &name, "True").await;
    }
}

/// Type, address at the sink, channel, keys of the Secret; method and path of its last request, a header, and a part of its body.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    &'static str,
    String,
    (&'static str, &'static str),
    (&'static str, Value),
);

fn cases() -> Vec<Case> {
    let token = || json!({"token": "t0ken"});
    let login = || json!({"username": "u", "password": "p"});
    let json = ("content-type", "application/json");
    let bearer = ("authorization", "Bearer t0ken");
    let basic = ("authorization", "Basic dTpw");
    let git = |path: &str| path.replace("HASH", HASH);
    let own = |path: &str| path.to_owned();
    vec![
        (
            "discord",
            "discord",
            "",
            json!({}),
            "POST",
            own("/discord/slack"),
            json,
            ("/username", "source-controller".into()),
        ),
        (
            "rocket",
            "rocket",
            "ops",
            json!({}),
            "POST",
            own("/rocket"),
            json,
            ("/channel", "ops".into()),
        ),
        (
            "msteams",
            "teams",
            "",
            json!({}),
            "POST",
            own("/teams"),
            json,
            ("/type", "message".into()),
        ),
        (
            "googlechat",
            "chat",
            "",
            json!({}),
            "POST",
            own("/chat"),
            json,
            ("/cards/0/header/subtitle", "source-controller".into()),
        ),
        (
            "webex",
            "webex",
            "room",
            token(),
            "POST",
            own("/webex"),
            bearer,
            ("/roomId", "room".into()),
        ),
        (
            "lark",
            "lark",
            "",
            json!({}),
            "POST",
            own("/lark"),
            json,
            ("/msg_type", "interactive".into()),
        ),
        (
            "zulip",
            "z",
            "ops/x",
            login(),
            "POST",
            own("/api/v1/messages"),
            basic,
            ("", Value::Null),
        ),
        (
            "zoom",
            "zoom",
            "",
            token(),
            "POST",
            own("/zoom?format=full"),
            ("authorization", "t0ken"),
            ("/content/body/0/type", "message".into()),
        ),
        (
            "opsgenie",
            "alerts",
            "",
            token(),
            "POST",
            own("/alerts"),
            ("authorization", "GenieKey t0ken"),
            ("/message", "GitRepository/shop".into()),
        ),
        (
            "pagerduty",
            "x",
            "key",
            json!({}),
            "POST",
            own("/v2/enqueue"),
            json,
            ("/event_action", "trigger".into()),
        ),
        (
            "incident.io",
            "incident",
            "",
            token(),
            "POST",
            own("/incident"),
            bearer,
            ("/status", "firing".into()),
        ),
        (
            "alertmanager",
            "am",
            "",
            login(),
            "POST",
            own("/am"),
            basic,
            ("/0/status", "firing".into()),
        ),
        (
            "grafana",
            "graphite",
            "",
            token(),
            "POST",
            own("/graphite"),
            bearer,
            ("/tags/0", "flux".into()),
        ),
        (
            "datadog",
            "x",
            "",
            token(),
            "POST",
            own("/api/v1/events"),
            ("dd-api-key", "t0ken"),
            ("/alert_type", "error".into()),
        ),
        (
            "otel",
            "v1/spans",
            "",
            token(),
            "POST",
            own("/v1/spans"),
            ("content-type", "application/x-protobuf"),
            ("", Value::Null),
        ),
        (
            "github",
            "team/gh.git",
            "",
            token(),
            "POST",
            git("/api/v3/repos/team/gh/statuses/HASH"),
            bearer,
            ("/state", "failure".into()),
        ),
        (
            "gitlab",
            "team/sub/gl",
            "",
            token(),
            "POST",
            git("/api/v4/projects/team%2Fsub%2Fgl/statuses/HASH"),
            ("private-token", "t0ken"),
            ("/state", "failed".into()),
        ),
        (
            "gitea",
            "team/gt",
            "",
            token(),
            "POST",
            git("/api/v1/repos/team/gt/statuses/HASH"),
            ("authorization", "token t0ken"),
            ("/state", "failure".into()),
        ),
        (
            "bitbucketserver",
            "scm/prj/bb.git",
            "",
            login(),
            "POST",
            git("/rest/api/latest/projects/prj/repos/bb/commits/HASH/builds"),
            ("x-atlassian-token", "no-check"),
            ("/state", "FAILED".into()),
        ),
        (
            "azuredevops",
            "o/p/_git/r",
            "",
            token(),
            "POST",
            git("/o/p/_apis/git/repositories/r/commits/HASH/statuses?api-version=7.0"),
            ("authorization", "Basic OnQwa2Vu"),
            ("/context/genre", "fluxcd".into()),
        ),
        (
            "githubdispatch",
            "team/gd",
            "",
            token(),
            "POST",
            own("/api/v3/repos/team/gd/dispatches"),
            bearer,
            ("/client_payload/reason", "BuildFailed".into()),
        ),
    ]
}

#[tokio::test]
async fn each_service_receives_the_request_that_it_documents() {
    let setup = TestNamespace::new("services").await;
    // An empty list of statuses, which the types for commits ask for first.
    setup.sink.answer(Answer::Status(200, "[]".into()));
    let cases = cases();
    for (kind, address, channel, secret, ..) in &cases {
        let name = kind.replace('.', "-");
        let mut secret = secret.clone();
        secret["address"] = setup.sink.url(address).into();
        setup.secret(&name, &secret).await;
        let spec = json!({"type": kind, "channel": channel, "secretRef": {"name": name}});
        setup.provider(&name, &spec).await;
        setup.alert(&name, &name, &json!({})).await;
        setup.wait_ready("Provider", &name, "True").await;
        setup.wait_ready("Alert", &name, "True").await;
    }
    let mut event = setup.event("build failed");
    event["severity"] = "error".into();
    event["reason"] = "BuildFailed".into();
    event["metadata"]["source.toolkit.fluxcd.io/revision"] = format!("main@sha1:{HASH}").into();
    setup.accepted(&event).await;
    for (kind, _, _, _, method, path, (header, value), (pointer, part)) in &cases {
        let what = format!("{method} {path} of {kind}");
        let wanted = |request: &testkit::Received| request.method == *method && request.path == *path;
        let request = setup
            .sink
            .wait_for(&what, crate::setup::TIMEOUT, wanted)
            .await
            .unwrap();
        assert_eq!(request.header(header), *value, "{kind}");
        if !pointer.is_empty() {
            assert_eq!(
                request.json().pointer(pointer),
                Some(part),
                "{kind}: {}",
                request.json()
            );
        }
    }
}

#[tokio::test]
async fn expression_names_the_status_of_a_commit() {
    let setup = TestNamespace::new("status-names").await;
    setup.sink.answer(Answer::Status(200, "[]".into()));
    let secret = json!({"address": setup.sink.url("team/named.git"), "token": "t0ken"});
    setup.secret("git", &secret).await;
    let spec = |expression: &str| json!({"type": "github", "secretRef": {"name": "git"}, "commitStatusExpr": expression});
    let named = "event.involvedObject.name + '/' + alert.metadata.name + '/' + provider.spec.type";
    setup.provider("named", &spec(named)).await;
    setup.provider("wrong", &spec("event.severity == 'error'")).await;
    for name in ["named", "wrong"] {
        setup.alert(name, name, &json!({})).await;
        setup.wait_ready("Provider", name, "True").await;
        setup.wait_ready("Alert", name, "True").await;
    }
    setup.provider("broken", &spec("event.")).await;
    setup.wait_ready("Provider", "broken", "False").await;
    let mut event = setup.event("build failed");
    event["severity"] = "error".into();
    event["metadata"]["source.toolkit.fluxcd.io/revision"] = format!("main@sha1:{HASH}").into();
    setup.accepted(&event).await;
    let posted = |request: &testkit::Received| {
        request.method == "POST" && request.path.contains("/team/named/statuses/")
    };
    let what = "a commit status";
    let request = setup.sink.wait_for(what, crate::setup::TIMEOUT, posted).await;
    let name = event["involvedObject"]["name"].as_str().unwrap();
    assert_eq!(request.unwrap().json()["context"], format!("{name}/named/github"));
    let why = "spec.commitStatusExpr: the result is of the type bool, not string";
    let warning = setup
        .warning_on("Alert", "wrong", "NotificationDispatchFailed")
        .await;
    let message = warning.message.unwrap_or_default();
    assert!(message.contains(why), "{message}");
}
