//! Several teams on one cluster: identities, other clusters, references, discriminators.

use anyhow::{Context as _, Result, ensure};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::{wait_for, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, grant_in, is_of_shared_watch, loose_plane, message_of};

#[tokio::test]
async fn service_account_without_rights_deploys_nothing() -> Result<()> {
    let fixture = Fixture::new("denied", &["--default-service-account=powerless"]).await?;
    let mark = fixture.plane.audit_mark();
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    fixture.deploy("shop", json!({})).await?;
    let object = fixture.ready("shop", "False", "AccessDenied").await?;
    let powerless = format!("system:serviceaccount:{}:powerless", fixture.namespace);
    ensure!(
        message_of(&object).contains(&powerless),
        "{}",
        message_of(&object)
    );
    ensure!(!fixture.has("a").await?);

    fixture.account("deployer").await?;
    fixture
        .edit("shop", json!({ "serviceAccountName": "deployer" }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    for entry in fixture
        .requests_since(mark)?
        .into_iter()
        .filter(|entry| entry.resource == "configmaps")
        .filter(|entry| !is_of_shared_watch(entry))
    {
        ensure!(
            entry.impersonated.is_some(),
            "under the controller's own identity: {entry:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn references_to_other_namespaces_are_blocked() -> Result<()> {
    let fixture = Fixture::new("blocked", &["--no-cross-namespace-refs"]).await?;
    let elsewhere = json!({ "sourceRef": { "namespace": "default" } });
    fixture.deploy("shop", elsewhere).await?;
    let object = fixture.ready("shop", "False", "AccessDenied").await?;
    assert_eq!(
        message_of(&object),
        "can't access 'GitRepository/default/shop', cross-namespace references have been blocked"
    );
    Ok(())
}

/// A kubeconfig whose user or cluster has this field.
fn kubeconfig_with(server: &str, cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster: {{server: '{server}'{cluster}}}\nusers:\n- name: u\n  user: {{{user}}}\n"
    )
}

#[tokio::test]
async fn refused_identities_and_references_cause_no_request_of_the_controller_itself() -> Result<()> {
    let flags = ["--no-cross-namespace-refs", "--default-service-account=powerless"];
    let fixture = Fixture::apart("refused", &flags).await?;
    let plane = fixture.plane;
    let other = plane.namespace("victim").await?;
    plane
        .service_account_kubeconfig(&fixture.namespace, "powerless")
        .await?;
    let victim = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "victim", "namespace": other },
        "stringData": { "value": "canary" },
    });
    plane.apply(victim).await?;
    let mark = plane.audit_mark();

    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/canary]}";
    let kubeconfigs = [
        ("exec", "", exec),
        ("auth-provider", "", "auth-provider: {name: gcp}"),
        (
            "tokenFile",
            "",
            "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
        ),
        (
            "client-certificate",
            "",
            "client-certificate: /tmp/a, client-key: /tmp/b",
        ),
        (
            "certificate-authority",
            ", certificate-authority: /tmp/a",
            "token: a",
        ),
        ("as", "", "token: a, as: 'system:admin'"),
    ];
    let remote = |name: &str| json!({ "kubeConfig": { "secretRef": { "name": name } } });
    let mut cases = vec![
        (
            "source",
            json!({ "sourceRef": { "namespace": other } }),
            "cross-namespace",
        ),
        (
            "dependency-expression",
            json!({ "dependsOn": [{ "name": "shop", "namespace": other, "readyExpr": "dep.spec.interval == '1h'" }] }),
            "cross-namespace",
        ),
        (
            "dependency-kind",
            json!({ "dependsOn": [
                { "apiVersion": "v1", "kind": "Secret", "name": "victim", "namespace": other },
            ] }),
            "cross-namespace",
        ),
        (
            "missing-account",
            json!({ "serviceAccountName": "missing" }),
            ":missing",
        ),
        ("denied-account", json!({}), ":powerless"),
    ];
    for (field, cluster, user) in kubeconfigs {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": field.to_lowercase(), "namespace": fixture.namespace },
            "stringData": { "value": kubeconfig_with(plane.server(), cluster, user) },
        });
        plane.apply(secret).await?;
        cases.push((field, remote(&field.to_lowercase()), field));
    }
    for (name, spec, _) in &cases {
        let name = name.to_lowercase();
        fixture.source(&name, &fixture.maps(&[("a", "1")])).await?;
        fixture.deploy(&name, spec.clone()).await?;
    }
    for (name, _, told) in &cases {
        let object = fixture
            .ready(&name.to_lowercase(), "False", "AccessDenied")
            .await?;
        ensure!(
            message_of(&object).contains(told),
            "{name}: {}",
            message_of(&object)
        );
    }

    // Requests of the controller itself are about its own kinds, and about the Secrets that were named.
    let own = |entry: &testkit::audit::Entry| {
        let group = entry.group.as_str();
        let of_own_kind = group.ends_with("kluctl.io") || group == "source.toolkit.fluxcd.io";
        let named = entry.resource == "secrets" && entry.verb == "get";
        of_own_kind
            || named
            || entry.resource.is_empty()
            || matches!(entry.resource.as_str(), "events" | "leases")
    };
    for entry in fixture.requests_since(mark)? {
        if entry.impersonated.is_none() && !is_of_shared_watch(&entry) {
            ensure!(own(&entry), "under the controller's own identity: {entry:?}");
        }
        ensure!(entry.namespace != other, "about another namespace: {entry:?}");
        ensure!(
            !(entry.is_write() && entry.resource == "configmaps" && entry.code < 300),
            "{entry:?}"
        );
    }
    ensure!(!fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn kubeconfig_selects_the_cluster_and_runs_no_program() -> Result<()> {
    let fixture = Fixture::new("remote", &[]).await?;
    fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    fixture.deploy("shop", remote).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    let named = format!("KubeConfig secret '{}/remote'", fixture.namespace);
    ensure!(message_of(&object).contains(&named), "{}", message_of(&object));

    let exec = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n\
                clusters:\n- name: c\n  cluster: {server: 'https://127.0.0.1:1'}\nusers:\n- name: u\n  user:\n    exec:\n      \
                {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/canary]}\n";
    fixture.store("value.yaml", exec).await?;
    let object = fixture.ready("shop", "False", "AccessDenied").await?;
    ensure!(message_of(&object).contains("exec"), "{}", message_of(&object));

    let kubeconfig = fixture.account("remote").await?;
    let mark = fixture.plane.audit_mark();
    fixture.store("value", &kubeconfig).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(fixture.has("a").await?);
    let user = format!("system:serviceaccount:{}:remote", fixture.namespace);
    let entries = fixture.plane.audit_since(mark)?;
    let here = |entry: &&testkit::audit::Entry| entry.namespace == fixture.namespace && entry.name == "a";
    let wrote = entries
        .iter()
        .filter(here)
        .find(|entry| entry.is_write() && entry.resource == "configmaps");
    assert_eq!(wrote.context("nobody wrote")?.user, user);
    Ok(())
}

