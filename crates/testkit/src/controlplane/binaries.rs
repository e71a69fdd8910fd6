//! The programs of the control plane: found, or built once from the Go modules in `hack/` and kept in a cache.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::progress::say;

/// Something that one run of `go build` makes.
struct Recipe {
    /// The folder below `hack/` with its go.mod.
    module: &'static str,
    packages: &'static [&'static str],
    programs: &'static [&'static str],
    /// How long that takes on two cores with nothing cached.
    usually: &'static str,
}

const RECIPES: [Recipe; 5] = [
    Recipe {
        module: "controlplane",
        packages: &["./etcd"],
        programs: &["etcd"],
        usually: "15 seconds",
    },
    Recipe {
        module: "controlplane",
        packages: &["k8s.io/kubernetes/cmd/kube-apiserver"],
        programs: &["kube-apiserver"],
        usually: "3 to 4 minutes",
    },
    Recipe {
        module: "controlplane",
        packages: &[
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
        ],
        programs: &["kube-controller-manager", "kube-scheduler"],
        usually: "1 minute",
    },
    Recipe {
        module: "controlplane",
        packages: &["k8s.io/kubernetes/cmd/kubectl"],
        programs: &["kubectl"],
        usually: "30 seconds",
    },
    Recipe {
        module: "kwok",
        packages: &["sigs.k8s.io/kwok/cmd/kwok"],
        programs: &["kwok"],
        usually: "2 minutes",
    },
];

/// The file beside kwok that holds the stages its own module ships.
const STAGES: &str = "kwok-stages.yaml";
/// Part of the cache key: raise it when the way of building changes.
const BUILD_VERSION: &str = "1";

/// Where each program of the control plane is.
#[derive(Debug, Clone)]
pub struct Binaries {
    programs: BTreeMap<&'static str, PathBuf>,
    stages: PathBuf,
}

impl Binaries {
    /// Finds the programs in the folder that `KUBEBUILDER_ASSETS` names, then in the cache, and builds what is missing.
    /// Blocks for minutes when it builds.
    ///
    /// # Errors
    /// When something is missing and can't be built; the message says what to install.
    pub fn resolve() -> Result<Self> {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let cache = cache_dir()?.join("control-plane");
        let hack = hack_dir();
        let dir = cache.join(key(&hack)?);
        if !missing(&dir, assets.as_deref()).is_empty() || !dir.join(STAGES).exists() {
            build(&hack, &cache, &dir, assets.as_deref())?;
        }
        let programs = RECIPES.iter().flat_map(|recipe| recipe.programs).map(|program| {
            let given = assets
                .as_ref()
                .map(|assets| assets.join(program))
                .filter(|path| path.exists());
            (*program, given.unwrap_or_else(|| dir.join(program)))
        });
        Ok(Self {
            programs: programs.collect(),
            stages: dir.join(STAGES),
        })
    }

    /// The path of a program.
    #[must_use]
    pub fn path(&self, program: &str) -> &Path {
        self.programs.get(program).map_or(Path::new(""), PathBuf::as_path)
    }

    /// The configuration by which kwok plays nodes and Pods.
    #[must_use]
    pub fn stages(&self) -> &Path {
        &self.stages
    }
}

/// The folder for things that are built once: `WEIR_CACHE_DIR`, or `weir` in the user's cache folder.
///
/// # Errors
/// When neither that nor a home directory is known.
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

fn hack_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack")
}

/// Names what is built: the version of Kubernetes, and a digest of everything that a build depends on.
fn key(hack: &Path) -> Result<String> {
    let mut digest = Sha256::new();
    digest.update(format!(
        "{BUILD_VERSION} {} {}",
        std::env::consts::OS,
        std::env::consts::ARCH
    ));
    let files = [
        "controlplane/go.mod",
        "controlplane/go.sum",
        "controlplane/etcd/main.go",
        "kwok/go.mod",
        "kwok/go.sum",
    ];
    for file in files {
        digest.update(read(&hack.join(file))?);
    }
    let digest = hex::encode(digest.finalize());
    Ok(format!(
        "{}-{}",
        version(hack)?,
        digest.get(..12).unwrap_or_default()
    ))
}

/// The version of `k8s.io/kubernetes` that go.mod pins, such as `v1.35.4`.
fn version(hack: &Path) -> Result<String> {
    let path = hack.join("controlplane/go.mod");
    let text = read(&path)?;
    let version = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    let version = version.and_then(|rest| rest.split_ascii_whitespace().next());
    Ok(version
        .with_context(|| format!("{} doesn't require k8s.io/kubernetes", path.display()))?
        .to_owned())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("can't read {}", path.display()))
}

