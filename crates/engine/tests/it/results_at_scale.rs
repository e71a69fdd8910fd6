//! Stored results of large deployments and of many targets.

use anyhow::{Context as _, Result, ensure};
use engine::{
    DeployOptions,
    commands::{self, Project},
};
use results::{Origin, ProjectKey, ResultStore, Retention, text};
use serde_json::json;
use testkit::audit::Entry;
use yaml::Value;

use crate::world::Fixture;

/// Maximum size of the data of a Secret, in bytes, which the API server allows.
const SECRET_BYTES: usize = 1 << 20;
/// Number of results of other targets, more than a page of a list has.
const OTHERS: usize = 620;

fn store(world: &Fixture) -> ResultStore {
    let retention = Retention {
        commands: 2,
        validations: 1,
    };
    ResultStore::new(world.cluster.clone(), &world.namespace, retention)
}

fn origin(repo: &str) -> Origin {
    Origin {
        project: ProjectKey {
            repo_key: format!("git://example.com/{repo}"),
            sub_dir: String::new(),
        },
        ..Origin::default()
    }
}

async fn deploy(world: &Fixture, repo: &str) -> Result<String> {
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let mut project = Project::new(&world.cluster, &rendered);
    project.origin = origin(repo);
    let result = commands::deploy(&project, &DeployOptions::default(), false).await?;
    ensure!(result.errors.is_empty(), "{:?}", result.errors);
    store(world).write_command(&result).await?;
    Ok(result.origin.id)
}

async fn listed(world: &Fixture) -> Result<Vec<String>> {
    let found = store(world).list().await?;
    Ok(found.into_iter().map(|stored| stored.id).collect())
}

async fn secrets(world: &Fixture) -> Result<Vec<serde_json::Value>> {
    let printed = world
        .plane
        .kubectl(&["get", "secrets", "-n", &world.namespace, "-o", "json"])
        .await?;
    let list: serde_json::Value = serde_json::from_str(&printed)?;
    Ok(list["items"].as_array().context("a list")?.clone())
}

/// Returns letters that no compression makes much smaller.
fn noise(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let letters = (0..count).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap_or(0))
    });
    letters.collect()
}

#[tokio::test]
async fn results_of_a_thousand_objects_are_stored_listed_and_read() -> Result<()> {
    let world = Fixture::new("thousand").await?;
    let objects = (0..1000).map(|i| world.config_map(&format!("m-{i:04}"), json!({"key": noise(i, 3000)})));
    let rendered = world.rendered(objects.collect());
    let mut project = Project::new(&world.cluster, &rendered);
    project.origin = origin("large");
    let options = DeployOptions {
        contents: true,
        ..DeployOptions::default()
    };
    let result = commands::deploy(&project, &options, false).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    let store = store(&world);
    store.write_command(&result).await?;

    let held = secrets(&world).await?;
    ensure!(held.len() > 2, "{} Secrets", held.len());
    for secret in &held {
        let entries = secret["data"].as_object().context("entries")?;
        let text: usize = entries
            .values()
            .map(|entry| entry.as_str().unwrap_or_default().len())
            .sum();
        assert!(
            text / 4 * 3 <= SECRET_BYTES,
            "{}: {text}",
            secret["metadata"]["name"]
        );
    }
    let found = store.list().await?;
    assert_eq!(found.len(), 1, "the parts are no results");
    let count = |name| found[0].summary.get(name).and_then(Value::as_u64);
    assert_eq!(
        (count("newObjects"), count("appliedObjects")),
        (Some(1000), Some(1000))
    );
    let read = store.read(&found[0]).await?;
    let objects = read.get("objects").and_then(Value::as_seq).context("objects")?;
    let applied = objects
        .iter()
        .filter(|object| object.pointer(&["applied", "data", "key"]).is_some());
    assert_eq!(applied.count(), 1000);
    let printed =
        text::stored_command_result(&store.read_compacted(&found[0]).await?, text::Style::default());
    assert_eq!(printed.matches("ConfigMap/m-").count(), 1000, "{printed}");

    for stored in found {
        store.delete(&stored).await?;
    }
    assert_eq!(secrets(&world).await?.len(), 0, "a deleted result leaves no part");
    Ok(())
}

