//! kubectl, as people use it.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::ControlPlane;

impl ControlPlane {
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        self.kubectl_with(args, "").await
    }

    pub async fn kubectl_with(&self, args: &[&str], input: &str) -> Result<String> {
        let mut child = Command::new(&self.kubectl)
            .args(args)
            .env("KUBECONFIG", &self.kubeconfig)
            // Its cache of the discovery belongs to this plane.
            .env("HOME", self.dir().join("tmp"))
            // It ends before its garbage matters.
            .env("GOGC", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("can't run {}", self.kubectl.display()))?;
        let mut stdin = child.stdin.take().context("kubectl has no standard input")?;
        let write = async {
            // It may end without reading everything; then its exit status tells.
            let _ = stdin.write_all(input.as_bytes()).await;
            drop(stdin);
        };
        let ((), output) = tokio::join!(write, child.wait_with_output());
        let output = output?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "`kubectl {}` failed: {}",
            args.join(" "),
            complaint.trim_end()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub async fn apply_yaml(&self, yaml: &str) -> Result<()> {
        self.kubectl_with(&["apply", "--server-side", "-f", "-"], yaml)
            .await
            .map(|_| ())
    }
}
