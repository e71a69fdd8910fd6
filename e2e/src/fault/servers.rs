//! Fifty bad Git servers at once beside a good one.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use api::source::GitRepository;
use kube::Api;
use serde_json::json;
use testkit::{Fault, eventually, manifest, wait_for};

use crate::{
    cluster::{TIMEOUT, TestCluster, revision_of},
    report::{Report, seconds},
};

/// Namespace of the bad repositories: fetches of a namespace share four permits.
const NAMESPACE: &str = "bad";
const BAD: usize = 50;
/// Time from a push to the artifact of the good repository: its interval and its work.
const PACE: Duration = Duration::from_secs(10);

/// Follows repositories whose servers fail in every way beside one that works.
pub async fn fetches_keep_their_pace(report: &mut Report) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    cluster.plane.namespace_named(NAMESPACE).await?;
    let bad: Api<GitRepository> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let good = cluster.git.repo("good")?;
    let first = good.commit("first", &[("a", "0")])?;
    cluster.apply_repository("good", &good.url(), "1s").await?;
    cluster.fetched("good", &first).await?;
    let other = cluster.git.repo("other")?;
    let mut repos: Vec<(testkit::Repo, String)> = Vec::new();
    let faults = [
        Fault::Status(401),
        Fault::Status(500),
        Fault::Hang,
        Fault::HangMidPack,
        Fault::CutMidPack,
        Fault::Cut,
        Fault::Redirect(other.url(), 302),
        Fault::Page("<html>".to_owned()),
    ];
    report
        .step("a repository keeps its pace beside 50 bad ones", async {
            for number in 0..BAD {
                let name = format!("bad-{number}");
                let repo = cluster.git.repo(&name)?;
                let commit = repo.commit("first", &[("a", "b")])?;
                repo.fail(faults[number % faults.len()].clone());
                let source = manifest::git_repository(NAMESPACE, &name, &repo.url());
                cluster
                    .plane
                    .apply(source.spec(json!({"interval": "1s"})))
                    .await?;
                repos.push((repo, commit));
            }
            let mut longest = Duration::ZERO;
            for number in 1..6 {
                let commit = good.commit("next", &[("a", &number.to_string())])?;
                let pushed = Instant::now();
                cluster.fetched("good", &commit).await?;
                longest = longest.max(pushed.elapsed());
            }
            ensure!(longest < PACE, "an artifact took {longest:?}");
            Ok(format!("{} at most", seconds(longest)))
        })
        .await?;
    report
        .step("each bad one says what is wrong, and mends", async {
            for number in 0..BAD {
                let (name, fault) = (format!("bad-{number}"), &faults[number % faults.len()]);
                let redirected = matches!(fault, Fault::Redirect(..));
                eventually(&format!("{name} ({fault:?}) to fail"), TIMEOUT, || async {
                    let repository = bad.get(&name).await?;
                    let conditions = repository
                        .status
                        .map(|status| status.conditions)
                        .unwrap_or_default();
                    ensure!(
                        api::conditions::is_false(&conditions, "Ready") || redirected,
                        "{conditions:?}"
                    );
                    Ok(())
                })
                .await?;
            }
            for (repo, _) in &repos {
                repo.heal();
            }
            for (number, (_, commit)) in repos.iter().enumerate() {
                let name = format!("bad-{number}");
                wait_for(&bad, &name, "its artifact", 2 * TIMEOUT, |repository| {
                    revision_of(repository).is_some_and(|revision| revision.ends_with(commit))
                })
                .await?;
            }
            Ok(format!("{BAD} repositories"))
        })
        .await?;
    cluster.stop().await
}
