//! The programs of the control plane: found, or built once from the Go modules in `hack/` and kept in a cache.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::prebuilt;
use crate::gobuild::{Recipe, build, cache_dir, go, hack_dir, key, version};

const RECIPES: [Recipe; 5] = [
    Recipe {
        module: "controlplane",
        packages: &["./etcd"],
        programs: &["etcd"],
        tags: "",
        seconds: 15,
    },
    Recipe {
        module: "controlplane",
        packages: &["k8s.io/kubernetes/cmd/kube-apiserver"],
        programs: &["kube-apiserver"],
        tags: "",
        seconds: 210,
    },
    Recipe {
        module: "controlplane",
        packages: &[
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
        ],
        programs: &["kube-controller-manager", "kube-scheduler"],
        tags: "",
        seconds: 60,
    },
    Recipe {
        module: "controlplane",
        packages: &["k8s.io/kubernetes/cmd/kubectl"],
        programs: &["kubectl"],
        tags: "",
        seconds: 30,
    },
    Recipe {
        module: "kwok",
        packages: &["sigs.k8s.io/kwok/cmd/kwok"],
        programs: &["kwok"],
        tags: "",
        seconds: 120,
    },
];

/// The module and package whose version names the control plane.
const KUBERNETES: (&str, &str) = ("controlplane", "k8s.io/kubernetes");
/// Everything that a build depends on.
const PINS: [&str; 5] = [
    "controlplane/go.mod",
    "controlplane/go.sum",
    "controlplane/etcd/main.go",
    "kwok/go.mod",
    "kwok/go.sum",
];
/// The file beside kwok that holds the stages its own module ships.
const STAGES: &str = "kwok-stages.yaml";
#[derive(Debug, Clone)]
pub struct Binaries {
    programs: BTreeMap<&'static str, PathBuf>,
    stages: PathBuf,
}

impl Binaries {
    /// Finds the programs in the folder that `KUBEBUILDER_ASSETS` names, then in the cache. Missing ones are looked for on `PATH`,
    /// downloaded, or built, which blocks for minutes.
    pub fn resolve() -> Result<Self> {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
        let cache = cache_dir()?.join("control-plane");
        let dir = cache.join(key(KUBERNETES, &PINS)?);
        let missing = || missing(&dir, assets.as_deref());
        if !missing().is_empty() || !dir.join(STAGES).exists() {
            let flags = link_flags(&version(KUBERNETES.0, KUBERNETES.1)?);
            let given = assets
                .as_ref()
                .map(|assets| assets.join("kubectl"))
                .filter(|path| path.exists());
            let kubectl = given.unwrap_or_else(|| dir.join("kubectl"));
            let unprovided = || {
                let programs = missing().into_iter().flat_map(|recipe| recipe.programs);
                prebuilt::provide(&dir, &programs.copied().collect::<Vec<_>>());
                missing()
            };
            build(&cache, &dir, &flags, unprovided, |work| {
                write_stages(&dir, &kubectl, work)
            })?;
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

    #[must_use]
    pub fn path(&self, program: &str) -> &Path {
        self.programs.get(program).map_or(Path::new(""), PathBuf::as_path)
    }

    #[must_use]
    pub fn stages(&self) -> &Path {
        &self.stages
    }
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

fn write_stages(dir: &Path, kubectl: &Path, work: &Path) -> Result<()> {
    if dir.join(STAGES).exists() {
        return Ok(());
    }
    fs::write(work.join(STAGES), stages(kubectl)?)?;
    Ok(fs::rename(work.join(STAGES), dir.join(STAGES))?)
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
fn stages(kubectl: &Path) -> Result<Vec<u8>> {
    let module = go(&hack_dir().join("kwok"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_reports_a_version_that_clients_accept() {
        let flags = link_flags("v1.35.4");
        assert!(
            flags.contains("version.gitMajor=1 ") && flags.ends_with("version.gitMinor=35"),
            "{flags}"
        );
    }
}
