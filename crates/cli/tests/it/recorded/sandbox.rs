//! Runs the binary in a copy of a recorded project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;
use yaml::Value;

use super::expect::strings;

const TIMEOUT: Duration = Duration::from_secs(400);

/// A temporary directory with a copy of a project, an empty home directory, and the environment of a case.
pub(crate) struct Sandbox {
    dir: TempDir,
    environment: Vec<(String, String)>,
    pub(crate) kubeconfig: Option<PathBuf>,
}

pub(crate) struct Finished {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Returns the error that ended the program: the text after the last `Error: ` that begins a line.
    pub(crate) fn error(&self) -> &str {
        let after = self.stderr.rsplit_once("\nError: ").map(|(_, error)| error);
        let error = after.or_else(|| self.stderr.strip_prefix("Error: "));
        error.unwrap_or(&self.stderr).trim_end()
    }
}

impl Sandbox {
    pub(crate) fn new(folder: &Path, case: &Value) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        copy(&folder.join("project"), &dir.path().join("project"))?;
        fs::create_dir_all(dir.path().join("home"))?;
        let environment = case.get("env").and_then(Value::as_map).into_iter().flatten();
        let environment = environment.map(|(name, value)| {
            let value = value.as_str().context("environment variables must be strings")?;
            Ok((name.to_owned(), value.to_owned()))
        });
        Ok(Self {
            environment: environment.collect::<Result<_>>()?,
            dir,
            kubeconfig: None,
        })
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns recorded arguments with the path of the copy.
    pub(crate) fn args(&self, recorded: &Value) -> Vec<String> {
        let project = self.project().display().to_string();
        let args = strings(Some(recorded)).map(|word| word.replace("<PROJECT>", &project));
        args.collect()
    }

    /// Runs the binary in the copy of the project, with nothing but the recorded environment.
    pub(crate) async fn run(&self, args: &[String]) -> Result<Finished> {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .args(args)
            .current_dir(self.project())
            .env_clear()
            .env("TZ", "UTC")
            .env("HOME", self.dir.path().join("home"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let ended = tokio::time::timeout(TIMEOUT, command.output()).await;
        let output = ended.with_context(|| format!("{args:?} did not end within {TIMEOUT:?}"))??;
        Ok(Finished {
            success: match output.status.code() {
                Some(0) => true,
                Some(1) => false,
                other => anyhow::bail!("{args:?} ended with exit code {other:?}"),
            },
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