#[tokio::test]
async fn kubeconfig_with_insecure_tls_is_refused_unless_the_flag_allows_it() -> Result<()> {
    let insecure = |kubeconfig: &str| -> String {
        let verified = |line: &&str| line.contains("certificate-authority-data");
        let mut lines = kubeconfig.lines().map(str::to_owned).collect::<Vec<_>>();
        for line in &mut lines {
            if verified(&line.as_str()) {
                let indent = line.len() - line.trim_start().len();
                *line = format!("{}insecure-skip-tls-verify: true", " ".repeat(indent));
            }
        }
        lines.join("\n")
    };
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    for (flags, status, reason) in [
        (&[][..], "False", "AccessDenied"),
        (
            &["--insecure-kubeconfig-tls"][..],
            "True",
            "ReconciliationSucceeded",
        ),
    ] {
        let fixture = Fixture::new("insecure", flags).await?;
        let kubeconfig = insecure(&fixture.account("remote").await?);
        ensure!(
            kubeconfig.contains("insecure-skip-tls-verify"),
            "nothing was replaced"
        );
        fixture.store("value", &kubeconfig).await?;
        fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
        fixture.deploy("shop", remote.clone()).await?;
        let object = fixture.ready("shop", status, reason).await?;
        let refused = message_of(&object).contains("uses insecure-skip-tls-verify, which is not allowed");
        assert_eq!(refused, flags.is_empty(), "{}", message_of(&object));
    }
    Ok(())
}

