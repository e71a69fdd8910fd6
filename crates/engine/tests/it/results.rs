//! Whole commands, and their stored results.

use anyhow::Result;
use engine::HiddenDifferences;
use engine::{
    Confirm, DeployOptions,
    commands::{self, Project},
};
use futures::{FutureExt as _, future::BoxFuture};
use kluctl::{Inclusion, RequestedImage};
use objects::{ObjectRef, path::Key};
use results::{Contents, Origin, ResultStore, Retention};
use serde_json::json;
use yaml::Value;

use crate::world::{Fixture, deleted};

#[derive(Default)]
struct Refuses(std::sync::Mutex<Vec<String>>);

impl Confirm for Refuses {
    fn changes<'a>(&'a self, trial: &'a results::CommandResult) -> BoxFuture<'a, bool> {
        self.0.lock().unwrap().push(trial.message());
        async { false }.boxed()
    }

    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool> {
        let names = objects.iter().map(ToString::to_string);
        self.0.lock().unwrap().extend(names);
        async { false }.boxed()
    }
}

#[tokio::test]
async fn declined_confirmation_changes_nothing() -> Result<()> {
    let world = Fixture::new("refused").await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let refuses = Refuses::default();
    let mut project = Project::new(&world.cluster, &rendered);
    project.confirm = Some(&refuses);
    let options = DeployOptions::default();
    let refused = commands::deploy(&project, &options, false).await?;
    assert_eq!(refused.errors[0].message, "aborted");
    assert!(world.live("a").await?.is_none());

    world.deploy_well(&rendered).await?;
    let refused = commands::delete(&project, None, &options).await?;
    assert_eq!(refused.errors[0].message, "aborted");
    assert!(world.live("a").await?.is_some());
    let asked = refuses.0.lock().unwrap().clone();
    assert_eq!(
        asked,
        [
            "deploy succeeded. 1 new objects.".to_owned(),
            format!("{}/ConfigMap/a", world.namespace)
        ]
    );
    Ok(())
}

#[tokio::test]
async fn deploy_prunes_only_without_errors() -> Result<()> {
    let world = Fixture::new("pruning").await?;
    world
        .deploy_well(&world.rendered(vec![
            world.config_map("old", json!({})),
            world.config_map("a", json!({})),
        ]))
        .await?;
    let options = DeployOptions::default();
    let broken = world.rendered(vec![world.config_map("a", json!({"not a key": "x"}))]);
    let result = commands::deploy(&Project::new(&world.cluster, &broken), &options, true).await?;
    assert_eq!(
        (result.errors.len(), deleted(&result).len()),
        (1, 0),
        "{result:?}"
    );
    assert!(world.live("old").await?.is_some());
    let good = world.rendered(vec![world.config_map("a", json!({}))]);
    let result = commands::deploy(&Project::new(&world.cluster, &good), &options, true).await?;
    assert_eq!(deleted(&result), ["old"]);
    assert_eq!(result.counts().orphans, 0);
    Ok(())
}

