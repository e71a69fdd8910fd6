//! One repository of the server.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{Commit, Fault, Inner, Request};

/// The date of the first commit, 2026-01-01; each further one is a minute later.
const FIRST_DATE: i64 = 1_767_225_600;

/// A repository on the server. Clones are the same repository.
#[derive(Debug, Clone)]
pub struct Repo {
    inner: Arc<Inner>,
    name: String,
}

impl Repo {
    pub(super) fn create(inner: &Arc<Inner>, name: &str) -> Result<Self> {
        let this = Self {
            inner: Arc::clone(inner),
            name: name.to_owned(),
        };
        let path = this.path();
        ensure!(!path.exists(), "there is a repository {name} already");
        std::fs::create_dir_all(&path)?;
        this.git(&["init", "--quiet", "--bare", "--initial-branch=main"])?;
        for (key, value) in [
            ("http.receivepack", "true"),
            // As on the servers of this world: any commit that a ref leads to may be asked for.
            ("uploadpack.allowReachableSHA1InWant", "true"),
            ("uploadpack.allowFilter", "true"),
        ] {
            this.git(&["config", key, value])?;
        }
        inner
            .behaviours
            .lock()
            .insert(name.to_owned(), super::Behaviour::default());
        Ok(this)
    }

    pub(super) fn lend(inner: &Arc<Inner>, name: &str, path: &Path) -> Result<Self> {
        let this = Self {
            inner: Arc::clone(inner),
            name: name.to_owned(),
        };
        std::os::unix::fs::symlink(path, this.path())
            .with_context(|| format!("can't serve {} as {name}", path.display()))?;
        inner
            .behaviours
            .lock()
            .insert(name.to_owned(), super::Behaviour::default());
        Ok(this)
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.inner.root.path().join(format!("{}.git", self.name))
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}.git", self.inner.origin.lock(), self.name)
    }

    /// Writes these files (path and content) in one commit on `main`, and returns its id.
    pub fn commit(&self, message: &str, files: &[(&str, &str)]) -> Result<String> {
        files
            .iter()
            .fold(self.change(message), |commit, (path, content)| {
                commit.write(path, content)
            })
            .push()
    }

    pub fn change(&self, message: &str) -> Commit {
        Commit::new(self, message)
    }

    /// Makes or moves a branch, by force where need be.
    pub fn branch(&self, name: &str, to: &str) -> Result<()> {
        self.set_ref(&format!("refs/heads/{name}"), to)
    }

    pub fn tag(&self, name: &str, to: &str) -> Result<()> {
        self.set_ref(&format!("refs/tags/{name}"), to)
    }

    /// Makes or moves an annotated tag and returns the id of the tag object.
    pub fn annotated_tag(&self, name: &str, to: &str, message: &str) -> Result<String> {
        let date = format!("{} +0000", self.next_date());
        let tag = [
            "-c",
            "user.name=Test Kit",
            "-c",
            "user.email=testkit@example.com",
            "tag",
            "-f",
            "-a",
            "-m",
            message,
        ];
        let mut command = self.command(&tag);
        self.run(command.args([name, to]).env("GIT_COMMITTER_DATE", date), &[])?;
        self.rev(&format!("refs/tags/{name}"))
    }

    pub fn set_ref(&self, name: &str, to: &str) -> Result<()> {
        self.git(&["update-ref", name, to]).map(|_| ())
    }

    pub fn delete_ref(&self, name: &str) -> Result<()> {
        self.git(&["update-ref", "-d", name]).map(|_| ())
    }

    /// Returns the object ID of a branch, tag or other revision.
    pub fn rev(&self, expression: &str) -> Result<String> {
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", expression])
            .map(|id| id.trim().to_owned())
            .with_context(|| format!("{} has no {expression}", self.name))
    }

    pub fn require_basic_auth(&self, user: &str, password: &str) {
        self.behave(|behaviour| behaviour.basic_auth = Some((user.to_owned(), password.to_owned())));
    }

    /// Sets the fault of all later requests.
    pub fn fail(&self, fault: Fault) {
        self.behave(|behaviour| behaviour.fault = Some(fault));
    }

    pub fn delay(&self, delay: Duration) {
        self.behave(|behaviour| behaviour.delay = delay);
    }

    /// Answers as servers that are old and have no settings do: in protocol 0, to requests for whole histories of refs only.
    pub fn grow_old(&self) -> Result<()> {
        self.behave(|behaviour| behaviour.is_old = true);
        for key in ["uploadpack.allowReachableSHA1InWant", "uploadpack.allowFilter"] {
            self.git(&["config", key, "false"])?;
        }
        Ok(())
    }

    /// Ends faults and delays; requests that hang go on hanging.
    pub fn heal(&self) {
        self.behave(|behaviour| {
            behaviour.fault = None;
            behaviour.delay = Duration::ZERO;
        });
    }

    fn behave(&self, change: impl FnOnce(&mut super::Behaviour)) {
        change(self.inner.behaviours.lock().entry(self.name.clone()).or_default());
    }

    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.inner
            .requests
            .lock()
            .iter()
            .filter(|request| request.repo == self.name)
            .cloned()
            .collect()
    }

    /// Runs git in the bare repository and returns its output.
    pub fn git(&self, args: &[&str]) -> Result<String> {
        self.git_with(args, &[])
    }

    pub(super) fn git_with(&self, args: &[&str], input: &[u8]) -> Result<String> {
        self.run(&mut self.command(args), input)
    }

    pub(super) fn next_date(&self) -> i64 {
        FIRST_DATE + 60 * i64::from(self.inner.commits.fetch_add(1, Ordering::Relaxed))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = git(&self.path());
        command.args(args);
        command
    }

    fn run(&self, command: &mut Command, input: &[u8]) -> Result<String> {
        run(command, input).with_context(|| format!("in the repository {}", self.name))
    }
}

/// A git command in a folder that obeys no settings of this machine or user and never asks for anything.
pub(crate) fn git(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .env_remove("GIT_DIR");
    command
}

fn run(command: &mut Command, input: &[u8]) -> Result<String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().context("git has no standard input")?;
    let output = std::thread::scope(|scope| {
        // A git that fails early doesn't read everything; its complaint says more than the broken pipe.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output()
    })?;
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`git {}` failed: {}",
        args.join(" "),
        complaint.trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
