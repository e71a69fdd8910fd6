//! Hooks, and the objects that a deployment deletes and waits for by name.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use engine::{DeployOptions, Event, Progress};
use kluctl::ObjectSelector;
use serde_json::{Value as Json, json};

use crate::world::Fixture;

/// The names of ConfigMaps in the order in which they were written last.
async fn written(world: &Fixture, names: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in names {
        if let Some(live) = world.live(name).await? {
            let version: u64 = live["metadata"]["resourceVersion"]
                .as_str()
                .unwrap_or_default()
                .parse()?;
            found.push((version, (*name).to_owned()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

fn hook(world: &Fixture, name: &str, annotations: Json) -> Json {
    let mut object = world.config_map(name, json!({"key": "value"}));
    object["metadata"]["annotations"] = annotations;
    object
}

#[tokio::test]
async fn hooks_run_around_the_objects_in_the_order_of_their_weights() -> Result<()> {
    let world = Fixture::new("hooks").await?;
    let kinds = |first: &str, second: &str| json!({"kluctl.io/hook": format!("{first},{second}")});
    let weighted =
        |when: &str, weight: &str| json!({"kluctl.io/hook": when, "kluctl.io/hook-weight": weight});
    let rendered = world.rendered(vec![
        world.config_map("main", json!({})),
        hook(&world, "late", weighted("pre-deploy", "5")),
        hook(&world, "early", weighted("pre-deploy", "-5")),
        hook(
            &world,
            "after",
            json!({"helm.sh/hook": "post-install,post-upgrade"}),
        ),
        hook(
            &world,
            "only-first",
            kinds("pre-deploy-initial", "post-deploy-initial"),
        ),
        hook(
            &world,
            "only-later",
            json!({"kluctl.io/hook": "pre-deploy-upgrade"}),
        ),
        hook(&world, "never", json!({"helm.sh/hook": "post-delete"})),
    ]);
    let names = [
        "main",
        "late",
        "early",
        "after",
        "only-first",
        "only-later",
        "never",
    ];
    let first = world.deploy_well(&rendered).await?;
    assert_eq!(
        written(&world, &names).await?,
        ["early", "late", "main", "after", "only-first"]
    );
    let hooks: Vec<_> = first.objects.iter().filter(|object| object.hook).collect();
    assert_eq!((hooks.len(), first.counts().new), (4, 1), "{first:?}");
    assert_eq!(first.warnings.len(), 1, "{:?}", first.warnings);
    assert_eq!(
        first.warnings[0].message,
        "unsupported helm.sh/hook 'post-delete'"
    );

    world.deploy_well(&rendered).await?;
    let second = written(&world, &names).await?;
    assert_eq!(
        second,
        ["main", "only-first", "early", "only-later", "late", "after"]
    );
    assert!(
        engine::compare(&world.cluster, &rendered, Default::default())
            .await?
            .is_clean()
    );
    let validated = engine::validate(&world.cluster, &rendered).await?;
    assert!(validated.ready, "{:?}", validated.errors);
    Ok(())
}

#[tokio::test]
async fn delete_policies_remove_hooks() -> Result<()> {
    let world = Fixture::new("policies").await?;
    let policy =
        |policy: &str| json!({"kluctl.io/hook": "pre-deploy", "kluctl.io/hook-delete-policy": policy});
    let mut failing = policy("hook-failed");
    failing["kluctl.io/is-ready"] = json!("false");
    failing["kluctl.io/hook-timeout"] = json!("300ms");
    let mut unwaited = policy("hook-succeeded");
    unwaited["kluctl.io/hook-wait"] = json!("false");
    let rendered = world.rendered(vec![
        hook(&world, "succeeds", policy("hook-succeeded")),
        hook(&world, "stays", policy("hook-failed")),
        hook(&world, "fails", failing),
        hook(&world, "unwaited", unwaited),
        world.config_map("main", json!({})),
    ]);
    let result = world.deploy(&rendered).await?;
    let errors: Vec<_> = result.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(
        errors[0].starts_with("timed out while waiting for readiness of"),
        "{errors:?}"
    );
    let left = written(&world, &["succeeds", "stays", "fails", "unwaited", "main"]).await?;
    assert_eq!(
        left,
        ["stays", "unwaited", "main"],
        "a hook that fails stops nothing"
    );
    assert!(
        result.objects.iter().all(|object| !object.deleted),
        "hooks that go are no news"
    );
    Ok(())
}

#[tokio::test]
async fn selected_objects_are_deleted_and_waited_for() -> Result<()> {
    let world = Fixture::new("selected").await?;
    world
        .deploy_well(&world.rendered(vec![
            world.config_map("old", json!({})),
            world.config_map("older", json!({})),
        ]))
        .await?;
    let selector = |kind: &str, name: &str| ObjectSelector {
        kind: Some(kind.to_owned()),
        name: name.to_owned(),
        namespace: Some(world.namespace.clone()),
        group: None,
    };
    let mut doomed = world.config_map("older", json!({}));
    doomed["metadata"]["annotations"] = json!({"kluctl.io/delete": "true"});
    let mut rendered = world.rendered(vec![doomed, world.config_map("new", json!({}))]);
    rendered.items[0].delete_objects = vec![selector("ConfigMap", "old"), selector("ConfigMap", "absent")];
    rendered.items[0].wait_readiness_objects = vec![selector("ConfigMap", "new")];

    let comparison = engine::compare(&world.cluster, &rendered, Default::default()).await?;
    assert_eq!(comparison.to_apply().len(), 3, "one is missing, two must go");
    let trial = DeployOptions {
        dry_run: true,
        ..DeployOptions::default()
    };
    let tried = engine::deploy(&world.cluster, &rendered, &trial).await?;
    assert_eq!((tried.counts().deleted, tried.counts().new), (2, 1), "{tried:?}");
    assert!(world.live("old").await?.is_some());
    let result = world.deploy_well(&rendered).await?;
    assert_eq!(
        (result.counts().deleted, result.counts().orphans),
        (2, 0),
        "{result:?}"
    );
    assert!(world.live("old").await?.is_none() && world.live("older").await?.is_none());

    rendered.items[0].delete_objects = vec![selector("Nope", "x")];
    let result = world.deploy(&rendered).await?;
    let expected = format!(
        "failed to wait for readiness of {}/Nope/x. resource with group/kind Nope not found",
        world.namespace
    );
    assert_eq!(result.errors[0].message, expected);
    Ok(())
}

#[derive(Debug, Default)]
struct Events(Mutex<Vec<String>>);

impl Progress for Events {
    fn tell(&self, event: &Event<'_>) {
        let text = match event {
            Event::Step(what) => (*what).to_owned(),
            Event::ItemStarted { item } => format!("{item} begins"),
            Event::Applied { item, done, of } => format!("{item} {done}/{of}"),
            Event::Waiting { what, .. } => (*what).to_owned(),
            Event::ItemFinished { item, counts } => format!("{item}: {counts}"),
            Event::Barrier { message } => message.unwrap_or("barrier").to_owned(),
            Event::BarrierPassed => "passed".to_owned(),
            Event::Warning(text) => (*text).to_owned(),
        };
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test]
async fn deploy_reports_progress() -> Result<()> {
    let world = Fixture::new("progress").await?;
    let mut rendered = world.items(vec![
        vec![world.config_map("a", json!({})), world.config_map("b", json!({}))],
        vec![world.config_map("c", json!({}))],
    ]);
    rendered.items[0].wait_readiness = true;
    rendered.items[0].message = Some("first things first".to_owned());
    let events = Arc::new(Events::default());
    let options = DeployOptions {
        progress: Some(events.clone()),
        readiness_timeout: Duration::from_secs(30),
        ..DeployOptions::default()
    };
    engine::deploy(&world.cluster, &rendered, &options).await?;
    let ns = &world.namespace;
    let events = events.0.lock().unwrap().clone();
    let expected = [
        "Getting remote objects by discriminator".to_owned(),
        "first things first".to_owned(),
        "item-0 begins".to_owned(),
        "item-0 1/2".to_owned(),
        "item-0 2/2".to_owned(),
        format!("Waiting for {ns}/ConfigMap/a to get ready..."),
        format!("Waiting for {ns}/ConfigMap/b to get ready..."),
        "item-0: Applied 2 objects.".to_owned(),
        "passed".to_owned(),
    ];
    assert_eq!(events[..expected.len()], expected);
    Ok(())
}
