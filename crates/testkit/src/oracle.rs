//! The original programs, whose results ours must equal.

mod dialogue;

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    gobuild::{Recipe, program},
    python,
};

pub use crate::python::Python;
pub use dialogue::Dialogue;

const KUSTOMIZE: &str = "sigs.k8s.io/kustomize/kustomize/v5";
static RECIPE: Recipe = Recipe {
    module: "kustomize",
    packages: &[KUSTOMIZE],
    programs: &["kustomize"],
    tags: "",
    seconds: 15,
};

const HELM: &str = "helm.sh/helm/v3";
static HELM_RECIPE: Recipe = Recipe {
    module: "helm",
    packages: &["helm.sh/helm/v3/cmd/helm"],
    programs: &["helm"],
    tags: "",
    seconds: 60,
};
const HELM_4: &str = "helm.sh/helm/v4";
static HELM_4_RECIPE: Recipe = Recipe {
    module: "helm4",
    packages: &["helm.sh/helm/v4/cmd/helm"],
    programs: &["helm"],
    tags: "",
    seconds: 120,
};
static TEMPLATES_RECIPE: Recipe = Recipe {
    module: "helm",
    packages: &["./templates"],
    programs: &["templates"],
    tags: "",
    seconds: 60,
};

/// Finds kustomize, in the version that `hack/kustomize` pins, in the cache, or builds it.
pub fn kustomize() -> Result<PathBuf> {
    program("oracle", &RECIPE, KUSTOMIZE)
}

/// Finds helm, in the version that `hack/helm` pins, in the cache, or builds it.
pub fn helm() -> Result<PathBuf> {
    program("oracle", &HELM_RECIPE, HELM)
}

/// Finds helm 4, in the version that `hack/helm4` pins, in the cache, or builds it.
pub fn helm_4() -> Result<PathBuf> {
    program("oracle", &HELM_4_RECIPE, HELM_4)
}

/// Finds the program that renders one template after another as the pinned version of helm does, in the cache, or builds it.
pub fn helm_templates() -> Result<PathBuf> {
    program("oracle", &TEMPLATES_RECIPE, HELM)
}

/// Finds the program that renders one template after another with the version of Jinja2 that `hack/jinja` pins.
pub fn jinja() -> Result<Python> {
    python::program("jinja")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::gobuild::version;

    #[test]
    fn kustomize_is_the_pinned_version() {
        let program = kustomize().expect("is built");
        let output = Command::new(program).arg("version").output().expect("runs");
        let pinned = version("kustomize", KUSTOMIZE).expect("is pinned");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), pinned);
    }

    #[test]
    fn helm_is_of_the_pinned_version() {
        let program = helm().expect("is built");
        let output = Command::new(program)
            .args(["version", "--template", "{{ .Version }}"])
            .output()
            .expect("runs");
        let pinned = version("helm", HELM).expect("is pinned");
        // Only a release sets more than the first two numbers.
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.len() > 2 && pinned.starts_with(said.trim_end()), "{said}");
    }
}