fn missing(dir: &Path, assets: Option<&Path>) -> Vec<&'static Recipe> {
    let present = |program: &&str| {
        dir.join(program).exists() || assets.is_some_and(|assets| assets.join(program).exists())
    };
    RECIPES
        .iter()
        .filter(|recipe| !recipe.programs.iter().all(present))
        .collect()
}

fn build(hack: &Path, cache: &Path, dir: &Path, assets: Option<&Path>) -> Result<()> {
    fs::create_dir_all(cache).with_context(|| format!("can't make the folder {}", cache.display()))?;
    let lock = fs::File::create(cache.join("lock"))?;
    if lock.try_lock().is_err() {
        say("control plane: another process is building it, waiting");
        lock.lock()?;
    }
    let missing = missing(dir, assets);
    ensure!(
        runs("go"),
        "the control plane for tests isn't built yet and there is no `go` on PATH: install Go 1.25 or newer from \
         https://go.dev/dl, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl and build kwok elsewhere"
    );
    if !missing.is_empty() {
        say(format_args!(
            "control plane: building {} into {} (once)",
            version(hack)?,
            dir.display()
        ));
    }
    let begin = Instant::now();
    let work = tempfile::Builder::new().prefix("building-").tempdir_in(cache)?;
    fs::create_dir_all(dir)?;
    for recipe in missing {
        compile(hack, recipe, work.path())?;
        for program in recipe.programs {
            fs::rename(work.path().join(program), dir.join(program))?;
        }
    }
    if !dir.join(STAGES).exists() {
        let kubectl = assets
            .map(|assets| assets.join("kubectl"))
            .filter(|path| path.exists());
        let stages = stages(hack, &kubectl.unwrap_or_else(|| dir.join("kubectl")))?;
        fs::write(work.path().join(STAGES), stages)?;
        fs::rename(work.path().join(STAGES), dir.join(STAGES))?;
    }
    say(format_args!(
        "control plane: built in {} s",
        begin.elapsed().as_secs()
    ));
    Ok(())
}

/// Runs `go build`, saying now and then that it still does.
fn compile(hack: &Path, recipe: &Recipe, out: &Path) -> Result<()> {
    let names = recipe.programs.join(" and ");
    say(format_args!(
        "control plane: building {names} (usually {}, downloads aside)",
        recipe.usually
    ));
    let log = out.join("go.log");
    let output = fs::File::create(&log)?;
    let mut child = go(&hack.join(recipe.module))
        .args([
            "build",
            "-trimpath",
            "-ldflags",
            &link_flags(&version(hack)?),
            "-o",
        ])
        .arg(format!("{}/", out.display()))
        .args(recipe.packages)
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()?;
    let begin = Instant::now();
    let mut told = begin;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if told.elapsed() > Duration::from_secs(30) {
            told = Instant::now();
            say(format_args!(
                "control plane: still building {names} ({} s)",
                begin.elapsed().as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let said = fs::read_to_string(&log).unwrap_or_default();
    ensure!(
        status.success(),
        "`go build` of {names} failed ({status}):\n{}",
        said.trim_end()
    );
    Ok(())
}

/// Without a version the server reports one that clients refuse as no semantic version.
fn link_flags(version: &str) -> String {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let package = "k8s.io/component-base/version";
    format!(
        "-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

/// The stages for fake nodes and Pods that come to life at once, as kwok's own module ships them.
fn stages(hack: &Path, kubectl: &Path) -> Result<Vec<u8>> {
    let module = go(&hack.join("kwok"))
        .args(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"])
        .output()?;
    let module = String::from_utf8_lossy(&module.stdout).trim().to_owned();
    ensure!(
        !module.is_empty(),
        "can't find the sources of sigs.k8s.io/kwok: run `go mod download` in hack/kwok"
    );
    let built = Command::new(kubectl)
        .arg("kustomize")
        .arg(Path::new(&module).join("kustomize/stage/fast"))
        .output();
    let built = built.with_context(|| format!("can't run {}", kubectl.display()))?;
    if !built.status.success() {
        bail!(
            "can't build kwok's stages: {}",
            String::from_utf8_lossy(&built.stderr).trim_end()
        );
    }
    Ok(built.stdout)
}

fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .stdin(Stdio::null());
    command
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
    fn the_key_names_the_pinned_version() {
        let key = key(&hack_dir()).expect("hack/ is there");
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
    fn the_server_reports_a_version_that_clients_accept() {
        let flags = link_flags("v1.35.4");
        assert!(
            flags.contains("version.gitMajor=1 ") && flags.ends_with("version.gitMinor=35"),
            "{flags}"
        );
    }
}
