//! The fields that change how a project is deployed.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::wait_for;

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, message_of, value_of},
    waiting::NEVER_READY,
};

/// A job that never runs: it is ready at once.
pub(crate) fn job(color: &str) -> String {
    format!(
        r#"apiVersion: batch/v1
kind: CronJob
metadata:
  name: shop
  labels:
    color: {color}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: '{{{{ images.get_image("registry.example/shop") }}}}'
"#
    )
}

pub(crate) fn image_of(job: &CronJob) -> Option<&str> {
    let template = &job.spec.as_ref()?.job_template.spec.as_ref()?.template;
    template.spec.as_ref()?.containers.first()?.image.as_deref()
}

impl Fixture {
    async fn image(&self, wanted: &str) -> Result<CronJob> {
        let jobs: Api<CronJob> = Api::namespaced(self.client.clone(), &self.namespace);
        let is_wanted = |job: &CronJob| image_of(job) == Some(wanted);
        wait_for(&jobs, "shop", &format!("image {wanted}"), TIMEOUT, is_wanted).await
    }

    /// Sets the value of a ConfigMap as a controller would.
    async fn change(&self, name: &str, value: &str) -> Result<()> {
        let params = PatchParams {
            field_manager: Some("operator".to_owned()),
            ..PatchParams::default()
        };
        let change = json!({ "data": { "value": value } });
        self.config_maps()
            .patch(name, &params, &Patch::Merge(change))
            .await?;
        Ok(())
    }

    /// The files of a project with items that have their name as a tag, of ConfigMaps with their names and values.
    fn tagged(&self, items: &[(&str, &[(&str, &str)])]) -> Vec<(String, String)> {
        let mut files = self.maps(&[]);
        files.retain(|(path, _)| path == ".kluctl.yaml");
        let mut deployment = format!("overrideNamespace: {}\ndeployments:\n", self.namespace);
        for (item, maps) in items {
            deployment.push_str(&format!("- path: {item}\n  tags: [{item}]\n"));
            for (name, value) in *maps {
                files.push((format!("{item}/{name}.yaml"), config_map(name, value)));
            }
        }
        files.push(("deployment.yaml".to_owned(), deployment));
        files
    }

    /// A source `shop` with these items and files, whose deployments are told apart by the argument `id`.
    async fn items_by_id(&self, items: &str, more: &[(&str, &str)]) -> Result<()> {
        let config = format!(
            "discriminator: {}-{{{{ args.id }}}}\nargs:\n- name: id\n- {{name: k, default: d}}\n\
             - {{name: bad, default: false}}\ntargets:\n- name: test\n- name: other\n- {{name: far, context: far-away}}\n",
            self.namespace
        );
        let deployment = format!("overrideNamespace: {}\ndeployments:\n{items}", self.namespace);
        let mut files = vec![
            (".kluctl.yaml", config.as_str()),
            ("deployment.yaml", &deployment),
        ];
        files.extend(more);
        let files: Vec<_> = files
            .into_iter()
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .collect();
        self.source("shop", &files).await.map(drop)
    }

    /// Applies a deployment of that source with the argument `id`, its name.
    async fn deploy_by_id(&self, id: &str, mut spec: Value) -> Result<()> {
        spec["args"]["id"] = json!(id);
        let spec = self
            .deployment(id, "shop")
            .spec(json!({ "target": "test", "prune": false }))
            .spec(spec);
        self.plane.apply(spec).await.map(drop)
    }
}

/// Returns a ConfigMap whose name begins with the argument `id`.
fn map_of_id(name: &str, value: &str) -> String {
    config_map(&format!("'{{{{ args.id }}}}-{name}'"), value)
}

#[tokio::test]
async fn target_context_arguments_and_inclusion_choose_what_is_deployed() -> Result<()> {
    let fixture = Fixture::new("select", &[]).await?;
    let items = "- {path: one, tags: [first]}\n- {path: two, tags: [second]}\n";
    let one = map_of_id("one", "{{ target.name }} {{ args.k }}");
    let two = map_of_id("two", "2");
    let files = [("one/map.yaml", one.as_str()), ("two/map.yaml", &two)];
    fixture.items_by_id(items, &files).await?;
    let cases = [
        (json!({ "target": "other" }), Some("other d"), true),
        (
            json!({ "targetNameOverride": "renamed" }),
            Some("renamed d"),
            true,
        ),
        (
            json!({ "target": "far", "context": "default" }),
            Some("far d"),
            true,
        ),
        (json!({ "args": { "k": "v" } }), Some("test v"), true),
        (json!({ "includeTags": ["first"] }), Some("test d"), false),
        (json!({ "excludeTags": ["first"] }), None, true),
        (json!({ "includeDeploymentDirs": ["one"] }), Some("test d"), false),
        (json!({ "excludeDeploymentDirs": ["one"] }), None, true),
    ];
    for (number, (spec, ..)) in cases.iter().enumerate() {
        fixture
            .deploy_by_id(&format!("shop-{number}"), spec.clone())
            .await?;
    }
    fixture.deploy_by_id("far", json!({ "target": "far" })).await?;
    for (number, (spec, one, has_two)) in cases.iter().enumerate() {
        let id = format!("shop-{number}");
        fixture.ready(&id, "True", "ReconciliationSucceeded").await?;
        let found = fixture.config_maps().get_opt(&format!("{id}-one")).await?;
        assert_eq!(found.as_ref().and_then(value_of), *one, "{spec}");
        assert_eq!(fixture.has(&format!("{id}-two")).await?, *has_two, "{spec}");
    }
    let object = fixture.ready("far", "False", "PrepareFailed").await?;
    let message = message_of(&object);
    ensure!(message.contains("far-away"), "{message}");
    Ok(())
}

