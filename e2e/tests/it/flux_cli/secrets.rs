//! Secrets for Git over SSH, which OpenSSH and the source-controller take.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::TestCluster;
use testkit::{GitServer, SshKeyPair, SshServer};

use super::{Client, programs};

/// Writes each key of a Secret to a file.
fn write_files(secret: &str, dir: &Path) -> Result<()> {
    let value: serde_json::Value = serde_json::from_str(secret)?;
    let data = value["stringData"].as_object().context("no data")?;
    for (name, content) in data {
        let path = dir.join(name);
        fs::write(&path, content.as_str().context("not a string")?)?;
        // ssh refuses keys that others may read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}

fn printed(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {messages}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Prints a manifest as JSON.
async fn json(client: &Client<'_>, manifest: &str) -> Result<String> {
    let words = ["create", "--dry-run=client", "-o", "json", "-f", "-"];
    client.cluster.plane.kubectl_with(&words, manifest).await
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_secrets_for_ssh_are_taken_by_openssh() -> Result<()> {
    crate::init();
    let cluster = TestCluster::bare().await?;
    let git = GitServer::start()?;
    let repo = git.repo("app")?;
    let commit = repo.commit("first", &[("a", "b")])?;
    let key = SshKeyPair::generate("-t ed25519", "")?;
    let server = SshServer::start(&git, &[&key])?;
    let url = server.url(&repo);
    for program in programs("of Secrets for SSH")? {
        let client = Client {
            program,
            cluster: &cluster,
        };
        let dir = tempfile::tempdir()?;
        let create = format!("create secret git auth --url={url} --export");
        let generated = client.run_quietly(&create).await?;
        write_files(&json(&client, &generated).await?, dir.path())?;
        let mut derive = Command::new("ssh-keygen");
        let public = printed(derive.args(["-y", "-f"]).arg(dir.path().join("identity")))?;
        assert_eq!(public, fs::read_to_string(dir.path().join("identity.pub"))?);

        let file = dir.path().join("key");
        fs::write(&file, &key.private)?;
        let given = format!("{create} --private-key-file={}", file.display());
        let given = client.run_quietly(&given).await?;
        write_files(&json(&client, &given).await?, dir.path())?;
        let path = |name: &str| dir.path().join(name).display().to_string();
        let ssh = format!(
            "ssh -F none -o StrictHostKeyChecking=yes -o UserKnownHostsFile={} -o IdentitiesOnly=yes -i {}",
            path("known_hosts"),
            path("identity")
        );
        let mut list = Command::new("git");
        let refs = printed(list.args(["ls-remote", &url, "main"]).env("GIT_SSH_COMMAND", ssh))?;
        ensure!(refs.starts_with(&commit), "{refs}");
    }
    cluster.stop().await
}