#[tokio::test]
async fn results_of_a_thousand_errors_are_stored_listed_and_read() -> Result<()> {
    let world = Fixture::new("errors").await?;
    let invalid = (0..1000).map(|i| world.config_map(&format!("m-{i:04}"), json!({"not a key": "x"})));
    let rendered = world.rendered(invalid.collect());
    let mut project = Project::new(&world.cluster, &rendered);
    project.origin = origin("failing");
    let result = commands::deploy(&project, &DeployOptions::default(), false).await?;
    assert_eq!(result.errors.len(), 1000);
    let unbounded = yaml::print::json(&result.summary()).len();
    ensure!(unbounded > 256 << 10, "{unbounded} bytes fit into an annotation");
    let store = store(&world);
    store.write_command(&result).await?;

    let found = store.list().await?;
    ensure!(found.len() == 1, "{found:?}");
    let summary = &found[0].summary;
    let shown = summary.get("errors").and_then(Value::as_seq).context("errors")?;
    let last = shown
        .last()
        .and_then(|entry| entry.get("message")?.as_str())
        .context("a message")?;
    assert_eq!(last, format!("... and {} more errors", 1001 - shown.len()));
    assert_eq!(results::left_out(last), u64::try_from(1001 - shown.len()).ok());
    let printed =
        text::stored_command_result(&store.read_compacted(&found[0]).await?, text::Style::default());
    for i in 0..1000 {
        ensure!(printed.contains(&format!("m-{i:04}")), "m-{i:04} is not shown");
    }
    Ok(())
}

#[tokio::test]
async fn writing_a_result_lists_no_results_of_other_targets() -> Result<()> {
    let world = Fixture::new("others").await?;
    let requests = async || -> Result<Vec<String>> {
        let mark = world.plane.audit_mark();
        deploy(&world, "own").await?;
        let of_store = |entry: &&Entry| entry.resource == "secrets" && entry.namespace == world.namespace;
        let entries = world.plane.audit_since(mark)?;
        Ok(entries
            .iter()
            .filter(of_store)
            .map(|entry| entry.verb.clone())
            .collect())
    };
    for _ in 0..2 {
        deploy(&world, "own").await?;
    }
    let alone = requests().await?;

    // The same Secret under other names, as results of other targets.
    deploy(&world, "other").await?;
    let held = secrets(&world).await?;
    let is_other = |secret: &&serde_json::Value| {
        secret["metadata"]["annotations"]["kluctl.io/result-project-repo-key"] == "git://example.com/other"
    };
    let other = held.iter().find(is_other).context("the result")?;
    let copies = (0..OTHERS).map(|i| {
        let mut copy = other.clone();
        copy["metadata"] = json!({"name": format!("copy-{i}"), "labels": other["metadata"]["labels"],
            "annotations": other["metadata"]["annotations"]});
        copy["metadata"]["labels"]["kluctl.io/command-result-id"] = json!(format!("copy-{i}"));
        copy
    });
    let copies = json!({"apiVersion": "v1", "kind": "List", "items": copies.collect::<Vec<_>>()});
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("copies.json");
    std::fs::write(&file, copies.to_string())?;
    let file = file.display().to_string();
    world
        .plane
        .kubectl(&["create", "-n", &world.namespace, "-f", &file])
        .await?;

    assert_eq!(requests().await?, alone);
    assert_eq!(
        listed(&world).await?.len(),
        OTHERS + 3,
        "no other result was deleted"
    );
    Ok(())
}

#[tokio::test]
async fn results_of_the_original_are_adopted_and_cleaned_up() -> Result<()> {
    let world = Fixture::new("adopted").await?;
    let mut ids = Vec::new();
    for repo in ["own", "own", "other"] {
        ids.push(deploy(&world, repo).await?);
    }
    // The original has no such labels.
    let ungroup = [
        "label",
        "secrets",
        "--all",
        "-n",
        &world.namespace,
        "weir.io/result-group-",
        "weir.io/result-deployment-",
    ];
    world.plane.kubectl(&ungroup).await?;
    ids.push(deploy(&world, "own").await?);
    let mut left = listed(&world).await?;
    left.sort();
    let mut expected = ids[1..].to_vec();
    expected.sort();
    assert_eq!(
        left, expected,
        "the oldest result of the target is gone, the other target's is not"
    );

    assert_eq!(
        (store(&world).adopt().await?, store(&world).adopt().await?),
        (2, 0)
    );
    ids.push(deploy(&world, "own").await?);
    let mut left = listed(&world).await?;
    left.sort();
    let mut expected = ids[2..].to_vec();
    expected.sort();
    assert_eq!(left, expected);
    Ok(())
}
