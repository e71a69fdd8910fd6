//! Small inputs that would need much memory.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::json;
use testkit::{Page, Repo, WebServer, manifest};

use super::tenants::{ATTACKER, Tenants};

/// Alerts with large expressions.
const ALERTS: usize = 50;
/// Objects that each attack is repeated with, at the same time.
const TIMES: usize = 8;

/// Applies repositories, servers and Alerts that are small and need much memory, and waits until each is refused. The
/// servers belong to the test and live until it ends.
pub async fn small_inputs(tenants: &Tenants) -> Result<String> {
    let repositories = [
        ("long-name", long_names(tenants).await?, json!({"branch": "main"})),
        ("refs", refs(tenants)?, json!({"semver": "*"})),
        ("zeros", zeros(tenants)?, json!({"branch": "main"})),
    ];
    for (name, repo, reference) in &repositories {
        for number in 0..TIMES {
            let source = manifest::git_repository(ATTACKER, &format!("{name}-{number}"), &repo.url());
            tenants
                .apply(
                    source
                        .spec(json!({"interval": "10m", "ref": {"branch": null}}))
                        .spec(json!({"ref": reference})),
                )
                .await?;
        }
    }
    super::inputs::locked_keys(tenants).await?;
    let _ranges = super::inputs::long_ranges(tenants).await?;
    for number in 0..ALERTS {
        let expression = format!("{number}\\pL{{12}}");
        let alert = manifest::alert(
            ATTACKER,
            &format!("large-{number}"),
            "sink",
            &["GitRepository", "KluctlDeployment"],
        );
        let lists = json!({"inclusionList": [expression], "exclusionList": [expression]});
        tenants.apply(alert.spec(lists)).await?;
    }
    let server = endless(tenants).await?;
    for (name, words) in [
        ("long-name", "longer than 255 bytes"),
        ("refs", "bytes of a list of refs"),
        ("zeros", "bytes of a file"),
    ] {
        for number in 0..TIMES {
            tenants
                .failed("GitRepository", &format!("{name}-{number}"), |_, message| {
                    message.contains(words)
                })
                .await?;
        }
    }
    let too_large = |_: &str, message: &str| message.contains("too large");
    tenants.failed("KluctlDeployment", "endless", too_large).await?;
    super::inputs::small_inputs_refused(tenants).await?;
    super::inputs::identity_of_controller(tenants).await?;
    drop(server);
    // They would keep the attacker's own fetches waiting.
    for (name, repo, _) in &repositories {
        for number in 0..TIMES {
            let source = manifest::git_repository(ATTACKER, &format!("{name}-{number}"), &repo.url());
            tenants.apply(source.spec(json!({"suspend": true}))).await?;
        }
    }
    Ok(format!(
        "{TIMES} times four repositories, {ALERTS} Alerts, an API server, a locked key"
    ))
}

/// A pack of some kilobytes with 10,000 entries below a name of 1 MiB.
async fn long_names(tenants: &Tenants) -> Result<Repo> {
    let repo = tenants.cluster.git.repo("attack-long-name")?;
    repo.commit("first", &[("a", "a")])?;
    let blob = repo.git(&["rev-parse", "main:a"])?;
    let entries = (0..10_000).map(|number| ("100644", format!("{number:05}"), blob.trim().to_owned()));
    let below = tree(&repo, entries)?;
    let root = tree(&repo, [("40000", "y".repeat(1 << 20), below)].into_iter())?;
    let commit = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "commit-tree",
        "-m",
        "m",
        &root,
    ];
    let commit = repo.git(&commit)?;
    repo.set_ref("refs/heads/main", commit.trim())?;
    Ok(repo)
}

/// Writes a tree that git itself would refuse.
fn tree(repo: &Repo, entries: impl Iterator<Item = (&'static str, String, String)>) -> Result<String> {
    let mut file = tempfile::NamedTempFile::new()?;
    for (mode, name, id) in entries {
        write!(file, "{mode} {name}\0")?;
        for at in (0..40).step_by(2) {
            let byte = u8::from_str_radix(id.get(at..at + 2).context("a hash")?, 16)?;
            file.write_all(&[byte])?;
        }
    }
    file.flush()?;
    let path = file.path().to_string_lossy().into_owned();
    let id = repo.git(&["hash-object", "-t", "tree", "--literally", "-w", &path])?;
    Ok(id.trim().to_owned())
}

/// A repository with more tags than a list may have.
fn refs(tenants: &Tenants) -> Result<Repo> {
    let repo = tenants.cluster.git.repo("attack-refs")?;
    let commit = repo.commit("first", &[("a", "a")])?;
    let packed: String = (0..150_000)
        .map(|number| format!("{commit} refs/tags/{}{number:06}\n", "long-".repeat(20)))
        .collect();
    std::fs::write(repo.path().join("packed-refs"), packed)?;
    Ok(repo)
}

/// A pack of some hundred kilobytes with a file of 120 MiB.
fn zeros(tenants: &Tenants) -> Result<Repo> {
    let repo = tenants.cluster.git.repo("attack-zeros")?;
    repo.change("zeros").write("zeros", vec![0; 120 << 20]).push()?;
    Ok(repo)
}

/// A deployment to an API server whose answers have no end.
async fn endless(tenants: &Tenants) -> Result<WebServer> {
    let server = WebServer::start()?;
    for path in ["/api", "/apis", "/version"] {
        server.page(path, Page::Endless(Bytes::from(vec![b'['; 1 << 16])));
    }
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster: {{server: '{}'}}\nusers:\n- name: u\n  user: {{token: t}}\n",
        server.url("")
    );
    tenants
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "endless", "namespace": ATTACKER},
            "stringData": {"value": text}}))
        .await?;
    super::attacks::deploy_with(
        tenants,
        "endless",
        json!({"kubeConfig": {"secretRef": {"name": "endless"}}, "timeout": "1m"}),
    )
    .await?;
    Ok(server)
}
