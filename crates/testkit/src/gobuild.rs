//! Builds programs from the Go modules in `hack/`, once, into a cache.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::progress::{Progress, say};

/// Part of the cache key: raise it when the way of building changes.
const BUILD_VERSION: &str = "1";

/// Something that one run of `go build` makes.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) module: &'static str,
    pub(crate) packages: &'static [&'static str],
    pub(crate) programs: &'static [&'static str],
    pub(crate) tags: &'static str,
    /// Usual duration of the build on two cores with empty caches, downloads aside.
    pub(crate) seconds: u32,
}

/// The answer of `go mod download -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
}

/// The folder for things that are built once: `WEIR_CACHE_DIR`, or `weir` in the user's cache folder.
pub fn cache_dir() -> Result<PathBuf> {
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    from("WEIR_CACHE_DIR")
        .or_else(|| from("XDG_CACHE_HOME").map(|dir| dir.join("weir")))
        .or_else(|| from("HOME").map(|dir| dir.join(".cache/weir")))
        .context("there is no HOME: set WEIR_CACHE_DIR to a folder for the control plane")
}

pub(crate) fn hack_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack")
}

/// Returns the name of a build: the version of the main module, and a digest of everything that the build depends on.
pub(crate) fn key(main: (&str, &str), files: &[&str]) -> Result<String> {
    let mut digest = Sha256::new();
    digest.update(format!(
        "{BUILD_VERSION} {} {}",
        std::env::consts::OS,
        std::env::consts::ARCH
    ));
    for file in files {
        digest.update(read(&hack_dir().join(file))?);
    }
    let digest = hex::encode(digest.finalize());
    let (module, package) = main;
    Ok(format!(
        "{}-{}",
        version(module, package)?,
        digest.get(..12).unwrap_or_default()
    ))
}

/// The version of a package that the go.mod of a module below `hack/` pins, such as `v1.35.4`.
pub(crate) fn version(module: &str, package: &str) -> Result<String> {
    let path = hack_dir().join(module).join("go.mod");
    let text = read(&path)?;
    let pinned = text.lines().find_map(|line| {
        let mut words = line
            .trim()
            .trim_start_matches("require ")
            .split_ascii_whitespace();
        let named = words.next() == Some(package);
        words.next().filter(|version| named && version.starts_with('v'))
    });
    let pinned = pinned.with_context(|| format!("{} doesn't require {package}", path.display()))?;
    Ok(pinned.to_owned())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

/// Builds, under the lock of the cache folder, the recipes that `missing` returns once the lock is held, and lets `finish`
/// add to it.
pub(crate) fn build(
    cache: &Path,
    dir: &Path,
    link_flags: &str,
    missing: impl Fn() -> Vec<&'static Recipe>,
    finish: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("can't make the folder {}", dir.display()))?;
    let lock = fs::File::create(cache.join("lock"))?;
    if lock.try_lock().is_err() {
        say("another process is building, waiting for it");
        lock.lock()?;
    }
    let missing = missing();
    if !missing.is_empty() {
        ensure!(
            runs("go"),
            "programs that the tests need aren't built yet, and there is no `go` on PATH: install Go 1.26 or newer from \
             https://go.dev/dl"
        );
        say(format_args!("building into {} (once)", dir.display()));
    }
    sweep(cache)?;
    let work = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(cache)?;
    let mut progress = Progress::new(missing.iter().copied());
    for recipe in missing {
        compile(
            recipe,
            &hack_dir().join(recipe.module),
            link_flags,
            work.path(),
            &mut progress,
        )?;
        for program in recipe.programs {
            fs::rename(work.path().join(program), dir.join(program))?;
        }
    }
    finish(work.path())
}

/// Finds the one program of a recipe in its own folder of the cache, or builds it. `package` is the one whose version counts.
pub(crate) fn program(folder: &str, recipe: &'static Recipe, package: &str) -> Result<PathBuf> {
    let (cache, program) = cached_path(folder, recipe, package)?;
    if !program.exists() {
        let dir = program.parent().context("the program has no folder")?;
        let missing = || Vec::from_iter((!program.exists()).then_some(recipe));
        build(&cache, dir, "-s -w", missing, |_| Ok(()))?;
    }
    Ok(program)
}

