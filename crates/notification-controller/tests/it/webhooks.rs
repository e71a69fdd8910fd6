//! Requests to Receivers that arrive slowly, again, at a standby, or are expensive for their filters; and requests for KluctlDeployments.

use futures::future::join_all;
use kube::{Api, api::DynamicObject};
use serde_json::{Value, json};
use testkit::{Controller, GitServer};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::Instant};

use crate::{
    receivers::Hooks,
    setup::{TIMEOUT, TestNamespace, launch},
};

const REQUESTED: &str = "reconcile.fluxcd.io/requestedAt";
const REQUEST: &str = "kluctl.io/request-reconcile";

fn annotation(object: &DynamicObject, name: &str) -> Option<String> {
    object.metadata.annotations.as_ref()?.get(name).cloned()
}

async fn kluctl_deployment(hooks: &Hooks, version: &str, name: &str, spec: &Value) -> Api<DynamicObject> {
    let object = json!({
        "apiVersion": version, "kind": "KluctlDeployment",
        "metadata": {"name": name, "namespace": hooks.setup.namespace}, "spec": spec,
    });
    let (api, _) = hooks.setup.plane.api_for(object.clone()).await.unwrap();
    hooks.setup.plane.apply(object).await.unwrap();
    api
}

#[tokio::test]
async fn kluctl_deployments_of_both_groups_are_reconciled() {
    const FLUX: &str = "flux.kluctl.io/v1alpha1";
    const GITOPS: &str = "gitops.kluctl.io/v1beta1";
    let hooks = Hooks::new("hook-kluctl").await;
    let setup = &hooks.setup;
    for crd in [
        api::crd::kluctl_deployment(),
        api::crd::gitops_kluctl_deployment(),
    ] {
        setup
            .plane
            .apply(serde_json::to_value(crd).unwrap())
            .await
            .unwrap();
    }
    let start = async |name: &str| {
        let launch = Controller::named(name).run_by(setup.plane.kubeconfig());
        let launch = launch.namespace(&setup.namespace);
        launch.flag("--watch-all-namespaces=false").start().await.unwrap()
    };
    let _controllers = [start("source-controller").await, start("kluctl-controller").await];
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    let project = "discriminator: hooks-{{ target.name }}\ntargets:\n- name: flux\n- name: gitops\n";
    let metadata = json!({"name": "{{ target.name }}", "namespace": setup.namespace});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
    let files = [
        (".kluctl.yaml", project),
        ("deployment.yaml", "deployments:\n- path: maps\n"),
        ("maps/map.yaml", &map),
    ];
    repo.commit("first", &files).unwrap();
    let source = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "project", "namespace": setup.namespace},
        "spec": {"url": repo.url(), "interval": "12h", "ref": {"branch": "main"}},
    });
    let (sources, _) = setup.plane.api_for(source.clone()).await.unwrap();
    setup.plane.apply(source).await.unwrap();
    let has_artifact = |object: &DynamicObject| object.data["status"]["artifact"].is_object();
    testkit::wait_for(&sources, "project", "an artifact", TIMEOUT, has_artifact)
        .await
        .unwrap();
    // Without the webhook, nothing would happen for hours.
    let flux = json!({
        "interval": "12h", "retryInterval": "12h", "target": "flux",
        "sourceRef": {"kind": "GitRepository", "name": "project"},
    });
    let gitops = json!({
        "interval": "12h", "retryInterval": "12h", "target": "gitops", "context": "default",
        "source": {"git": {"url": repo.url()}},
    });
    let mut suspended = gitops.clone();
    suspended["suspend"] = json!(true);
    let flux = kluctl_deployment(&hooks, FLUX, "shop", &flux).await;
    // A KluctlDeployment of the same name would take over the objects of the other group's.
    let gitops = kluctl_deployment(&hooks, GITOPS, "blog", &gitops).await;
    kluctl_deployment(&hooks, GITOPS, "suspended", &suspended).await;
    for (api, name) in [(&flux, "shop"), (&gitops, "blog"), (&gitops, "suspended")] {
        // The last condition of a deployment; a suspended object has none.
        let observed = |object: &DynamicObject| {
            let is_ready = testkit::ready(object)["status"] == "True";
            object.data["status"]["observedGeneration"] == 1 && (is_ready || name == "suspended")
        };
        testkit::wait_for(api, name, "its first pass", TIMEOUT, observed)
            .await
            .unwrap();
    }
    let resources = json!([
        {"apiVersion": FLUX, "kind": "KluctlDeployment", "name": "shop"},
        {"apiVersion": GITOPS, "kind": "KluctlDeployment", "name": "blog"},
        {"apiVersion": GITOPS, "kind": "KluctlDeployment", "name": "suspended"},
    ]);
    let url = hooks.receiver("hook", &json!({"resources": resources})).await;
    assert_eq!(hooks.post(&url, &[], "").await, 200);
    let handled = |object: &DynamicObject| {
        let requested = annotation(object, REQUESTED);
        requested.is_some_and(|at| object.data["status"]["lastHandledReconcileAt"] == at.as_str())
    };
    let object = testkit::wait_for(&flux, "shop", "the request", TIMEOUT, handled)
        .await
        .unwrap();
    assert_eq!(annotation(&object, REQUEST), None);
    let handled = |object: &DynamicObject| {
        let result = &object.data["status"]["reconcileRequestResult"];
        let requested = annotation(object, REQUESTED);
        requested.is_some_and(|at| result["request"]["requestValue"] == at.as_str())
            && result["endTime"].is_string()
    };
    testkit::wait_for(&gitops, "blog", "the result of the request", TIMEOUT, handled)
        .await
        .unwrap();
    // The controller would obey the request in spite of the suspension.
    let object = gitops.get("suspended").await.unwrap();
    assert!(annotation(&object, REQUESTED).is_some());
    assert_eq!(annotation(&object, REQUEST), None);
    assert_eq!(
        object.data["status"].get("reconcileRequestResult"),
        None,
        "{object:?}"
    );
}

