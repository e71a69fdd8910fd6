//! The first artifact of repositories of several sizes, beside `git clone` and `git archive`.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::{Repo, wait_for};

use super::{Cpu, NAME, ended_children, generated};
use crate::{
    bench::{
        measure::{mebibytes, print},
        pairs::{Load, project},
    },
    cluster::{NAMESPACE, TestCluster, revision_of},
};

const TIMEOUT: Duration = Duration::from_secs(600);

struct First {
    time: Duration,
    /// CPU time of the client, and of the Git server for it.
    cpu: [Duration; 2],
    bytes: u64,
}

pub(super) async fn measure() -> Result<String> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start(NAME, &[]).await?;
    let one = Load::kluctl(1, 1);
    let small = project::repository(&cluster, one, 0)?;
    let files = lend(&cluster, "files", &generated::files()?)?;
    let history = lend(&cluster, "history", &generated::history()?)?;
    let mut text = "\nfirst artifact, beside git clone --depth 1 and git archive | gzip\n".to_owned();
    for (name, title, repo) in [
        ("small", "a small repository", &small),
        ("files", "20,000 files of 100 MB", &files),
        ("history", "32 MiB with a history of 1 GiB", &history),
    ] {
        print(&format!("first artifact: {title}"));
        // The peak of memory is this repository's alone.
        restart(&mut cluster).await?;
        let ours = fetch(&cluster, name, repo).await?;
        let peak = cluster.controller(NAME)?.usage()?.peak;
        let url = repo.url();
        let theirs = tokio::task::spawn_blocking(move || clone(&url)).await??;
        let _ = writeln!(
            text,
            "  {title}\n    weir {}, peak memory {:.1} MiB\n    git  {}",
            line(&ours),
            mebibytes(peak),
            line(&theirs)
        );
    }
    cluster.stop().await?;
    Ok(text)
}

fn line(first: &First) -> String {
    let [client, server] = first.cpu;
    format!(
        "{:>6.2} s, CPU {:>5.2} s and {:>5.2} s of the Git server, {:.1} MiB of archive",
        first.time.as_secs_f64(),
        client.as_secs_f64(),
        server.as_secs_f64(),
        mebibytes(first.bytes),
    )
}

fn lend(cluster: &TestCluster, name: &str, path: &Path) -> Result<Repo> {
    generated::warm(path)?;
    cluster.git.lend(name, path)
}

async fn restart(cluster: &mut TestCluster) -> Result<()> {
    let controller = cluster.controllers.iter_mut().find(|one| one.name() == NAME);
    let controller = controller.context("it was not started")?;
    controller.terminate().await?;
    controller.restart().await
}

async fn fetch(cluster: &TestCluster, name: &str, repo: &Repo) -> Result<First> {
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"interval": "1h", "timeout": "10m", "url": repo.url(), "ref": {"branch": "main"}},
    });
    let before = Cpu::read(cluster)?;
    let began = Instant::now();
    cluster.plane.apply(object).await?;
    let fetched = wait_for(&cluster.repositories(), name, "the artifact", TIMEOUT, |object| {
        revision_of(object).is_some()
    })
    .await?;
    let time = began.elapsed();
    let cpu = Cpu::read(cluster)?.since(before);
    let artifact = fetched.status.and_then(|status| status.artifact);
    let size = artifact.and_then(|artifact| artifact.size).unwrap_or_default();
    Ok(First {
        time,
        cpu: [cpu.controller, cpu.git],
        bytes: u64::try_from(size)?,
    })
}

/// Clones and archives with Git itself.
fn clone(url: &str) -> Result<First> {
    let dir = tempfile::tempdir()?;
    let before = ended_children()?;
    let began = Instant::now();
    let done = Command::new("sh")
        .args([
            "-ec",
            "git clone -q --depth 1 \"$0\" clone; git -C clone archive HEAD | gzip -n >archive.tar.gz; times",
            url,
        ])
        .current_dir(dir.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    let time = began.elapsed();
    ensure!(done.status.success(), "git clone or git archive failed");
    let client = times(&String::from_utf8_lossy(&done.stdout)).context("the shell printed no times")?;
    let all = ended_children()?.saturating_sub(before);
    Ok(First {
        time,
        cpu: [client, all.saturating_sub(client)],
        bytes: fs::metadata(dir.path().join("archive.tar.gz"))?.len(),
    })
}

/// Reads the time of its children that a shell prints: the second line, such as `0m1.50s 1m0.25s` of user and system.
fn times(printed: &str) -> Option<Duration> {
    let children = printed.lines().nth(1)?;
    let time = |text: &str| {
        let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
        let minutes = Duration::from_secs(minutes.parse::<u64>().ok()?.checked_mul(60)?);
        Some(minutes + Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?)
    };
    children.split_ascii_whitespace().map(time).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_those_of_user_and_system() {
        let printed = "0m0.000000s 0m0.010000s\n0m1.500000s 1m0.250000s\n";
        assert_eq!(times(printed), Some(Duration::from_millis(61_750)));
        assert_eq!(times("0m0.01s 0m0.00s\n"), None);
    }
}