#[tokio::test]
async fn shared_discriminator_deletes_nothing() -> Result<()> {
    let fixture = Fixture::new("shared", &[]).await?;
    let mark = fixture.plane.audit_mark();
    let source = fixture.running("first", &[("a", "1")], json!({})).await?;
    // The same target from another source, with other objects: to each, the objects of the other look like orphans.
    fixture.source("second", &fixture.maps(&[("b", "1")])).await?;
    fixture.deploy("second", json!({})).await?;
    let object = fixture.ready("second", "False", "DeployFailed").await?;
    let first = format!("KluctlDeployment {}/first", fixture.namespace);
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: ok, prune: failed: ") && message.contains(&first),
        "{message}"
    );
    ensure!(fixture.has("a").await? && fixture.has("b").await?);

    let uid = fixture.config_maps().get("b").await?.uid();
    fixture.remove("first").await?;
    ensure!(
        fixture.config_maps().get("b").await?.uid() == uid,
        "what the other one deployed was deleted"
    );
    fixture.told("first", "nothing is deleted").await?;
    drop(source);

    // Now it is the only one, and it prunes the objects that the first one left.
    fixture.reconcile("second").await?;
    fixture.ready("second", "True", "ReconciliationSucceeded").await?;
    ensure!(!fixture.has("a").await? && fixture.has("b").await?);

    // No request grows with the number of deployments.
    let lists = fixture.requests_since(mark)?.into_iter();
    let lists =
        lists.filter(|entry| entry.resource == "kluctldeployments" && entry.uri.contains("limit=250"));
    let lists: Vec<String> = lists.map(|entry| entry.uri).collect();
    ensure!(
        lists.iter().any(|uri| uri.contains("flux.kluctl.io")),
        "{lists:?}"
    );
    let selects = |uri: &String| uri.contains("fieldSelector=") && uri.contains("discriminator");
    ensure!(lists.iter().all(selects), "{lists:#?}");
    Ok(())
}

#[tokio::test]
async fn shared_discriminator_is_seen_where_its_field_cannot_be_selected() -> Result<()> {
    let fixture = Fixture::on(loose_plane().await?, "unselected", &[]).await?;
    let _source = fixture.running("first", &[("a", "1")], json!({})).await?;
    fixture.source("second", &fixture.maps(&[("b", "1")])).await?;
    fixture.deploy("second", json!({})).await?;
    let object = fixture.ready("second", "False", "DeployFailed").await?;
    let first = format!("KluctlDeployment {}/first", fixture.namespace);
    ensure!(message_of(&object).contains(&first), "{}", message_of(&object));
    ensure!(fixture.has("a").await? && fixture.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn discriminator_of_a_successor_deletes_nothing() -> Result<()> {
    let fixture = Fixture::new("successor", &[]).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    let discriminator = format!("{}-test", fixture.namespace);
    let claim = json!({ "targetKey": { "targetName": "test", "discriminator": discriminator } });
    let successors = fixture.successor("new", claim).await?;
    source.offer(&fixture.maps(&[("b", "1")])).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let other = format!("KluctlDeployment.gitops.kluctl.io {}/new", fixture.namespace);
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: ok, prune: failed: ") && message.contains(&other),
        "{message}"
    );
    ensure!(fixture.has("a").await? && fixture.has("b").await?);

    successors.delete("new", &DeleteParams::default()).await?;
    testkit::wait_gone(&successors, "new", TIMEOUT).await?;
    fixture.reconcile("shop").await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!fixture.has("a").await? && fixture.has("b").await?);
    Ok(())
}

/// A suspended deployment in another namespace whose status has the discriminator of the fixture's project.
async fn foreign_claim(fixture: &Fixture, name: &str, spec: serde_json::Value) -> Result<String> {
    let namespace = fixture.plane.namespace("foreign").await?;
    claim_in(fixture, &namespace, name, spec).await?;
    Ok(namespace)
}

