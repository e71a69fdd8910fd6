//! Programs in Python with pinned packages, which are installed once, into a cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::{
    gobuild::{cache_dir, hack_dir},
    progress::say,
};

/// Name of the file that marks a complete installation.
const DONE: &str = "installed";

#[derive(Debug, Clone)]
pub struct Python {
    pub interpreter: PathBuf,
    pub program: PathBuf,
}

/// Finds `oracle.py` of a folder below `hack/` with the packages that its requirements.txt pins, or installs those.
pub(crate) fn program(folder: &str) -> Result<Python> {
    let source = hack_dir().join(folder);
    let pins = source.join("requirements.txt");
    let text = fs::read(&pins).with_context(|| format!("can't read {}", pins.display()))?;
    let digest = hex::encode(Sha256::digest(text));
    let cache = cache_dir()?.join("python");
    let dir = cache.join(format!("{folder}-{}", digest.get(..12).unwrap_or_default()));
    if !dir.join(DONE).exists() {
        fs::create_dir_all(&cache).with_context(|| format!("can't make the folder {}", cache.display()))?;
        let lock = fs::File::create(cache.join("lock"))?;
        lock.lock()?;
        if !dir.join(DONE).exists() {
            install(&dir, &pins)?;
        }
    }
    Ok(Python {
        interpreter: dir.join("bin/python"),
        program: source.join("oracle.py"),
    })
}

/// Installs into the final folder, since a virtual environment can't be moved.
fn install(dir: &Path, pins: &Path) -> Result<()> {
    say(format_args!(
        "installing the packages of {} (once)",
        pins.display()
    ));
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(dir))
        .context("Python 3.10 or newer with venv and pip is needed")?;
    let mut pip = Command::new(dir.join("bin/python"));
    run(pip
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
        ])
        .arg(pins))?;
    fs::write(dir.join(DONE), "")?;
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", said.trim_end());
    Ok(())
}
