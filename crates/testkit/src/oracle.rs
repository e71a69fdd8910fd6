//! The programs whose results ours must equal.

use std::path::PathBuf;

use anyhow::Result;

use crate::gobuild::{Recipe, program};

const KUSTOMIZE: &str = "sigs.k8s.io/kustomize/kustomize/v5";
static RECIPE: Recipe = Recipe {
    module: "kustomize",
    packages: &[KUSTOMIZE],
    programs: &["kustomize"],
    tags: "",
    usually: "15 seconds",
};

/// Finds kustomize, in the version that `hack/kustomize` pins, in the cache, or builds it.
///
/// # Errors
/// When it isn't there and can't be built.
pub fn kustomize() -> Result<PathBuf> {
    program("oracle", &RECIPE, KUSTOMIZE)
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
}
