//! Failures and races on the connection to the API server.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::Result;
use cluster::{Cluster, Settings};
use engine::{
    DeployOptions, Error, RemoveOptions,
    commands::{self, Project},
};
use kluctl::Inclusion;
use serde_json::{Value as Json, json};
use testkit::{FaultProxy, Outcome};
use tokio_util::sync::CancellationToken;

use crate::world::{Fixture, TIMEOUT, client, connect, deleted};

async fn proxied(world: &Fixture) -> Result<(FaultProxy, Cluster)> {
    let proxy = FaultProxy::start(world.plane)?;
    let cluster = connect(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    Ok((proxy, cluster))
}

#[tokio::test]
async fn transient_faults_are_retried() -> Result<()> {
    let world = Fixture::new("trouble").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![
        world.config_map("a", json!({})),
        world.config_map("b", json!({})),
    ]);
    let count = AtomicUsize::new(0);
    proxy.rule(move |request| {
        if !request.is_write() {
            return Outcome::Pass;
        }
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => Outcome::Status(429, Some(1)),
            1 => Outcome::Status(503, None),
            2 => Outcome::Cut,
            4 => Outcome::CutAnswer,
            _ => Outcome::Pass,
        }
    });
    let start = Instant::now();
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert!(start.elapsed() >= Duration::from_secs(1), "Retry-After is obeyed");
    assert_eq!(result.counts().new, 2);
    Ok(())
}

