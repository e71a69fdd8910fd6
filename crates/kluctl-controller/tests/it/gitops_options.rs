//! Fields of KluctlDeployments of gitops.kluctl.io that choose the deployed objects, and how and when.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{eventually, git::Fault, wait_for};

use crate::{
    fixture::{TIMEOUT, config_map, project},
    gitops::{Gitops, ready_of},
    options::{image_of, job},
    waiting::NEVER_READY,
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

impl Gitops {
    /// Replaces the project by one with these items and files, whose deployments are told apart by the argument `id`.
    fn push_items(&self, items: &str, more: &[(&str, &str)]) -> Result<()> {
        let own = &self.fixture.namespace;
        let config = format!(
            "discriminator: {own}-{{{{ args.id }}}}\nargs:\n- name: id\n- {{name: k, default: d}}\n- {{name: bad, default: false}}\n\
             targets:\n- name: test\n- name: other\n"
        );
        let deployment = format!("overrideNamespace: {own}\ndeployments:\n{items}");
        let mut files = vec![
            (".kluctl.yaml", config.as_str()),
            ("deployment.yaml", deployment.as_str()),
        ];
        files.extend(more);
        self.push_files(&[], &files).map(drop)
    }

    /// Creates an object with the argument `id`, its name.
    async fn create_with_id(&self, id: &str, mut spec: Value) -> Result<()> {
        spec["args"]["id"] = json!(id);
        self.create(id, spec).await
    }

    /// Waits until a ConfigMap has this value.
    async fn has_value(&self, name: &str, expected: &str) -> Result<()> {
        eventually(&format!("{name} to be {expected}"), TIMEOUT, || async {
            let value = self.value(name).await?;
            ensure!(value.as_deref() == Some(expected), "{value:?}");
            Ok(())
        })
        .await
    }
}

/// Returns a ConfigMap whose name begins with the argument `id`.
fn map_of_id(name: &str, value: &str) -> String {
    config_map(&format!("'{{{{ args.id }}}}-{name}'"), value)
}

#[tokio::test]
async fn target_arguments_and_inclusion_choose_what_is_deployed() -> Result<()> {
    let shop = Gitops::new("go-select").await?;
    let items = "- {path: one, tags: [first]}\n- {path: two, tags: [second]}\n";
    let one = map_of_id("one", "{{ target.name }} {{ args.k }}");
    let two = map_of_id("two", "2");
    shop.push_items(items, &[("one/map.yaml", &one), ("two/map.yaml", &two)])?;
    let cases = [
        (json!({}), Some("test d"), true),
        (json!({ "target": "other" }), Some("other d"), true),
        (
            json!({ "targetNameOverride": "renamed" }),
            Some("renamed d"),
            true,
        ),
        (json!({ "args": { "k": "v" } }), Some("test v"), true),
        (json!({ "includeTags": ["first"] }), Some("test d"), false),
        (json!({ "excludeTags": ["first"] }), None, true),
        (json!({ "includeDeploymentDirs": ["one"] }), Some("test d"), false),
        (json!({ "excludeDeploymentDirs": ["one"] }), None, true),
        (json!({ "dryRun": true }), None, false),
    ];
    for (number, (spec, ..)) in cases.iter().enumerate() {
        shop.create_with_id(&format!("shop-{number}"), spec.clone())
            .await?;
    }
    for (number, (spec, one, has_two)) in cases.iter().enumerate() {
        let id = format!("shop-{number}");
        // A dry run leaves nothing that could be valid.
        eventually(&format!("the deployment with {spec}"), TIMEOUT, || async {
            let status = shop.api().get(&id).await?.status.unwrap_or_default();
            ensure!(status.last_deploy_result.is_some(), "{:?}", ready_of(&status));
            Ok(())
        })
        .await?;
        let found = shop.value(&format!("{id}-one")).await?;
        assert_eq!(found.as_deref(), *one, "{spec}");
        assert_eq!(
            shop.value(&format!("{id}-two")).await?.is_some(),
            *has_two,
            "{spec}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn errors_and_waits_end_as_the_options_say() -> Result<()> {
    let shop = Gitops::new("go-errors").await?;
    let items =
        "- {path: bad, when: args.bad}\n- {path: slow, when: not args.bad}\n- barrier: true\n- path: good\n";
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\nwrong: 1\n";
    let good = map_of_id("good", "1");
    let files = [
        ("bad/map.yaml", bad),
        ("slow/slow.yaml", NEVER_READY),
        ("good/map.yaml", good.as_str()),
    ];
    shop.push_items(items, &files)?;
    for (id, spec) in [
        ("goes-on", json!({ "args": { "bad": true } })),
        ("aborts", json!({ "args": { "bad": true }, "abortOnError": true })),
    ] {
        shop.create_with_id(id, spec).await?;
        shop.ready(id, "DeployFailed").await?;
    }
    ensure!(shop.value("goes-on-good").await?.is_some());
    ensure!(
        shop.value("aborts-good").await?.is_none(),
        "it went on after an error"
    );

    let spec = json!({ "noWait": true, "validate": false, "timeout": "10m" });
    shop.create_with_id("hurries", spec).await?;
    let status = shop.ready("hurries", SUCCEEDED).await?;
    ensure!(
        status.last_validate_result.is_none(),
        "spec.validate is off: {status:?}"
    );
    ensure!(shop.value("hurries-good").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn object_that_cannot_be_patched_is_recreated_on_request_only() -> Result<()> {
    let shop = Gitops::new("go-replace").await?;
    let push = |value: &str| {
        let map = format!("{}immutable: true\n", config_map("a", value));
        shop.push_files(&project(&shop.fixture.namespace, &[("a", &map)]), &[])
    };
    push("1")?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let uid = async || anyhow::Ok(shop.fixture.config_maps().get("a").await?.uid());
    let before = uid().await?;
    push("2")?;
    for spec in [json!({}), json!({ "replaceOnError": true })] {
        shop.change("shop", spec).await?;
        let (reason, message, _) = shop.outcome("shop").await?;
        assert_eq!(reason, "DeployFailed", "{message}");
        assert_eq!(uid().await?, before);
    }
    shop.change("shop", json!({ "forceReplaceOnError": true }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    assert_ne!(uid().await?, before);
    assert_eq!(shop.value("a").await?.as_deref(), Some("2"));
    Ok(())
}

#[tokio::test]
async fn fixed_images_are_deployed_and_poked() -> Result<()> {
    let shop = Gitops::new("go-images").await?;
    let push = |color: &str| {
        let files = project(&shop.fixture.namespace, &[("job", &job(color))]);
        shop.push_files(&files, &[])
    };
    let jobs: Api<CronJob> = Api::namespaced(shop.fixture.client.clone(), &shop.fixture.namespace);
    let becomes = async |wanted: &str| {
        let what = format!("image {wanted}");
        wait_for(&jobs, "shop", &what, TIMEOUT, |job| image_of(job) == Some(wanted)).await
    };
    let image = |selectors: Value| {
        let mut image = selectors;
        image["resultImage"] = json!(format!("registry.example/shop:{}", image.to_string().len()));
        image
    };
    push("red")?;
    shop.create("shop", json!({})).await?;
    let own = shop.fixture.namespace.as_str();
    // The first entry applies to nothing here, because of one of its fields.
    for (other, fitting) in [
        (
            json!({ "image": "other" }),
            json!({ "image": "registry.example/shop" }),
        ),
        (json!({ "imageRegex": "^shop" }), json!({ "imageRegex": "shop$" })),
        (
            json!({ "imageRegex": ".*", "namespace": "other" }),
            json!({ "imageRegex": ".*", "namespace": own }),
        ),
        (
            json!({ "imageRegex": ".*", "deployment": "CronJob/other" }),
            json!({ "imageRegex": ".*", "deployment": "CronJob/shop" }),
        ),
        (
            json!({ "imageRegex": ".*", "container": "other" }),
            json!({ "imageRegex": ".*", "container": "main" }),
        ),
    ] {
        let fitting = image(fitting);
        let wanted = fitting["resultImage"].as_str().unwrap_or_default().to_owned();
        shop.change("shop", json!({ "images": [image(other), fitting] }))
            .await?;
        becomes(&wanted).await?;
    }

    push("green")?;
    let last = json!({ "image": "registry.example/shop", "resultImage": "registry.example/shop:last" });
    shop.change("shop", json!({ "images": [last], "deployMode": "poke-images" }))
        .await?;
    let poked = becomes("registry.example/shop:last").await?;
    let color = poked.labels().get("color").map(String::as_str);
    assert_eq!(color, Some("red"), "nothing else changes");
    shop.fixture
        .told("shop", "poke-images succeeded. 1 changed objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn objects_are_validated_at_their_own_interval() -> Result<()> {
    let shop = Gitops::new("go-validate").await?;
    shop.push(&[("a", "1")])?;
    let spec = json!({ "interval": "1h", "validateInterval": "1s" });
    shop.create("shop", spec).await?;
    shop.ready("shop", SUCCEEDED).await?;
    // Also after passes that found nothing to do.
    shop.fixture.more_passes(5.0).await?;
    shop.fixture
        .config_maps()
        .delete("a", &DeleteParams::default())
        .await?;
    let status = shop.ready("shop", "ValidateFailed").await?;
    let errors = json!(status.last_validate_result)["errors"].to_string();
    ensure!(errors.contains("object not found"), "{errors}");
    shop.change("shop", json!({ "validate": false, "manual": true }))
        .await?;
    let status = shop.ready("shop", SUCCEEDED).await?;
    ensure!(status.last_validate_result.is_none(), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn fetch_ends_at_a_third_of_the_timeout_and_is_repeated_after_the_retry_interval() -> Result<()> {
    let shop = Gitops::new("go-timeout").await?;
    shop.push(&[("a", "1")])?;
    shop.repo.fail(Fault::Hang);
    let spec = json!({ "interval": "1h", "retryInterval": "1s", "timeout": "31s" });
    shop.create("shop", spec).await?;
    let status = shop.ready("shop", "PrepareFailed").await?;
    let error = status.last_prepare_error.unwrap_or_default();
    ensure!(error.contains("did not finish within 10.33"), "{error}");
    shop.repo.heal();
    shop.ready("shop", SUCCEEDED).await.map(drop)
}

#[tokio::test]
async fn references_of_both_forms_of_a_git_source_select_the_commit() -> Result<()> {
    let shop = Gitops::new("go-refs").await?;
    let first = shop.push(&[("a", "1")])?;
    shop.repo.branch("release", &first)?;
    let second = shop.push(&[("a", "2")])?;
    shop.repo.tag("v2", &second)?;
    let third = shop.push(&[("a", "3")])?;
    let files = shop.fixture.maps(&[("a", "4")]);
    let deeper: Vec<(String, String)> = files
        .into_iter()
        .map(|(path, text)| (format!("deeper/{path}"), text))
        .collect();
    shop.push_files(&deeper, &[])?;
    let url = shop.repo.url();
    let git = json!({ "source": { "git": { "url": url, "ref": { "branch": "release" } } } });
    shop.create("shop", git).await?;
    shop.has_value("a", "1").await?;
    for (reference, value) in [
        (json!({ "branch": null, "tag": "v2" }), "2"),
        (json!({ "tag": null, "commit": third }), "3"),
    ] {
        shop.change("shop", json!({ "source": { "git": { "ref": reference } } }))
            .await?;
        shop.has_value("a", value).await?;
    }
    // The fields that the original deprecated.
    for (source, value) in [
        (
            json!({ "git": null, "url": url, "ref": { "branch": "release" } }),
            "1",
        ),
        (json!({ "ref": { "branch": null, "tag": "v2" } }), "2"),
        (json!({ "ref": { "tag": null, "commit": third } }), "3"),
        (json!({ "ref": null, "path": "deeper" }), "4"),
    ] {
        shop.change("shop", json!({ "source": source })).await?;
        shop.has_value("a", value).await?;
    }
    Ok(())
}

#[tokio::test]
async fn kubeconfig_of_a_secret_selects_the_cluster() -> Result<()> {
    let shop = Gitops::new("go-remote").await?;
    let kubeconfig = shop.fixture.account("remote").await?;
    shop.fixture.store("config", &kubeconfig).await?;
    shop.push(&[("a", "1")])?;
    let remote = |key: &str| json!({ "kubeConfig": { "secretRef": { "name": "remote", "key": key } } });
    shop.create("shop", remote("missing")).await?;
    let status = shop.ready("shop", "PrepareFailed").await?;
    let error = status.last_prepare_error.unwrap_or_default();
    ensure!(error.contains("missing"), "{error}");
    let mark = shop.fixture.plane.audit_mark();
    shop.change("shop", remote("config")).await?;
    shop.ready("shop", SUCCEEDED).await?;
    let entries = shop.fixture.plane.audit_since(mark)?;
    let user = format!("system:serviceaccount:{}:remote", shop.fixture.namespace);
    let path = format!("/{}/configmaps/a", shop.fixture.namespace);
    let written = entries
        .iter()
        .find(|entry| entry.is_write() && entry.uri.contains(&path));
    assert_eq!(written.context("no write of the ConfigMap")?.user, user);
    Ok(())
}

#[tokio::test]
async fn field_of_another_manager_is_taken_over_by_force_only() -> Result<()> {
    let shop = Gitops::new("go-force").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "interval": "1s", "deployInterval": "1s" }))
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    let params = PatchParams {
        field_manager: Some("operator".to_owned()),
        ..PatchParams::default()
    };
    let change = Patch::Merge(json!({ "data": { "value": "2" } }));
    shop.fixture.config_maps().patch("a", &params, &change).await?;
    shop.fixture.more_passes(3.0).await?;
    assert_eq!(shop.value("a").await?.as_deref(), Some("2"));
    shop.change("shop", json!({ "forceApply": true })).await?;
    shop.has_value("a", "1").await
}
