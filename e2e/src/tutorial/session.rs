//! A shell of a reader, with a home of its own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use tokio::process::Command;

/// Timeout of a block of commands.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Continues where the block before ended: with its variables, in its folder.
const BEGIN: &str = "exec 2>&1\nset -eu\n[ ! -f \"$SESSION\" ] || . \"$SESSION\"\n";
const END: &str = "\nexport -p > \"$SESSION\"\nprintf \"cd '%s'\\n\" \"$(pwd)\" >> \"$SESSION\"\n";

#[derive(Debug)]
pub struct Session {
    dir: TempDir,
}

impl Session {
    /// Creates a home with these programs.
    pub fn new(programs: &[(&str, &Path)]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("weir-tutorial-").tempdir()?;
        let this = Self { dir };
        for folder in ["bin", "home"] {
            fs::create_dir(this.path(folder))?;
        }
        for (name, program) in programs {
            symlink(program, this.path("bin").join(name))
                .with_context(|| format!("can't link {}", program.display()))?;
        }
        let settings = "[user]\n\tname = Reader\n\temail = reader@example.com\n[credential]\n\thelper = store\n\tuseHttpPath = true\n";
        fs::write(this.path("home/.gitconfig"), settings)?;
        Ok(this)
    }

    /// Lets `git` use repositories of a server with these users and tokens.
    pub fn log_in(&self, origin: &str, repositories: &[(&str, &str, &str)]) -> Result<()> {
        let host = origin.trim_start_matches("https://");
        let line =
            |(name, user, token): &(&str, &str, &str)| format!("https://{user}:{token}@{host}/{name}.git\n");
        let lines: String = repositories.iter().map(line).collect();
        Ok(fs::write(self.path("home/.git-credentials"), lines)?)
    }

    /// File for the certificates that all programs trust.
    #[must_use]
    pub fn certificates(&self) -> PathBuf {
        self.path("certificates.pem")
    }

    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs commands with another kubeconfig, as [`Session::run`] does.
    pub async fn run_as(&self, kubeconfig: &Path, commands: &str) -> Result<(bool, String)> {
        let commands = format!("(\nexport KUBECONFIG='{}'\n{commands}\n)", kubeconfig.display());
        self.run(&commands).await
    }

    /// Runs commands, each of which must succeed, after the ones before; returns true if they did, and all that they printed.
    pub async fn run(&self, commands: &str) -> Result<(bool, String)> {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-c", &format!("{BEGIN}{commands}{END}")])
            .current_dir(self.path("home"))
            .env_clear()
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("HOME", self.path("home"))
            .env("KUBECONFIG", self.kubeconfig())
            .env("SESSION", self.path("session"))
            .env("SSL_CERT_FILE", self.certificates())
            .env("GIT_SSL_CAINFO", self.certificates())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(TIMEOUT, output).await;
        let output = output.with_context(|| format!("these commands don't end:\n{commands}"))??;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.success(), printed))
    }
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[tokio::test]
    async fn commands_go_on_in_the_folder_and_with_the_variables_of_those_before() -> Result<()> {
        let session = Session::new(&[])?;
        let (is_done, printed) = session.run("export A='b c'\nmkdir d\ncd d\necho e >&2\n").await?;
        ensure!(is_done && printed == "e\n", "{printed}");
        let (is_done, printed) = session.run("echo \"$A\"; basename \"$PWD\"\n").await?;
        ensure!(is_done && printed == "b c\nd\n", "{printed}");
        let (is_done, printed) = session.run("false\necho f\n").await?;
        ensure!(!is_done && printed.is_empty(), "{printed}");
        Ok(())
    }
}