#[tokio::test]
async fn permanent_faults_are_reported() -> Result<()> {
    let world = Fixture::new("lasting").await?;
    let proxy = FaultProxy::start(world.plane)?;
    let client = client(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    let cluster = Cluster::with_settings(
        client,
        Settings {
            attempts: 2,
            ..Settings::default()
        },
    );
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    proxy.rule(|request| {
        if request.is_write() {
            Outcome::Status(503, None)
        } else {
            Outcome::Pass
        }
    });
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    proxy.rule(|_| Outcome::Cut);
    let error = engine::deploy(&cluster, &rendered, &DeployOptions::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the API server can't be reached"), "{error}");
    proxy.heal();
    assert!(
        engine::deploy(&cluster, &rendered, &DeployOptions::default())
            .await?
            .errors
            .is_empty()
    );
    Ok(())
}

#[tokio::test]
async fn a_hanging_api_server_does_not_hold_a_cancelled_pass() -> Result<()> {
    let world = Fixture::new("hang").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let cancel = CancellationToken::new();
    let reached = cancel.clone();
    proxy.rule(move |request| {
        if request.is_write() {
            reached.cancel();
            return Outcome::Hang;
        }
        Outcome::Pass
    });
    let start = Instant::now();
    let outcome = engine::deploy(&cluster.until(cancel), &rendered, &DeployOptions::default()).await;
    assert!(matches!(outcome, Err(Error::Cancelled)), "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_change_is_resolved_again() -> Result<()> {
    let world = Fixture::new("race").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![
        world.config_map("a", json!({"mine": "ours", "contested": "ours"})),
    ]);
    world.deploy_well(&rendered).await?;
    world
        .patch_as("kubectl-edit", "configmap/a", json!({"data": {"mine": "edited"}}))
        .await?;

    // In the moment before the forced patch, an operator takes the other field over.
    let (namespace, raced) = (world.namespace.clone(), AtomicUsize::new(0));
    let runtime = tokio::runtime::Handle::current();
    let plane = world.plane;
    proxy.rule(move |request| {
        if request.is_write()
            && request.query.contains("force=true")
            && raced.fetch_add(1, Ordering::SeqCst) == 0
        {
            let namespace = namespace.clone();
            let (done, wait) = std::sync::mpsc::channel();
            runtime.spawn(async move {
                let patch = r#"{"data":{"contested":"theirs"}}"#;
                let args = [
                    "patch",
                    "configmap/a",
                    "-n",
                    &namespace,
                    "--type=merge",
                    "-p",
                    patch,
                    "--field-manager=operator",
                ];
                let _ = done.send(plane.kubectl(&args).await.is_ok());
            });
            assert!(wait.recv().unwrap_or(false), "the operator's patch");
        }
        Outcome::Pass
    });
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert_eq!(
        world.data("a").await?,
        json!({"mine": "ours", "contested": "theirs"})
    );
    assert_eq!(result.warnings.len(), 1, "{:?}", result.warnings);
    Ok(())
}

#[tokio::test]
async fn api_server_outage_loses_nothing() -> Result<()> {
    let world = Fixture::new("gone").await?;
    let proxy = FaultProxy::start(world.plane)?;
    let client = client(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    let settings = Settings {
        attempts: 2,
        ..Settings::default()
    };
    let cluster = Cluster::with_settings(client, settings);
    let objects: Vec<Json> = (0..6)
        .map(|i| world.config_map(&format!("c{i}"), json!({})))
        .collect();
    let rendered = world.rendered(objects);
    let count = AtomicUsize::new(0);
    proxy.rule(move |request| match request.is_write() {
        true if count.fetch_add(1, Ordering::SeqCst) >= 3 => Outcome::Cut,
        _ => Outcome::Pass,
    });
    let options = DeployOptions::default();
    let result = commands::deploy(&Project::new(&cluster, &rendered), &options, true).await?;
    assert_eq!((result.counts().new, result.errors.len()), (3, 3), "{result:?}");
    assert!(
        result.errors[0]
            .message
            .contains("the API server can't be reached"),
        "{:?}",
        result.errors
    );
    proxy.heal();
    let result = commands::deploy(&Project::new(&cluster, &rendered), &options, true).await?;
    assert_eq!((result.counts().new, result.errors.len()), (3, 0), "{result:?}");
    Ok(())
}

#[tokio::test]
async fn version_conflicts_are_retried() -> Result<()> {
    let world = Fixture::new("stale").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let count = AtomicUsize::new(0);
    proxy.rule(move |request| match request.is_write() {
        true if count.fetch_add(1, Ordering::SeqCst) < 2 => Outcome::Status(409, None),
        _ => Outcome::Pass,
    });
    let result = engine::deploy(&cluster, &rendered, &DeployOptions::default()).await?;
    assert_eq!((result.counts().new, result.errors.len()), (1, 0), "{result:?}");
    Ok(())
}

#[tokio::test]
async fn admission_refusals_do_not_stop_other_objects() -> Result<()> {
    let world = Fixture::new("admission").await?;
    let ns = &world.namespace;
    // It stays on the shared control plane. If it saw updates, all later tests would apply unchanged objects.
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": ns}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}},
            "validations": [{"expression": "!has(object.data) || !('refused' in object.data)", "message": "not here"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": ns}, "spec": {"policyName": ns, "validationActions": ["Deny"]}});
    for object in [policy, binding] {
        world
            .plane
            .kubectl_with(&["apply", "-f", "-"], &object.to_string())
            .await?;
    }
    let bad = world.config_map("bad", json!({"refused": "x"}));
    // The policy is obeyed a moment after it was written.
    let start = Instant::now();
    while engine::compare(
        &world.cluster,
        &world.rendered(vec![bad.clone()]),
        Default::default(),
    )
    .await
    .is_ok()
        && world
            .plane
            .kubectl_with(&["create", "--dry-run=server", "-f", "-"], &bad.to_string())
            .await
            .is_ok()
    {
        anyhow::ensure!(start.elapsed() < TIMEOUT, "the policy is never obeyed");
    }
    let rendered = world.rendered(vec![bad, world.config_map("good", json!({}))]);
    let result = world.deploy(&rendered).await?;
    assert_eq!((result.counts().new, result.errors.len()), (1, 1), "{result:?}");
    assert!(
        result.errors[0].message.contains("not here"),
        "{:?}",
        result.errors
    );
    assert!(world.live("good").await?.is_some() && world.live("bad").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_immutable_field_needs_force() -> Result<()> {
    let world = Fixture::new("immutable").await?;
    let frozen = |value: &str, skip: bool| {
        let mut object = world.config_map("frozen", json!({"key": value}));
        object["immutable"] = json!(true);
        if skip {
            object["metadata"]["annotations"] = json!({"kluctl.io/skip-delete": "true"});
        }
        world.rendered(vec![object])
    };
    world.deploy_well(&frozen("1", false)).await?;
    let uid = world.live("frozen").await?.unwrap()["metadata"]["uid"].clone();
    let options = |replace: bool, force: bool, dry_run: bool| DeployOptions {
        replace_on_error: replace,
        force_replace_on_error: force,
        dry_run,
        ..DeployOptions::default()
    };
    let deploy = async |rendered: kluctl::Rendered, options: DeployOptions| {
        engine::deploy(&world.cluster, &rendered, &options).await
    };
    for (skip, replace, force) in [(false, false, false), (false, true, false), (true, true, true)] {
        let result = deploy(frozen("2", skip), options(replace, force, false)).await?;
        assert_eq!(result.errors.len(), 1, "{result:?}");
        assert!(
            result.errors[0].message.contains("field is immutable"),
            "{:?}",
            result.errors
        );
        assert_eq!(world.live("frozen").await?.unwrap()["metadata"]["uid"], uid);
    }
    let trial = deploy(frozen("2", false), options(false, true, true)).await?;
    assert_eq!((trial.counts().deleted, trial.errors.len()), (1, 0), "{trial:?}");
    assert_eq!(
        world.live("frozen").await?.unwrap()["metadata"]["uid"],
        uid,
        "a dry run deletes nothing"
    );
    let result = deploy(frozen("2", false), options(false, true, false)).await?;
    assert_eq!(
        (
            result.counts().deleted,
            result.counts().changed,
            result.errors.len()
        ),
        (1, 1, 0),
        "{result:?}"
    );
    assert_eq!(result.warnings.len(), 2, "{:?}", result.warnings);
    let live = world.live("frozen").await?.unwrap();
    assert!(
        live["metadata"]["uid"] != uid && live["data"]["key"] == "2",
        "{live}"
    );
    Ok(())
}

#[tokio::test]
async fn two_deployers_leave_each_other_alone() -> Result<()> {
    let (one, other) = (Fixture::new("one").await?, Fixture::new("other").await?);
    let mine = one.rendered(vec![
        one.config_map("a", json!({})),
        one.config_map("b", json!({})),
    ]);
    one.deploy_well(&mine).await?;
    // The same namespace, another discriminator.
    let mut theirs = one.config_map("c", json!({}));
    theirs["metadata"]["labels"] = json!({});
    let mut rendered = one.rendered(vec![theirs]);
    rendered.target.discriminator = Some(other.namespace.clone());
    for object in &mut rendered.items[0].objects {
        let labels = object
            .pointer_mut(&["metadata", "labels"])
            .and_then(yaml::Value::as_map_mut)
            .unwrap();
        labels.insert("kluctl.io/discriminator", other.namespace.as_str());
    }
    let options = DeployOptions::default();
    let result = commands::deploy(&Project::new(&one.cluster, &rendered), &options, true).await?;
    assert_eq!(
        (
            result.counts().new,
            deleted(&result).len(),
            result.counts().orphans
        ),
        (1, 0, 0),
        "{result:?}"
    );
    let less = one.rendered(vec![one.config_map("a", json!({}))]);
    let result = commands::prune(&Project::new(&one.cluster, &less), &options).await?;
    assert_eq!(deleted(&result), ["b"]);
    assert!(one.live("c").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn empty_render_prunes_nothing() -> Result<()> {
    let world = Fixture::new("nothing").await?;
    world
        .deploy_well(&world.rendered(vec![world.config_map("a", json!({}))]))
        .await?;
    let empty = world.rendered(Vec::new());
    let options = DeployOptions::default();
    for result in [
        commands::prune(&Project::new(&world.cluster, &empty), &options).await?,
        commands::deploy(&Project::new(&world.cluster, &empty), &options, true).await?,
    ] {
        assert!(deleted(&result).is_empty(), "{result:?}");
        assert!(
            result.errors[0].message.contains("renders no objects at all"),
            "{:?}",
            result.errors
        );
    }
    // A person may prune a part that renders nothing, and a controller may not.
    let mut part = RemoveOptions {
        inclusion: Inclusion {
            include_dirs: vec!["item-0".to_owned()],
            ..Inclusion::default()
        },
        ..RemoveOptions::default()
    };
    let refused = engine::prune(&world.cluster, &empty, &part).await;
    assert!(matches!(refused, Err(Error::EmptyRender)), "{refused:?}");
    assert!(world.live("a").await?.is_some());
    part.prunes_empty_part = true;
    let result = engine::prune(&world.cluster, &empty, &part).await?;
    assert_eq!(deleted(&result).len(), 1, "{result:?}");
    Ok(())
}

#[tokio::test]
async fn interrupted_deployment_reports_applied_objects() -> Result<()> {
    let world = Fixture::new("interrupted").await?;
    let (proxy, cluster) = proxied(&world).await?;
    let objects: Vec<Json> = (0..5)
        .map(|i| world.config_map(&format!("c{i}"), json!({})))
        .collect();
    let rendered = world.rendered(objects);
    let (cancel, count) = (CancellationToken::new(), AtomicUsize::new(0));
    let reached = cancel.clone();
    proxy.rule(move |request| {
        if request.is_write() && count.fetch_add(1, Ordering::SeqCst) == 2 {
            reached.cancel();
            return Outcome::Hang;
        }
        Outcome::Pass
    });
    let cluster = cluster.until(cancel);
    let result = commands::deploy(
        &Project::new(&cluster, &rendered),
        &DeployOptions::default(),
        true,
    )
    .await?;
    assert_eq!(result.counts().new, 2, "{result:?}");
    let errors: Vec<_> = result.errors.iter().map(ToString::to_string).collect();
    assert!(
        errors[0].starts_with("the work was interrupted after 2 objects were applied"),
        "{errors:?}"
    );
    assert!(
        errors[1].contains("c2") && errors[1].contains("cancelled in the middle"),
        "{errors:?}"
    );
    assert_eq!(errors.len(), 2, "what was not touched is no error: {errors:?}");
    Ok(())
}

#[tokio::test]
async fn deployment_that_gives_way_to_a_newer_one_has_an_error_and_prunes_nothing() -> Result<()> {
    let world = Fixture::new("gives-way").await?;
    world
        .deploy_well(&world.rendered(vec![world.config_map("old", json!({}))]))
        .await?;
    let map = |name: &str| vec![world.config_map(name, json!({}))];
    let rendered = world.items(vec![map("first"), map("late")]);
    let newer = CancellationToken::new();
    newer.cancel();
    let cluster = world.cluster.waits_until(newer);
    let project = Project::new(&cluster, &rendered);
    let options = DeployOptions::default();
    // Trials wait for nothing and leave nothing half done.
    let diff = commands::diff(&project, &options).await?;
    assert_eq!((diff.counts().new, diff.interrupted), (2, false), "{diff:?}");

    let result = commands::deploy(&project, &options, true).await?;
    assert!(result.interrupted);
    let errors: Vec<_> = result.errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "interrupted after 1 objects were applied, because there is something newer to deploy: the rest was left out"
        ]
    );
    assert!(world.live("first").await?.is_some() && world.live("late").await?.is_none());
    assert!(world.live("old").await?.is_some(), "it was pruned: {result:?}");

    let result = commands::deploy(&Project::new(&world.cluster, &rendered), &options, true).await?;
    assert_eq!(
        (result.errors.len(), deleted(&result)),
        (0, vec!["old".to_owned()])
    );
    Ok(())
}