#[tokio::test]
async fn errors_and_waits_end_as_the_options_say() -> Result<()> {
    let fixture = Fixture::new("errors", &[]).await?;
    let items =
        "- {path: bad, when: args.bad}\n- {path: slow, when: not args.bad}\n- barrier: true\n- path: good\n";
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\nwrong: 1\n";
    let good = map_of_id("good", "1");
    let files = [
        ("bad/map.yaml", bad),
        ("slow/slow.yaml", NEVER_READY),
        ("good/map.yaml", &good),
    ];
    fixture.items_by_id(items, &files).await?;
    for (id, spec) in [
        ("goes-on", json!({ "args": { "bad": true } })),
        ("aborts", json!({ "args": { "bad": true }, "abortOnError": true })),
    ] {
        fixture.deploy_by_id(id, spec).await?;
        fixture.ready(id, "False", "DeployFailed").await?;
    }
    ensure!(fixture.has("goes-on-good").await?);
    ensure!(!fixture.has("aborts-good").await?, "it went on after an error");

    let spec = json!({ "noWait": true, "validate": false, "timeout": "10m" });
    fixture.deploy_by_id("hurries", spec).await?;
    let object = fixture
        .ready("hurries", "True", "ReconciliationSucceeded")
        .await?;
    assert_eq!(message_of(&object), "deploy: ok");
    ensure!(fixture.has("hurries-good").await?);
    Ok(())
}