/// The same in a namespace.
async fn claim_in(fixture: &Fixture, namespace: &str, name: &str, spec: serde_json::Value) -> Result<()> {
    let object = testkit::manifest::kluctl_deployment(namespace, name, "shop", ".")
        .spec(json!({ "suspend": true, "prune": true }))
        .spec(spec);
    fixture.plane.apply(object).await?;
    let api: Api<api::kluctl::KluctlDeployment> = Api::namespaced(fixture.client.clone(), namespace);
    // The status of the first pass would replace the claim.
    let observed = |object: &api::kluctl::KluctlDeployment| {
        let status = object.status.as_ref();
        status.and_then(|status| status.ready_for_migration) == Some(true)
    };
    wait_for(&api, name, "its first pass", TIMEOUT, observed).await?;
    let result = json!({ "time": "2026-01-01T00:00:00Z", "rawResult": "objects:\n- ref:\n    kind: ConfigMap\n    name: a\n" });
    let discriminator = format!("{}-test", fixture.namespace);
    let status = json!({ "status": { "discriminator": discriminator, "lastDeployResult": result } });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

#[tokio::test]
async fn removal_is_repeated_while_the_cluster_of_another_owner_is_unknown() -> Result<()> {
    let fixture = Fixture::new("unknown-owner", &[]).await?;
    fixture.running("shop", &[("a", "1")], json!({})).await?;
    let unknown = json!({ "kubeConfig": { "secretRef": { "name": "missing" } } });
    claim_in(&fixture, &fixture.namespace, "other", unknown).await?;
    let deployments = fixture.deployments();
    deployments.delete("shop", &DeleteParams::default()).await?;
    let why = format!(
        "cannot delete what was deployed: the cluster of KluctlDeployment {}/other, which has the same discriminator, is \
         unknown; tried again for ",
        fixture.namespace
    );
    wait_for(&deployments, "shop", "the reason", TIMEOUT, |object| {
        message_of(object).starts_with(&why)
    })
    .await?;
    ensure!(fixture.has("a").await?, "it was deleted unchecked");
    fixture.remove("other").await?;
    wait_gone(&deployments, "shop", TIMEOUT).await?;
    ensure!(!fixture.has("a").await?, "the object is left");
    Ok(())
}

#[tokio::test]
async fn discriminator_of_a_foreign_tenant_counts_only_with_rights_to_the_objects() -> Result<()> {
    let flags = ["--watch-all-namespaces=true", "--default-service-account=tenant"];
    let fixture = Fixture::alone("tenant", &flags).await?;
    fixture.account("tenant").await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    let other = foreign_claim(&fixture, "other", json!({ "serviceAccountName": "poor" })).await?;
    // Their clusters are unknown, too.
    let unknown = json!({ "kubeConfig": { "secretRef": { "name": "missing" } } });
    foreign_claim(&fixture, "unknown", unknown).await?;

    // Whoever has no rights to the objects did not deploy them.
    let revision = source.offer(&fixture.maps(&[("b", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("a").await? && fixture.has("b").await?);

    // A ServiceAccount that does not exist did not, either.
    let bindings = grant_in(fixture.plane, &fixture.namespace, (&other, "poor")).await?;
    let revision = source.offer(&fixture.maps(&[("a", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    let revision = source.offer(&fixture.maps(&[("b", "1")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(!fixture.has("a").await? && fixture.has("b").await?);

    // Whoever has them may have: nothing is deleted, and the other one is not named.
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": other, "name": "poor" } });
    fixture.plane.apply(account).await?;
    source.offer(&fixture.maps(&[("c", "1")])).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    let may = format!(
        "a KluctlDeployment of another namespace that may change {}/ConfigMap/b",
        fixture.namespace
    );
    ensure!(message.contains(&may) && !message.contains(&other), "{message}");
    ensure!(fixture.has("b").await? && fixture.has("c").await?);

    bindings.delete("tenant", &DeleteParams::default()).await?;
    fixture.remove("shop").await?;
    ensure!(!fixture.has("b").await? && !fixture.has("c").await?);
    Ok(())
}

#[tokio::test]
async fn discriminator_of_a_foreign_deployment_with_all_rights_deletes_nothing() -> Result<()> {
    let flags = ["--watch-all-namespaces=true"];
    let fixture = Fixture::alone("platform", &flags).await?;
    let source = fixture.running("shop", &[("a", "1")], json!({})).await?;
    let other = foreign_claim(&fixture, "other", json!({})).await?;
    source.offer(&fixture.maps(&[("b", "1")])).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let message = message_of(&object);
    let named = format!("is also used by KluctlDeployment {other}/other");
    ensure!(message.contains(&named), "{message}");
    ensure!(fixture.has("a").await? && fixture.has("b").await?);

    fixture.remove("shop").await?;
    ensure!(fixture.has("a").await? && fixture.has("b").await?);
    fixture
        .told("shop", &format!("nothing is deleted: the discriminator {named}"))
        .await?;
    Ok(())
}
