//! Deploying.

use std::sync::Arc;

use anyhow::Result;
use engine::{AppliedVersions, DeployOptions, Error};
use results::Counts;
use serde_json::json;

use crate::world::Fixture;

#[tokio::test]
async fn deploy_sets_label_and_manager_and_is_idempotent() -> Result<()> {
    let world = Fixture::new("deploy").await?;
    let rendered = world.rendered(vec![
        world.config_map("a", json!({"k": "v"})),
        world.object(
            "v1",
            "Service",
            "s",
            json!({"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
        ),
        world.object("v1", "Secret", "t", json!({"stringData": {"password": "canary"}})),
    ]);
    let first = world.deploy_well(&rendered).await?;
    assert_eq!(
        first.counts(),
        Counts {
            new: 3,
            ..Counts::default()
        }
    );
    assert_eq!(first.message(), "deploy succeeded. 3 new objects.");
    let live = world.live("a").await?.unwrap();
    assert_eq!(
        live["metadata"]["labels"]["kluctl.io/discriminator"],
        json!(world.namespace)
    );
    assert_eq!(live["metadata"]["managedFields"][0]["manager"], "kluctl");
    assert_eq!(live["metadata"]["managedFields"][0]["operation"], "Apply");

    let second = world.deploy_well(&rendered).await?;
    assert!(second.is_unchanged(), "{second:?}");
    assert_eq!(
        world.live("a").await?.unwrap()["metadata"]["resourceVersion"],
        live["metadata"]["resourceVersion"]
    );
    Ok(())
}

#[tokio::test]
async fn deploy_reports_changes_and_masks_secrets() -> Result<()> {
    let world = Fixture::new("changes").await?;
    let state = |value: &str| {
        world.rendered(vec![
            world.config_map("a", json!({"key": value})),
            world.object(
                "v1",
                "Secret",
                "t",
                json!({"stringData": {"password": format!("canary-{value}")}}),
            ),
        ])
    };
    world.deploy_well(&state("one")).await?;
    let result = world.deploy_well(&state("two")).await?;
    assert_eq!(
        result.counts(),
        Counts {
            changed: 2,
            ..Counts::default()
        }
    );
    let text = format!("{result:?} {}", yaml::print::json(&result.to_status(100_000)));
    assert!(text.contains("data.key") && text.contains("two"), "{text}");
    // Base64 of "canary-two" begins with Y2FuYXJ5.
    assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    Ok(())
}

#[tokio::test]
async fn deploy_reports_rejected_objects_and_applies_the_others() -> Result<()> {
    let world = Fixture::new("rejected").await?;
    let frozen = |value: &str| {
        let mut object = world.config_map("frozen", json!({"k": value}));
        object["immutable"] = json!(true);
        object
    };
    world.deploy_well(&world.rendered(vec![frozen("1")])).await?;
    let rendered = world.rendered(vec![
        world.config_map("before", json!({})),
        frozen("2"),
        world.object("v1", "Secret", "s", json!({"data": {"k": "canary no base64"}})),
        world.object("nope.example.com/v1", "Nope", "n", json!({})),
        world.object(
            "v1",
            "Service",
            "u",
            json!({"spec": {"unknownField": 1, "ports": [{"port": 80}]}}),
        ),
        world.config_map("../../secrets/x", json!({})),
        world.config_map("after", json!({})),
    ]);
    let result = world.deploy(&rendered).await?;
    let errors: Vec<String> = result.errors.iter().map(ToString::to_string).collect();
    let ns = &world.namespace;
    for expected in [
        format!(
            "failed to patch {ns}/ConfigMap/frozen: ConfigMap \"frozen\" is invalid: data: Forbidden: field is immutable"
        ),
        format!("failed to patch {ns}/Secret/s: the API server refused the Secret"),
        format!(
            "failed to patch {ns}/Nope/n: no matches for kind \"Nope\" in version \"nope.example.com/v1\""
        ),
        format!("failed to patch {ns}/Service/u: failed to create typed patch object"),
        format!("failed to patch {ns}/ConfigMap/../../secrets/x: "),
    ] {
        assert!(
            errors.iter().any(|error| error.starts_with(&expected)),
            "{expected}\n{errors:#?}"
        );
    }
    assert_eq!(errors.len(), 5, "{errors:#?}");
    assert!(!format!("{errors:?}").contains("canary"), "{errors:?}");
    assert!(world.live("before").await?.is_some() && world.live("after").await?.is_some());
    let failure = result.failure().unwrap_or_default();
    assert!(failure.starts_with("deploy failed with 5 errors: "), "{failure}");
    Ok(())
}

#[tokio::test]
async fn abort_on_error_starts_nothing_after_the_first_error() -> Result<()> {
    let world = Fixture::new("abort").await?;
    let rendered = world.rendered(vec![
        world.object("nope.example.com/v1", "Nope", "n", json!({})),
        world.config_map("after", json!({})),
    ]);
    let options = DeployOptions {
        abort_on_error: true,
        ..DeployOptions::default()
    };
    let result = engine::deploy(&world.cluster, &rendered, &options).await?;
    assert_eq!(result.errors.len(), 1);
    assert!(world.live("after").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn dry_run_reports_everything_and_changes_nothing() -> Result<()> {
    let world = Fixture::new("dry-run").await?;
    let missing = format!("{}-missing", world.namespace);
    let group = format!("{}.example.com", world.namespace);
    let mut inside = world.config_map("inside", json!({"k": "v"}));
    inside["metadata"]["namespace"] = json!(missing);
    let rendered = world.items(vec![
        vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": missing}}),
            definition(&group),
        ],
        vec![
            inside,
            world.object(&format!("{group}/v1"), "Thing", "t", json!({})),
            world.config_map("a", json!({})),
        ],
    ]);
    let options = DeployOptions {
        dry_run: true,
        ..DeployOptions::default()
    };
    let result = engine::deploy(&world.cluster, &rendered, &options).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert_eq!(result.counts().new, 5);
    assert!(
        result
            .warnings
            .iter()
            .any(|w| w.message.contains("custom resource definition")),
        "{:?}",
        result.warnings
    );
    assert!(world.live("a").await?.is_none());
    assert!(
        world
            .plane
            .kubectl(&["get", "namespace", &missing])
            .await
            .is_err()
    );
    Ok(())
}

#[tokio::test]
async fn deploy_applies_a_definition_and_its_objects() -> Result<()> {
    let world = Fixture::new("crd").await?;
    let group = format!("{}.example.com", world.namespace);
    // Without namespaces on the object: its kind is not served when namespaces are put right.
    let thing = |version: &str| {
        json!({"apiVersion": format!("{group}/{version}"), "kind": "Thing",
        "metadata": {"name": "t", "namespace": world.namespace}, "spec": {"x": 1}})
    };
    let one_item = world.rendered(vec![definition(&group), thing("v1")]);
    let result = world.deploy_well(&one_item).await?;
    assert_eq!(result.counts().new, 2);
    assert!(
        world.prune(&one_item).await?.is_empty(),
        "what was just deployed is not pruned"
    );
    assert_eq!(
        world.prune(&world.rendered(vec![definition(&group)])).await?,
        ["t"]
    );
    let gone = world.rendered(vec![world.config_map("a", json!({}))]);
    assert_eq!(world.prune(&gone).await?, [format!("things.{group}")]);
    Ok(())
}

#[tokio::test]
async fn deploy_and_prune_refuse_an_empty_render() -> Result<()> {
    let world = Fixture::new("empty").await?;
    world
        .deploy_well(&world.rendered(vec![world.config_map("a", json!({}))]))
        .await?;
    let empty = world.rendered(vec![]);
    assert!(matches!(
        engine::deploy(&world.cluster, &empty, &DeployOptions::default()).await,
        Err(Error::EmptyRender)
    ));
    let pruned = engine::prune(&world.cluster, &empty, &Default::default()).await;
    assert!(matches!(pruned, Err(Error::EmptyRender)));
    assert!(world.live("a").await?.is_some());
    Ok(())
}

pub(crate) fn definition(group: &str) -> serde_json::Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test]
async fn deploy_without_changes_requests_lists_only() -> Result<()> {
    let world = Fixture::new("requests").await?;
    let items = (0..12).map(|i| {
        let object = |j: usize| world.object("v1", "ServiceAccount", &format!("s-{i}-{j}"), json!({}));
        (0..5).map(object).collect::<Vec<_>>()
    });
    let mut rendered = world.items(items.collect());
    for item in &mut rendered.items {
        item.barrier = false;
    }
    world.deploy_well(&rendered).await?;
    let proxy = testkit::FaultProxy::start(world.plane)?;
    let cluster = crate::world::connect(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    cluster.snapshot().await?;
    let start = std::time::Instant::now();
    for (orphans, most_lists, force_apply) in [(false, 1, false), (true, usize::MAX, false), (false, 1, true)]
    {
        let before = proxy.requests().len();
        let options = DeployOptions {
            orphans,
            force_apply,
            ..DeployOptions::default()
        };
        let result = engine::deploy(&cluster, &rendered, &options).await?;
        assert!(result.is_unchanged() && result.errors.is_empty(), "{result:?}");
        let requests = proxy.requests().split_off(before);
        let patches = requests
            .iter()
            .filter(|request| request.method == "PATCH")
            .count();
        let lists = requests
            .iter()
            .filter(|request| request.query.contains("labelSelector"))
            .count();
        let looked_at = requests
            .iter()
            .filter(|request| request.path.starts_with("/apis/admissionregistration.k8s.io/"))
            .filter(|request| !request.query.contains("labelSelector"))
            .count();
        assert_eq!(
            (patches, looked_at > 0),
            if force_apply { (60, false) } else { (0, true) }
        );
        assert!(
            looked_at <= 4 && lists >= 1 && lists <= most_lists,
            "{lists} lists"
        );
        assert_eq!(
            requests.len(),
            patches + lists + looked_at,
            "{:?}",
            requests.iter().map(|r| &r.path).collect::<Vec<_>>()
        );
    }
    println!("three deployments of 60 objects took {:?}", start.elapsed());
    Ok(())
}

#[tokio::test]
async fn objects_of_known_versions_are_read_from_the_cache_of_the_api_server() -> Result<()> {
    let world = Fixture::new("cached").await?;
    let rendered = |value: &str| world.rendered(vec![world.config_map("a", json!({"key": value}))]);
    let first = world.deploy_well(&rendered("1")).await?;
    let deploy = async |value: &str, seen: &AppliedVersions| -> Result<Vec<bool>> {
        let options = DeployOptions {
            orphans: false,
            seen: Some(Arc::new(seen.clone())),
            ..DeployOptions::default()
        };
        let mark = world.plane.audit_mark();
        let result = engine::deploy(&world.cluster, &rendered(value), &options).await?;
        assert!(result.errors.is_empty(), "{result:?}");
        assert_eq!(world.data("a").await?["key"], value);
        let reads = world.plane.audit_since(mark)?;
        let reads = reads
            .iter()
            .filter(|entry| entry.reads("configmaps", "a") && entry.namespace == world.namespace);
        Ok(reads
            .map(|entry| entry.uri.contains("?resourceVersion="))
            .collect())
    };
    // The last read is the test's own.
    assert_eq!(deploy("2", &AppliedVersions::default()).await?, [false, false]);
    assert_eq!(deploy("3", &first.versions).await?, [true, false]);
    world
        .plane
        .kubectl(&["delete", "configmap/a", "-n", &world.namespace])
        .await?;
    assert_eq!(
        deploy("3", &first.versions).await?,
        [true, false],
        "it is created again"
    );

    let mut ahead = AppliedVersions::default();
    let object = yaml::Value::from_json(world.config_map("a", json!({})));
    let version = json!({"metadata": {"resourceVersion": "9000000000000000000"}});
    let reference = objects::ObjectRef::of(&object)?;
    let version = yaml::Value::from_json(version);
    ahead.remember(reference.id(), &object, &version);
    assert_eq!(
        deploy("4", &ahead).await?,
        [true, false, false],
        "no cache reaches that version"
    );
    Ok(())
}