#[tokio::test]
async fn delete_removes_the_included_part() -> Result<()> {
    let world = Fixture::new("part").await?;
    let rendered = world.items(vec![
        vec![world.config_map("a", json!({}))],
        vec![world.config_map("b", json!({}))],
    ]);
    world.deploy_well(&rendered).await?;
    let options = DeployOptions {
        inclusion: Inclusion {
            include_dirs: vec!["item-1".to_owned()],
            ..Inclusion::default()
        },
        ..DeployOptions::default()
    };
    let result = commands::delete(&Project::new(&world.cluster, &rendered), None, &options).await?;
    assert_eq!(deleted(&result), ["b"]);
    assert!(world.live("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn objects_with_other_names_have_a_past_and_marks_can_be_left_out() -> Result<()> {
    let world = Fixture::new("diff-name").await?;
    let named = |name: &str, value: &str, label: &str| {
        let mut object = world.config_map(name, json!({"key": value}));
        object["metadata"]["annotations"] = json!({"kluctl.io/diff-name": "c"});
        object["metadata"]["labels"] = json!({"team": label});
        world.rendered(vec![object])
    };
    world.deploy_well(&named("c-1", "one", "x")).await?;
    let next = named("c-2", "two", "y");
    let options = DeployOptions {
        hidden: HiddenDifferences {
            labels: true,
            ..HiddenDifferences::default()
        }
        .rules(),
        ..DeployOptions::default()
    };
    let result = commands::diff(&Project::new(&world.cluster, &next), &options).await?;
    let found: Vec<_> = result
        .objects
        .iter()
        .map(|object| {
            let changes: Vec<_> = object
                .changes
                .iter()
                .map(objects::diff::Change::json_path)
                .collect();
            (
                object.reference.name.as_str(),
                object.new,
                object.orphan,
                changes.join(" "),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("c", false, false, "data.key metadata.name".to_owned()),
            ("c-1", false, true, String::new())
        ]
    );
    Ok(())
}

#[tokio::test]
async fn results_are_kept_and_read_back() -> Result<()> {
    let world = Fixture::new("kept").await?;
    // Large and hard to compress, so that a result needs several Secrets.
    let noise = |seed: u64, count: usize| {
        let mut state = seed;
        let characters = (0..count).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        });
        characters.collect::<String>()
    };
    let small = world.rendered(vec![
        world.config_map("a", json!({"key": "one"})),
        world.object("v1", "Secret", "s", json!({"stringData": {"password": "canary"}})),
    ]);
    let large: Vec<_> = (0..3)
        .map(|i| world.config_map(&format!("big-{i}"), json!({"key": noise(i, 600_000)})))
        .collect();
    let large = world.rendered(large);
    let options = DeployOptions {
        contents: true,
        ..DeployOptions::default()
    };
    let retention = Retention {
        commands: 2,
        validations: 1,
    };
    let store = ResultStore::new(world.cluster.clone(), &world.namespace, retention);
    let origin = Origin {
        cluster_id: world.cluster.id().await?,
        ..Origin::default()
    };
    let mut ids = Vec::new();
    for rendered in [&small, &large, &small] {
        let mut project = Project::new(&world.cluster, rendered);
        project.origin = origin.clone();
        let result = commands::deploy(&project, &options, false).await?;
        assert!(result.errors.is_empty(), "{:?}", result.errors);
        store.write_command(&result).await?;
        ids.push(result.origin.id.clone());
        let stored = store.list().await?;
        let newest = &stored[0];
        assert_eq!(newest.id, result.origin.id);
        let read = store.read(newest).await?;
        let objects = read.get("objects").and_then(Value::as_seq).unwrap_or_default();
        let applied = |object: &Value| object.get("applied").cloned();
        let kept: Vec<_> = objects.iter().map(applied).collect();
        let made: Vec<_> = result
            .objects
            .iter()
            .map(|object| object.applied.as_deref().cloned())
            .collect();
        assert_eq!(kept, made);
        let text = yaml::print::json(&read);
        assert!(
            !text.contains("canary") && !text.contains("Y2FuYXJ5"),
            "values of Secrets are kept"
        );
    }
    let listed: Vec<_> = store.list().await?.into_iter().map(|stored| stored.id).collect();
    assert_eq!(listed, [ids[2].clone(), ids[1].clone()], "the oldest one is gone");
    let parts = world
        .plane
        .kubectl(&["get", "secrets", "-n", &world.namespace, "-o", "name"])
        .await?;
    assert!(parts.lines().count() > 3, "{parts}");

    let mut project = Project::new(&world.cluster, &small);
    project.origin = origin;
    let validated = commands::validate(&project, None, |_| {}).await?;
    store.write_validation(&validated).await?;
    let stored = store.list().await?;
    assert!(stored[0].is_validation);
    assert_eq!(
        store
            .read(&stored[0])
            .await?
            .get("ready")
            .and_then(Value::as_bool),
        Some(true)
    );
    for one in stored {
        store.delete(&one).await?;
    }
    let left = world
        .plane
        .kubectl(&["get", "secrets", "-n", &world.namespace, "-o", "name"])
        .await?;
    assert_eq!(left.trim(), "secret/s");
    Ok(())
}

#[tokio::test]
async fn results_are_listed_once_and_again_after_somebody_else_deleted_one() -> Result<()> {
    let world = Fixture::new("listed").await?;
    let proxy = testkit::FaultProxy::start(world.plane)?;
    let cluster = crate::world::connect(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
    let retention = Retention {
        commands: 2,
        validations: 1,
    };
    let store = ResultStore::new(cluster.clone(), &world.namespace, retention);
    store.adopt().await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let project = Project::new(&cluster, &rendered);
    let options = DeployOptions::default();
    let write = async || -> Result<(String, usize)> {
        let before = proxy.requests().len();
        let result = commands::deploy(&project, &options, false).await?;
        store.write_command(&result).await?;
        store
            .write_validation(&commands::validate(&project, None, |_| {}).await?)
            .await?;
        let requests = proxy.requests().split_off(before);
        let lists = requests
            .iter()
            .filter(|request| request.method == "GET" && request.query.contains("result-group"));
        Ok((result.origin.id, lists.count()))
    };
    let others = ResultStore::new(world.cluster.clone(), &world.namespace, retention);
    let mut ids = Vec::new();
    for number in 0..4 {
        let (id, lists) = write().await?;
        assert_eq!(lists, usize::from(number == 0), "write {number}");
        ids.push(id);
        let stored = others.list().await?;
        let (validations, commands): (Vec<_>, Vec<_>) = stored.into_iter().partition(|one| one.is_validation);
        let kept: Vec<&String> = commands.iter().map(|one| &one.id).collect();
        let newest: Vec<&String> = ids.iter().rev().take(2).collect();
        assert_eq!((kept, validations.len()), (newest, 1), "write {number}");
    }

    // A command line deletes the next result in line: this process can no longer know the stored ones.
    let oldest = others.find(&ids[2]).await?.expect("it is kept");
    others.delete(&oldest).await?;
    let next = [write().await?.1, write().await?.1, write().await?.1];
    assert_eq!(next, [0, 1, 0]);
    Ok(())
}

#[tokio::test]
async fn a_printed_result_holds_no_values_of_secrets_unless_asked_for() -> Result<()> {
    let world = Fixture::new("printed").await?;
    let secret = |value: &str| {
        world.rendered(vec![world.object(
            "v1",
            "Secret",
            "s",
            json!({"stringData": {"password": value}}),
        )])
    };
    world.deploy_well(&secret("canary-1")).await?;
    let rendered = secret("canary-2");
    for (show_secrets, expected) in [(false, false), (true, true)] {
        let options = DeployOptions {
            contents: true,
            show_secrets,
            ..DeployOptions::default()
        };
        let result = commands::diff(&Project::new(&world.cluster, &rendered), &options).await?;
        let text = format!(
            "{} {}",
            yaml::print::json(&result.to_value(Contents::Compacted)),
            results::text::command_result(&result, results::text::Style::default())
        );
        let shows = text.contains("canary") || text.contains("Y2FuYXJ5");
        assert_eq!(shows, expected, "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn poke_images_changes_images_only() -> Result<()> {
    let world = Fixture::new("poked").await?;
    let deployment = |image: &str, replicas: u32| {
        world.object(
            "apps/v1",
            "Deployment",
            "web",
            json!({"spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "main", "image": image}, {"name": "side", "image": "side:1"}]}}}}),
        )
    };
    world
        .deploy_well(&world.rendered(vec![deployment("main:1", 0)]))
        .await?;
    let mut rendered = world.rendered(vec![
        deployment("main:2", 0),
        world.object("apps/v1", "Deployment", "absent", json!({})),
    ]);
    let seen = |name: &str, index: usize| RequestedImage {
        image: "main".to_owned(),
        result_image: "main:2".to_owned(),
        object: world.reference("apps/v1", "Deployment", name),
        container: Some("main".to_owned()),
        tags: Vec::new(),
        dir: "item-0".to_owned(),
        position: (0, index),
        field: Some(
            ["spec", "template", "spec", "containers"]
                .map(Key::from)
                .into_iter()
                .chain([Key::Index(0), Key::from("image")])
                .collect(),
        ),
    };
    rendered.images = vec![seen("web", 0), seen("absent", 1)];
    let project = Project::new(&world.cluster, &rendered);
    for dry_run in [true, false] {
        let options = DeployOptions {
            dry_run,
            contents: true,
            ..DeployOptions::default()
        };
        let result = commands::poke_images(&project, &options).await?;
        assert!(result.errors.is_empty(), "{:?}", result.errors);
        let ran = result.origin.requested_images.iter();
        let ran: Vec<_> = ran
            .map(|image| image.get("deployedImage").and_then(Value::as_str))
            .collect();
        assert_eq!(ran, [Some("main:1"), None]);
        let warnings: Vec<_> = result
            .warnings
            .iter()
            .map(|warning| warning.message.as_str())
            .collect();
        assert_eq!(warnings, ["remote object not found, skipped image replacement"]);
        let changed = result.objects.iter().flat_map(|object| &object.changes);
        // The controller of the Deployment notes its revision whenever it gets to it.
        let changed: Vec<_> = changed
            .map(objects::diff::Change::json_path)
            .filter(|path| !path.contains("kubernetes.io/revision"))
            .collect();
        assert_eq!(changed, ["spec.template.spec.containers[0].image"]);
    }
    let runs = engine::deployed_images(&world.cluster, &rendered).await?;
    assert_eq!(runs, [Some("main:2".to_owned()), None]);
    let live = world
        .cluster
        .get(&world.reference("apps/v1", "Deployment", "web"))
        .await?
        .unwrap();
    let image = live.pointer(&["spec", "template", "spec", "containers", "0", "image"]);
    assert_eq!(image.and_then(Value::as_str), Some("main:2"));
    let again = commands::poke_images(&project, &DeployOptions::default()).await?;
    assert!(again.is_unchanged(), "{again:?}");
    Ok(())
}
