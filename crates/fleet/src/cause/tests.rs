use serde_json::{Value, json};

use super::*;
use crate::kind;

const NOW: &str = "2026-01-01T01:00:00Z";

fn index(objects: Vec<(&'static Kind, Value)>) -> Index {
    let mut index = Index::new(NOW.parse().unwrap());
    for (kind, object) in objects {
        index.add(kind, serde_json::from_value(object).unwrap());
    }
    index
}

fn object(name: &str, spec: &Value, ready: &str, reason: &str, message: &str) -> Value {
    let conditions = json!([{
        "type": "Ready", "status": ready, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:50:00Z",
        "observedGeneration": 1,
    }]);
    json!({
        "metadata": {"name": name, "namespace": "n", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec, "status": {"observedGeneration": 1, "conditions": conditions},
    })
}

fn kustomization(
    name: &str,
    depends_on: &[&str],
    ready: &str,
    reason: &str,
    message: &str,
) -> (&'static Kind, Value) {
    let depends_on: Vec<Value> = depends_on.iter().map(|name| json!({"name": name})).collect();
    let spec = json!({"sourceRef": {"kind": "GitRepository", "name": "git"}, "dependsOn": depends_on});
    (&kind::KUSTOMIZATION, object(name, &spec, ready, reason, message))
}

fn git(ready: &str, has_artifact: bool) -> (&'static Kind, Value) {
    let mut source = object("git", &json!({}), ready, "GitOperationFailed", "no route to host");
    if has_artifact {
        source["status"]["artifact"] = json!({"revision": "main@sha1:1"});
    }
    (&kind::GIT_REPOSITORY, source)
}

fn roots(index: &Index, name: &str) -> Vec<String> {
    let name = Name {
        group: kind::KUSTOMIZATION.group.to_owned(),
        kind: "Kustomization".to_owned(),
        namespace: "n".to_owned(),
        name: name.to_owned(),
    };
    let roots = index.roots(&name).into_iter();
    roots
        .map(|root| format!("{} {:?}", root.name, root.problem))
        .collect()
}

#[test]
fn roots_are_at_the_end_of_references() {
    let waits = |name, on: &[&'static str]| kustomization(name, on, "False", "DependencyNotReady", "waits");
    let all = index(vec![
        git("True", true),
        waits("c", &["b"]),
        waits("b", &["a", "ok", "gone"]),
        kustomization("a", &[], "False", "BuildFailed", "no such file"),
        kustomization("ok", &[], "True", "", ""),
        waits("x", &["y"]),
        waits("y", &["x"]),
    ]);
    assert_eq!(
        roots(&all, "c"),
        ["Kustomization/n/a Failed", "Kustomization/n/gone Missing"]
    );
    assert_eq!(roots(&all, "x"), ["Kustomization/n/x Cycle"]);
    assert_eq!(roots(&all, "y"), ["Kustomization/n/x Cycle"]);
    let page = all.page().to_string();
    assert!(
        page.contains("Kustomization/n/x -> Kustomization/n/y -> Kustomization/n/x\n"),
        "{page}"
    );
    assert!(roots(&all, "ok").is_empty());
}

#[test]
fn sources_are_roots_of_those_that_wait_for_them() {
    let waits = || kustomization("a", &[], "False", "ArtifactFailed", "Source artifact not found");
    assert_eq!(
        roots(&index(vec![git("False", false), waits()]), "a"),
        ["GitRepository/n/git Failed"]
    );
    assert_eq!(
        roots(&index(vec![git("Unknown", false), waits()]), "a"),
        ["GitRepository/n/git NoArtifact"]
    );
    assert_eq!(roots(&index(vec![waits()]), "a"), ["GitRepository/n/git Missing"]);
    let (kind, mut source) = git("Unknown", false);
    source["spec"]["suspend"] = json!(true);
    assert_eq!(
        roots(&index(vec![(kind, source), waits()]), "a"),
        ["GitRepository/n/git Suspended"]
    );
    // A failure of its own is not blamed on the source.
    let own = kustomization("a", &[], "False", "BuildFailed", "no such file");
    assert_eq!(
        roots(&index(vec![git("False", true), own]), "a"),
        ["Kustomization/n/a Failed"]
    );
}

#[test]
fn objects_that_a_message_names_are_followed() {
    let message = "health check failed: timeout waiting for: [Kustomization/n/inner status: 'InProgress', Deployment/n/d.]";
    let names: Vec<String> = named_objects(message)
        .into_iter()
        .map(|object| object.name)
        .collect();
    assert_eq!(names, ["inner", "d"]);
    let all = index(vec![
        git("True", true),
        kustomization("outer", &[], "False", "HealthCheckFailed", message),
        kustomization("inner", &[], "False", "BuildFailed", "no"),
    ]);
    assert_eq!(roots(&all, "outer"), ["Kustomization/n/inner Failed"]);
    for message in [
        "https://x.io/a/b and a/b/c",
        "shop_Deployment/a/b Deployment/a/b_c Users/Alice/repo Deployment/-/x",
    ] {
        assert_eq!(named_objects(message), [], "{message}");
    }
}

#[test]
fn suspended_objects_are_causes_only_of_waiting_ones() {
    let suspended = |mut of: (&'static Kind, Value)| {
        of.1["spec"]["suspend"] = json!(true);
        of.1["metadata"]["annotations"] =
            json!({"weir.io/suspended-by": "carol", "weir.io/suspended-at": "2026-01-01T00:30:00Z"});
        of
    };
    let waits = |message: &str| kustomization("a", &["b"], "False", "DependencyNotReady", message);
    let ready = || suspended(kustomization("b", &[], "True", "", ""));
    let all = index(vec![
        git("True", true),
        ready(),
        waits("dependency 'n/b' revision is not up to date"),
    ]);
    assert!(roots(&all, "b").is_empty());
    assert_eq!(roots(&all, "a"), ["Kustomization/n/b Suspended"]);
    let group = &all.page().groups[0];
    assert_eq!(
        group.text(NOW.parse().unwrap()),
        "✗ Kustomization/n/b has been suspended for 30m\n    \
             suspended by carol 30m ago\n    \
             holds up 1: Kustomization/n/a\n    \
             to do: weir resume kustomization b -n n\n"
    );
    let unready = suspended(kustomization("b", &[], "False", "BuildFailed", "no such file"));
    assert_eq!(
        roots(&index(vec![git("True", true), unready]), "b"),
        ["Kustomization/n/b Suspended"]
    );
}

#[test]
fn kluctl_deployments_have_their_errors_and_requests() {
    let message = "prepare failed. Check status.lastPrepareError for details";
    let mut shop = object("shop", &json!({}), "False", "PrepareFailed", message);
    shop["status"]["lastPrepareError"] = json!("target prod not found");
    let page = index(vec![(&kind::GITOPS_KLUCTL_DEPLOYMENT, shop)]).page();
    let now = NOW.parse().unwrap();
    assert_eq!(
        page.groups[0].text(now),
        "✗ KluctlDeployment.gitops.kluctl.io/n/shop has been failing for 10m\n    \
             why: PrepareFailed: target prod not found\n    \
             to do: weir explain KluctlDeployment.gitops.kluctl.io/shop -n n; \
             when it is corrected: weir gitops reconcile --name shop -n n\n"
    );
    assert!(
        page.groups[0]
            .explanation(now)
            .ends_with("    to do: when it is corrected: weir gitops reconcile --name shop -n n\n")
    );
}

#[test]
fn missing_objects_need_no_reason() {
    let waits = kustomization("a", &[], "False", "ArtifactFailed", "Source artifact not found");
    let page = index(vec![waits]).page();
    assert_eq!(
        page.groups[0].text(NOW.parse().unwrap()),
        "✗ GitRepository/n/git does not exist\n    \
             holds up 1: Kustomization/n/a\n    \
             to do: create it, or correct the reference to it\n"
    );
}

#[test]
fn failed_deliveries_are_causes() {
    let mut provider = object("chat", &json!({}), "True", "Succeeded", "Initialized");
    let delivered = json!({
        "type": "Delivered", "status": "False", "reason": "NotificationDispatchFailed", "message": "404", "observedGeneration": 1,
    });
    provider["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(delivered);
    let page = index(vec![(&kind::PROVIDER, provider)]).page();
    let root = &page.groups[0].root;
    assert_eq!(
        (root.problem, &*root.reason, &*root.message),
        (Problem::Failed, "NotificationDispatchFailed", "404")
    );
}

#[test]
fn the_page_groups_objects_by_their_cause() {
    let waits = |name| kustomization(name, &[], "False", "ArtifactFailed", "Source artifact not found");
    let mut unseen = object("new", &json!({}), "", "", "");
    unseen["status"] = json!({});
    let mut suspended = object("off", &json!({"suspend": true}), "True", "", "");
    suspended["status"]["conditions"] = json!([]);
    suspended["metadata"]["annotations"] = json!({
        "weir.io/suspended-by": "carol", "weir.io/suspended-at": "2026-01-01T00:30:00Z", "weir.io/suspended-reason": "load test",
    });
    let all = index(vec![
        git("False", false),
        waits("a"),
        waits("b"),
        waits("c"),
        waits("d"),
        (&kind::BUCKET, unseen),
        (&kind::RECEIVER, suspended),
    ]);
    let page = all.page().to_string();
    assert_eq!(
        page,
        "Bucket         1 unknown\n\
         GitRepository  1 failed\n\
         Kustomization  4 failed\n\
         Receiver       1 suspended\n\
         \n\
         ✗ GitRepository/n/git has been failing for 10m\n    \
             why: GitOperationFailed: no route to host\n    \
             holds up 4: Kustomization/n/a, Kustomization/n/b, Kustomization/n/c and 1 more\n    \
             to do: weir explain GitRepository/git -n n; when it is corrected: weir reconcile source git git -n n\n\
         \n\
         ✗ Bucket/n/new has been seen by no controller for 60m\n    \
             to do: see if its controller is installed and runs: weir check\n\
         \n\
         Suspended:\n    \
             Receiver/n/off by carol 30m ago: load test\n"
    );
    let empty = index(Vec::new()).page().to_string();
    assert_eq!(empty, "There are no objects of Flux or kluctl.\n");
}

#[test]
fn causes_of_dense_dependencies_are_found_in_one_visit_of_each_object() {
    let mut objects = vec![git("True", true)];
    for layer in 0..40 {
        let next: Vec<String> = (0..3).map(|index| format!("{}-{index}", layer + 1)).collect();
        let next: Vec<&str> = next.iter().map(String::as_str).collect();
        for index in 0..3 {
            let name = format!("{layer}-{index}");
            objects.push(kustomization(
                &name,
                &next,
                "False",
                "DependencyNotReady",
                "waits",
            ));
        }
    }
    for index in 0..3 {
        let name = format!("40-{index}");
        objects.push(kustomization(&name, &[], "False", "BuildFailed", "broken"));
    }
    let expected: Vec<String> = (0..3)
        .map(|index| format!("Kustomization/n/40-{index} Failed"))
        .collect();
    assert_eq!(roots(&index(objects), "0-0"), expected);
}

#[test]
fn causes_that_are_alike_are_one_and_a_page_ends() {
    let mut objects: Vec<_> = (0..5)
        .map(|index| kustomization(&format!("a{index}"), &[], "False", "BuildFailed", "no such file"))
        .collect();
    objects.push(kustomization(
        "waits",
        &["a1", "a2"],
        "False",
        "DependencyNotReady",
        "waits",
    ));
    let page = index(objects.clone()).page();
    assert_eq!(page.groups.len(), 1);
    assert_eq!(
        page.groups[0].text(NOW.parse().unwrap()),
        "✗ Kustomization/n/a0 has been failing for 10m\n    \
             likewise 4 more: Kustomization/n/a1, Kustomization/n/a2, Kustomization/n/a3 and 1 more\n    \
             why: BuildFailed: no such file\n    \
             holds up 1: Kustomization/n/waits\n    \
             to do: weir explain Kustomization/a0 -n n; when it is corrected: weir reconcile kustomization a0 -n n\n"
    );
    for number in 0..30 {
        let message = format!("failure {number}");
        objects.push(kustomization(
            &format!("b{number}"),
            &[],
            "False",
            "BuildFailed",
            &message,
        ));
    }
    let text = index(objects).page().to_string();
    assert_eq!(text.matches('✗').count(), 25);
    assert!(text.contains("\n6 more causes: "), "{text}");
}
