//! Completions and manual pages, which the command line program itself prints.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::Files;

/// Shells and the names under which they look for completions.
const SHELLS: &[(&str, &str)] = &[
    ("bash", "completions/bash/weir"),
    ("elvish", "completions/elvish/weir.elv"),
    ("fish", "completions/fish/weir.fish"),
    ("powershell", "completions/powershell/_weir.ps1"),
    ("zsh", "completions/zsh/_weir"),
];

/// Adds the completions of all shells, and the manual pages.
pub(crate) fn add(files: &mut Files, weir: &Path) -> Result<()> {
    let home = tempfile::tempdir()?;
    for (shell, path) in SHELLS {
        files.add(path, run(weir, home.path(), &["completion", shell])?);
    }
    let pages = home.path().join("man");
    let dir = pages
        .to_str()
        .context("the folder of temporary files is not UTF-8")?;
    run(weir, home.path(), &["man", dir])?;
    for entry in fs::read_dir(&pages).context("there are no manual pages")? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().context("the name of a manual page is not UTF-8")?;
        files.add(&format!("man/man1/{name}"), fs::read(entry.path())?);
    }
    Ok(())
}

/// Runs the program without the settings of the user, and returns its output.
fn run(weir: &Path, home: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new(weir);
    let output = command.args(args).env_clear().env("HOME", home).output();
    let output = output.with_context(|| format!("cannot run {}", weir.display()))?;
    ensure!(
        output.status.success(),
        "{} {} failed: {}",
        weir.display(),
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(output.stdout)
}
