//! The one compilation of everything that tests need.

use std::{
    ffi::OsString,
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{Artifact, Message, TargetKind};

/// A test binary.
#[derive(Debug, Clone)]
pub(super) struct Suite {
    /// Unique name: the crate, and `it`, `lib` or the name of a program.
    pub(super) name: String,
    pub(super) package: String,
    pub(super) program: PathBuf,
    /// The folder of its crate.
    pub(super) dir: PathBuf,
    /// Expected duration, for the first run.
    pub(super) guess: Duration,
}

pub(super) struct Built {
    pub(super) suites: Vec<Suite>,
    /// The folder of the workspace's programs.
    pub(super) programs: PathBuf,
}

pub(super) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Compiles programs and tests of the whole workspace in one go: a selection of crates would compile their dependencies again, with
/// other features.
pub(super) fn all(root: &Path) -> Result<Built> {
    let mut cargo = Command::new(cargo())
        .args(["build", "--locked", "--workspace", "--all-targets"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = cargo.stdout.take().context("cargo has no output")?;
    let (mut suites, mut programs) = (Vec::new(), None);
    for message in Message::parse_stream(BufReader::new(output)) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read the messages of cargo")?
        else {
            continue;
        };
        if artifact.profile.test {
            suites.extend(suite(&artifact));
        } else if artifact.target.name == "testkit" {
            let program = artifact.executable.as_deref();
            programs = program
                .and_then(|path| Some(path.parent()?.as_std_path().to_owned()))
                .or(programs);
        }
    }
    let status = cargo.wait()?;
    ensure!(status.success(), "the workspace does not compile ({status})");
    let programs = programs.context("cargo built no testkit")?;
    Ok(Built { suites, programs })
}

fn suite(artifact: &Artifact) -> Option<Suite> {
    let program = artifact.executable.as_ref()?;
    let dir = artifact.manifest_path.parent()?;
    let package = dir.file_name()?.to_owned();
    let target = &artifact.target;
    let is = |kind: TargetKind| target.kind.contains(&kind);
    let (name, seconds) = match () {
        () if is(TargetKind::Test) => (target.name.clone(), 60),
        () if is(TargetKind::Lib) => ("lib".to_owned(), 2),
        () => (target.name.clone(), 1),
    };
    Some(Suite {
        name: format!("{package} {name}"),
        package,
        program: program.clone().into_std_path_buf(),
        dir: dir.to_owned().into_std_path_buf(),
        guess: Duration::from_secs(seconds),
    })
}
