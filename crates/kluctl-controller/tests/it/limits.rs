//! Projects that expand without bound.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{
    fixture::{Fixture, config_map, message_of, project},
    gitops::Gitops,
};

/// Memory that a controller may take while it refuses them all, in bytes.
const MEMORY: u64 = 512 << 20;
/// Time in which another object deploys a new revision, on a busy machine.
const PACE: Duration = Duration::from_secs(10);

/// Aliases of aliases, which expand to billions of strings.
fn alias_bomb() -> String {
    let mut text =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nx0: &x0 [a, a, a, a, a, a, a, a, a]\n"
            .to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*x{}", level - 1); 9];
        text.push_str(&format!("x{level}: &x{level} [{}]\n", aliases.join(", ")));
    }
    text
}

/// Name and files of a project that expands without bound, and the limit that refuses it.
type Unbounded = (&'static str, Vec<(String, String)>, &'static str);

fn unbounded(fixture: &Fixture) -> [Unbounded; 5] {
    let of = |text: &str| project(&fixture.namespace, &[("a", text)]);
    let mut cycle = of(&config_map("a", "1"));
    for (path, text) in &mut cycle {
        if path == "app/kustomization.yaml" {
            text.push_str("- ../app\n");
        }
    }
    let many = format!(
        "{{% for i in range(100000) %}}\n---\n{}{{% endfor %}}\n",
        config_map("a-{{ i }}", "1")
    );
    let endless =
        "{% for i in range(1000000000) %}{% for j in range(1000000000) %}{% endfor %}{% endfor %}\n";
    let large = format!("# {}\n", "x".repeat(6 << 20));
    [
        ("cycle", cycle, "cycle detected"),
        ("many", of(&many), "the limit of 5242880 bytes of one YAML text"),
        (
            "aliases",
            of(&alias_bomb()),
            "the limit of 10485760 bytes expanded from YAML aliases",
        ),
        (
            "endless",
            of(endless),
            "the limit of 20000000 steps of one template",
        ),
        ("large", of(&large), "larger than the limit of 5242880 bytes"),
    ]
}

#[tokio::test]
async fn projects_without_bound_are_refused_by_their_limit_and_others_keep_their_pace() -> Result<()> {
    let fixture = Fixture::new("bombs", &[]).await?;
    let good = fixture
        .running("good", &[("good", "0")], json!({ "prune": false }))
        .await?;
    let cases = unbounded(&fixture);
    let started = Instant::now();
    for (name, files, _) in &cases {
        fixture.source(name, files).await?;
        let spec = json!({ "timeout": "60s", "prune": false });
        fixture.deploy(name, spec).await?;
    }
    for value in ["1", "2", "3"] {
        let revision = good.offer(&fixture.maps(&[("good", value)])).await?;
        let offered = Instant::now();
        fixture.deployed("good", &revision).await?;
        let took = offered.elapsed();
        ensure!(took < PACE, "another object took {took:?}");
    }
    for (name, _, limit) in &cases {
        let object = fixture.ready(name, "False", "PrepareFailed").await?;
        let message = message_of(&object);
        ensure!(message.contains(limit), "{name}: {message}");
    }
    let took = started.elapsed();
    ensure!(took < Duration::from_secs(60), "it took {took:?}");
    let peak = fixture.controller.usage()?.peak;
    ensure!(peak < MEMORY, "{} MiB", peak >> 20);
    Ok(())
}

#[tokio::test]
async fn fetched_projects_without_bound_are_refused_by_their_limit_and_others_keep_their_pace() -> Result<()>
{
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let shop = Gitops::new("g-bombs").await?;
    shop.push(&[("good", "0")])?;
    shop.create("good", json!({ "interval": "1s" })).await?;
    shop.ready("good", "ReconciliationSucceeded").await?;
    let mut cases = unbounded(&shop.fixture);
    fastrand::Rng::with_seed(seed).shuffle(&mut cases);
    let started = Instant::now();
    for (name, files, _) in &cases {
        let repo = shop.server.repo(name)?;
        let mut change = repo.change("change");
        for (path, text) in files {
            change = change.write(path, text);
        }
        change.push()?;
        let spec = json!({ "timeout": "60s", "source": { "git": { "url": repo.url() } } });
        shop.create(name, spec).await?;
    }
    for value in ["1", "2", "3"] {
        shop.push(&[("good", value)])?;
        let pushed = Instant::now();
        shop.fixture.holds("good", value).await?;
        let took = pushed.elapsed();
        ensure!(took < PACE, "seed {seed}: another object took {took:?}");
    }
    for (name, _, limit) in &cases {
        let status = shop.ready(name, "PrepareFailed").await?;
        let error = status.last_prepare_error.unwrap_or_default();
        ensure!(error.contains(limit), "seed {seed}, {name}: {error}");
    }
    let took = started.elapsed();
    ensure!(took < Duration::from_secs(60), "seed {seed}: it took {took:?}");
    let peak = shop.fixture.controller.usage()?.peak;
    ensure!(peak < MEMORY, "seed {seed}: {} MiB", peak >> 20);
    Ok(())
}