#[tokio::test]
async fn replicas_that_do_not_lead_answer_webhooks() {
    const LEASE: &str = "--enable-leader-election";
    let hooks = Hooks::of(TestNamespace::with("followers", |launch| launch.flag(LEASE)).await).await;
    hooks.source("shop", &json!({})).await;
    let url = hooks.receiver("hook", &json!({})).await;
    let first = &hooks.setup.controller;
    let second = launch()
        .run_by(hooks.setup.plane.kubeconfig())
        .namespace(&hooks.setup.namespace)
        .flag(LEASE)
        .start()
        .await
        .unwrap();
    let [address, other] = [first, &second].map(|replica| replica.addresses().receiver.to_string());
    // A replica that is ready knows all paths.
    for url in [url.clone(), url.replace(&address, &other)] {
        let before = hooks.requested("shop").await;
        assert_eq!(hooks.post(&url, &[], "").await, 200, "{url}");
        assert_ne!(hooks.requested("shop").await, before, "{url}");
    }
    testkit::eventually("one leader", TIMEOUT, || async {
        let series = "leader_election_master_status";
        let all = [first.metric(series).await?, second.metric(series).await?];
        anyhow::ensure!(all == [1.0, 0.0], "{all:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Sends one more byte; returns false if the connection is closed.
async fn goes_on(stream: &mut TcpStream) -> bool {
    if stream.write_all(b"a").await.is_err() {
        return false;
    }
    let mut answer = [0; 64];
    match stream.try_read(&mut answer) {
        Ok(read) => read > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

#[tokio::test]
async fn slow_headers_are_cut_off_while_others_are_served() {
    // More than the connection limit of the port.
    const SLOW: usize = 200;
    let mut hooks = Hooks::new("slow-headers").await;
    hooks.source("shop", &json!({})).await;
    let url = hooks.receiver("hook", &json!({})).await;
    let address = hooks.setup.controller.addresses().receiver;
    // Each request has a connection of its own.
    hooks.setup.http = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .build()
        .unwrap();
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"POST /hook/a HTTP/1.1\r\nhost: a\r\nx-slow: ")
            .await
            .unwrap();
        slow.push(stream);
    }
    let begin = Instant::now();
    while !slow.is_empty() {
        assert!(begin.elapsed() < TIMEOUT, "{} connections are open", slow.len());
        assert_eq!(hooks.post(&url, &[], "").await, 200);
        let mut open = Vec::new();
        for mut stream in slow {
            if goes_on(&mut stream).await {
                open.push(stream);
            }
        }
        slow = open;
    }
}

#[tokio::test]
async fn replayed_requests_annotate_again_and_do_nothing_else() {
    const REPLAYS: usize = 20;
    let hooks = Hooks::new("replays").await;
    hooks.source("shop", &json!({})).await;
    hooks.setup.secret("other", &json!({"token": "other"})).await;
    let kind = json!({"type": "generic-hmac"});
    let url = hooks.receiver("hook", &kind).await;
    let other = json!({"type": "generic-hmac", "secretRef": {"name": "other"}});
    let other = hooks.receiver("other", &other).await;
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "shop", "namespace": hooks.setup.namespace},
    });
    let (api, _) = hooks.setup.plane.api_for(object).await.unwrap();
    let before = api.get("shop").await.unwrap();
    let body = r#"{"ref": "refs/heads/main"}"#;
    let recorded = [(
        "x-signature",
        format!("sha256={}", crate::receivers::hmac256(body)),
    )];
    let posts = (0..REPLAYS).map(|_| hooks.post(&url, &recorded, body));
    assert_eq!(join_all(posts).await, [200; REPLAYS]);
    let after = api.get("shop").await.unwrap();
    assert_eq!(after.data, before.data);
    assert_eq!(after.metadata.generation, before.metadata.generation);
    let mut annotations = after.metadata.annotations.unwrap();
    assert!(annotations.remove(REQUESTED).is_some());
    assert_eq!(annotations, before.metadata.annotations.unwrap_or_default());
    // Another Receiver doesn't accept it, and neither does this one with another body.
    let requested = hooks.requested("shop").await;
    assert_eq!(hooks.post(&other, &recorded, body).await, 400);
    assert_eq!(hooks.post(&url, &recorded, "{}").await, 400);
    assert_eq!(hooks.requested("shop").await, requested);
}

#[tokio::test]
async fn path_of_two_receivers_belongs_to_one_of_them() {
    let hooks = Hooks::new("same-path").await;
    hooks.source("shop", &json!({})).await;
    for (name, token) in [("short", "x"), ("long", "xa")] {
        hooks.setup.secret(name, &json!({"token": token})).await;
    }
    // Both are the hash of `xab` and the namespace.
    let url = hooks
        .receiver("ab", &json!({"secretRef": {"name": "short"}}))
        .await;
    hooks.apply("b", &json!({"secretRef": {"name": "long"}})).await;
    let metadata = json!({"name": "ab", "namespace": hooks.setup.namespace});
    let receiver =
        json!({"apiVersion": "notification.toolkit.fluxcd.io/v1", "kind": "Receiver", "metadata": metadata});
    let (api, _) = hooks.setup.plane.api_for(receiver).await.unwrap();
    testkit::eventually("one Receiver with the path", TIMEOUT, || async {
        let [one, other] = [api.get("ab").await?, api.get("b").await?];
        let [first, second] = [&one, &other].map(testkit::ready);
        let (owner, loser) = match first["status"] == "True" {
            true => (&first, &second),
            false => (&second, &first),
        };
        anyhow::ensure!(
            owner["status"] == "True" && loser["status"] == "False",
            "{owner} {loser}"
        );
        let message = loser["message"].as_str().unwrap_or_default();
        anyhow::ensure!(message.contains("is taken by another Receiver"), "{message}");
        let paths = [one, other].map(|receiver| receiver.data["status"]["webhookPath"].is_string());
        anyhow::ensure!(paths[0] != paths[1], "{paths:?}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(hooks.post(&url, &[], "").await, 200);
}

#[tokio::test]
async fn filters_with_too_much_work_fail_their_own_requests() {
    let hooks = Hooks::new("bombs").await;
    hooks.source("shop", &json!({})).await;
    let good = hooks.receiver("good", &json!({})).await;
    let list: Vec<usize> = (0..2000).collect();
    let body = json!({"list": list, "text": "a".repeat(10_000)}).to_string();
    let headers = [("content-type", "application/json".to_owned())];
    for (number, filter) in [
        "req.list.all(x, req.list.all(y, req.list.all(z, x + y + z >= 0)))",
        "req.list.map(x, req.text).map(y, y + req.text).size() > 0",
        "req.list.all(x, req.text.matches('(a+)+(a|aa)+b') || true)",
        "req.list.all(x, req.text.replace('a', req.text).size() > 0)",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("bomb-{number}");
        let url = hooks.receiver(&name, &json!({"resourceFilter": filter})).await;
        let before = hooks.requested("shop").await;
        let bombs = join_all((0..4).map(|_| hooks.post(&url, &headers, &body)));
        assert_eq!(bombs.await, [500; 4], "{filter}");
        assert_eq!(hooks.requested("shop").await, before, "{filter}");
        assert_eq!(hooks.post(&good, &[], "").await, 200, "{filter}");
    }
    // Expressions with catastrophic backtracking in other engines are linear here.
    let filter = json!({"resourceFilter": "req.text.matches('^(a+)+$') && !req.text.matches('^(a|aa)+b')"});
    let url = hooks.receiver("regex", &filter).await;
    let before = hooks.requested("shop").await;
    assert_eq!(hooks.post(&url, &headers, &body).await, 200);
    assert_ne!(hooks.requested("shop").await, before);
}