/// Returns the folder of the cache and the path in it that the one program of a recipe has, whether it is built or not.
pub(crate) fn cached_path(
    folder: &str,
    recipe: &'static Recipe,
    package: &str,
) -> Result<(PathBuf, PathBuf)> {
    let module = recipe.module;
    let own = recipe
        .packages
        .iter()
        .filter_map(|package| package.strip_prefix("./"));
    let own = own.map(|package| format!("{module}/{package}/main.go"));
    let pins = [format!("{module}/go.mod"), format!("{module}/go.sum")];
    let pins: Vec<String> = pins.into_iter().chain(own).collect();
    let cache = cache_dir()?.join(folder);
    let pins: Vec<&str> = pins.iter().map(String::as_str).collect();
    let dir = cache.join(key((module, package), &pins)?);
    let name = recipe.programs.first().context("the recipe makes nothing")?;
    Ok((cache, dir.join(name)))
}

const UNFINISHED: &str = "building-";

/// Removes unfinished builds, which were killed: the lock is held, so no build goes on.
fn sweep(cache: &Path) -> Result<()> {
    for entry in fs::read_dir(cache)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Runs `go build` in the folder of a module, saying now and then that it still does.
pub(crate) fn compile(
    recipe: &Recipe,
    module: &Path,
    link_flags: &str,
    out: &Path,
    progress: &mut Progress,
) -> Result<()> {
    let names = recipe.programs.join(" and ");
    say(format_args!(
        "building {names}, {}",
        progress.left(Duration::ZERO)
    ));
    let log = out.join("go.log");
    let output = fs::File::create(&log)?;
    let mut child = go(module)
        .args([
            "build",
            "-trimpath",
            "-ldflags",
            link_flags,
            "-tags",
            recipe.tags,
            "-o",
        ])
        .arg(format!("{}/", out.display()))
        .args(recipe.packages)
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let start = Instant::now();
    let mut reported = start;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if reported.elapsed() > Duration::from_secs(15) {
            reported = Instant::now();
            say(format_args!(
                "still building {names}, {}",
                progress.left(start.elapsed())
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    progress.finish(start.elapsed());
    let said = fs::read_to_string(&log).unwrap_or_default();
    ensure!(
        status.success(),
        "`go build` of {names} failed ({status}):\n{}",
        said.trim_end()
    );
    Ok(())
}

/// The go command in a module, undisturbed by settings of the user.
pub(crate) fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .stdin(Stdio::null());
    command
}

/// Returns the folder of the Go module cache with the sources of a package that a module below `hack/` requires; downloads them if needed.
pub(crate) fn downloaded(module: &str, package: &str) -> Result<PathBuf> {
    let output = go(&hack_dir().join(module))
        .args(["mod", "download", "-json", package])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{package} can't be downloaded: {said}");
    let found: Downloaded = serde_json::from_slice(&output.stdout)?;
    Ok(found.dir)
}

/// Copies the files of a folder, with the rights of new files: files of the module cache are read-only.
pub(crate) fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("can't read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_files(&entry.path(), &target)?;
        } else {
            fs::write(&target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_contains_the_pinned_version() {
        let key =
            key(("controlplane", "k8s.io/kubernetes"), &["controlplane/go.sum"]).expect("hack/ is there");
        let (version, digest) = key.rsplit_once('-').expect("has a version and a digest");
        assert!(
            version.starts_with("v1.") && version.split('.').count() == 3 && digest.len() == 12,
            "{key}"
        );
        assert!(
            version.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'),
            "{key}"
        );
    }

    #[test]
    fn key_error_names_an_unpinned_package() {
        let error = version("kwok", "example.com/nothing")
            .expect_err("isn't pinned")
            .to_string();
        assert!(
            error.contains("go.mod doesn't require example.com/nothing"),
            "{error}"
        );
    }
}