#[tokio::test]
async fn inclusion_limits_what_is_deployed_pruned_and_deleted() -> Result<()> {
    let fixture = Fixture::new("inclusion", &[]).await?;
    let files = fixture.tagged(&[
        ("one", &[("a", "1"), ("b", "1")]),
        ("two", &[("c", "1"), ("d", "1")]),
    ]);
    let source = fixture.source("shop", &files).await?;
    fixture
        .deploy("shop", json!({ "prune": true, "delete": true }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(fixture.has("d").await?);
    for limit in [
        json!({ "includeTags": ["one"] }),
        json!({ "includeTags": null, "excludeDeploymentDirs": ["two"] }),
    ] {
        fixture.edit("shop", limit.clone()).await?;
        let color = limit.to_string().len().to_string();
        let files = fixture.tagged(&[("one", &[("a", &color)]), ("two", &[("c", &color)])]);
        let revision = source.offer(&files).await?;
        fixture.deployed("shop", &revision).await?;
        fixture.holds("a", &color).await?;
        ensure!(
            !fixture.has("b").await?,
            "{limit}: an orphan of the included item"
        );
        fixture.holds("c", "1").await?;
        ensure!(fixture.has("d").await?, "{limit}: an orphan of another item");
    }
    fixture.remove("shop").await?;
    ensure!(!fixture.has("a").await? && fixture.has("c").await? && fixture.has("d").await?);
    Ok(())
}

#[tokio::test]
async fn fixed_images_are_deployed_and_poked() -> Result<()> {
    let fixture = Fixture::new("images", &[]).await?;
    let files = |color| crate::fixture::project(&fixture.namespace, &[("job", &job(color))]);
    let source = fixture.source("shop", &files("red")).await?;
    let image = |tag: &str| {
        json!([{
            "image": "registry.example/shop", "resultImage": format!("registry.example/shop:{tag}"), "container": "main",
        }])
    };
    fixture
        .deploy("shop", json!({ "images": image("1"), "interval": "1s" }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    fixture.image("registry.example/shop:1").await?;

    fixture
        .edit(
            "shop",
            json!({ "images": image("2"), "deployMode": "poke-images" }),
        )
        .await?;
    let revision = source.offer(&files("green")).await?;
    fixture.deployed("shop", &revision).await?;
    let poked = fixture.image("registry.example/shop:2").await?;
    assert_eq!(
        poked.labels().get("color").map(String::as_str),
        Some("red"),
        "nothing else changes"
    );
    fixture
        .told("shop", "poke-images succeeded. 1 changed objects.")
        .await?;

    // At each interval, the images are compared.
    let jobs: Api<CronJob> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let change = json!({ "spec": { "jobTemplate": { "spec": { "template": { "spec": {
        "containers": [{ "name": "main", "image": "registry.example/shop:0" }] } } } } } });
    jobs.patch("shop", &PatchParams::default(), &Patch::Strategic(change))
        .await?;
    fixture.image("registry.example/shop:2").await?;
    Ok(())
}

#[tokio::test]
async fn changes_of_another_manager_are_reverted_by_force_only() -> Result<()> {
    let fixture = Fixture::new("force", &[]).await?;
    fixture
        .running("shop", &[("a", "1")], json!({ "interval": "1s", "prune": true }))
        .await?;
    fixture.change("a", "2").await?;
    fixture.more_passes(2.0).await?;
    fixture.holds("a", "2").await?;

    fixture.edit("shop", json!({ "forceApply": true })).await?;
    fixture.holds("a", "1").await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    fixture.change("a", "3").await?;
    // From now on at each interval.
    fixture.holds("a", "1").await?;
    Ok(())
}

#[tokio::test]
async fn object_that_cannot_be_patched_is_recreated_on_request_only() -> Result<()> {
    let fixture = Fixture::new("replace", &[]).await?;
    let map = |value: &str| format!("{}immutable: true\n", config_map("a", value));
    let files = |value| crate::fixture::project(&fixture.namespace, &[("a", &map(value))]);
    let source = fixture.source("shop", &files("1")).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    let before = fixture.holds("a", "1").await?.uid();

    source.offer(&files("2")).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    ensure!(
        message_of(&object).contains("immutable"),
        "{}",
        message_of(&object)
    );
    fixture.edit("shop", json!({ "replaceOnError": true })).await?;
    fixture.ready("shop", "False", "DeployFailed").await?;
    assert_eq!(fixture.holds("a", "1").await?.uid(), before);

    fixture
        .edit("shop", json!({ "forceReplaceOnError": true }))
        .await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    assert_ne!(fixture.holds("a", "2").await?.uid(), before);
    Ok(())
}

#[tokio::test]
async fn changes_wait_for_a_request_without_deploy_on_changes() -> Result<()> {
    let fixture = Fixture::new("on-request", &[]).await?;
    let spec = json!({ "deployOnChanges": false, "deployInterval": "never", "interval": "1h" });
    let source = fixture.running("shop", &[("a", "1")], spec).await?;
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed("shop", &revision).await?;
    fixture.holds("a", "1").await?;
    fixture
        .annotate("shop", "deploy.flux.kluctl.io/requestedAt", "1")
        .await?;
    fixture.holds("a", "2").await?;

    fixture.edit("shop", json!({ "deployOnChanges": true })).await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    source.offer(&fixture.maps(&[("a", "3")])).await?;
    fixture.holds("a", "3").await?;
    Ok(())
}

#[tokio::test]
async fn objects_are_validated_at_their_own_interval() -> Result<()> {
    let fixture = Fixture::new("validating", &[]).await?;
    for (name, interval, validate_interval) in [("often", "1h", "1s"), ("seldom", "1s", "1h")] {
        let spec = json!({
            "interval": interval, "validateInterval": validate_interval, "deployInterval": "never",
        });
        fixture
            .source(name, &fixture.other_maps(name, &[(name, "1")]))
            .await?;
        fixture.deploy(name, spec).await?;
        fixture.ready(name, "True", "ReconciliationSucceeded").await?;
    }
    for name in ["seldom", "often"] {
        fixture
            .config_maps()
            .delete(name, &DeleteParams::default())
            .await?;
    }
    let object = fixture.ready("often", "False", "ValidateFailed").await?;
    let result = json!(object.status)["lastValidateResult"].to_string();
    ensure!(result.contains("not found"), "{result}");
    // The other one has a pass each second, too.
    fixture.more_passes(5.0).await?;
    fixture.ready("seldom", "True", "ReconciliationSucceeded").await?;
    Ok(())
}

#[tokio::test]
async fn fields_without_effect_are_reported_once() -> Result<()> {
    let fixture = Fixture::new("idle", &[]).await?;
    let spec = json!({ "updateImages": true, "registrySecrets": [{ "name": "registry" }], "interval": "1s" });
    fixture.running("shop", &[("a", "1")], spec).await?;
    let text = "spec.updateImages, spec.registrySecrets: has no effect";
    let (kind, _) = fixture.told("shop", text).await?;
    assert_eq!(kind, "Normal");
    fixture.more_passes(2.0).await?;
    let events = fixture.events("shop").await?;
    let told = events
        .iter()
        .filter(|(_, message)| message.contains(text))
        .count();
    assert_eq!(told, 1, "{events:?}");
    fixture
        .config_maps()
        .get_opt("a")
        .await?
        .context("it is deployed")?;
    Ok(())
}
