//! The real controllers of Flux, as peers of ours. Building them takes minutes, so they are built on request only.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{
    ControlPlane, Controller,
    gobuild::{self, Recipe, cached_path, copy_files, downloaded},
};

static NOTIFICATION_RECIPE: Recipe = Recipe {
    module: "notification-controller",
    packages: &["github.com/fluxcd/notification-controller"],
    programs: &["notification-controller"],
    tags: "",
    seconds: 300,
};
static CONSUMERS_RECIPE: Recipe = Recipe {
    module: "flux-consumers",
    packages: &[
        "github.com/fluxcd/kustomize-controller",
        "github.com/fluxcd/helm-controller",
    ],
    programs: &["kustomize-controller", "helm-controller"],
    tags: "",
    seconds: 360,
};
/// The folder with definitions of kinds in the modules of controllers.
const BASES: &str = "config/crd/bases";

#[derive(Debug)]
pub struct FluxController {
    name: &'static str,
    recipe: &'static Recipe,
    program: &'static str,
    /// The folder of the cache with all programs of the recipe.
    folder: &'static str,
    /// The kinds that it must know all objects of before it works, as its log names them.
    kinds: &'static [&'static str],
    /// True if its kinds are not among ours, so that their definitions come from its module.
    defines: bool,
}

/// The notification-controller, which takes events and delivers them.
pub static NOTIFICATION: FluxController = FluxController {
    name: "flux-notification-controller",
    recipe: &NOTIFICATION_RECIPE,
    program: "notification-controller",
    folder: "flux-notification-controller",
    // Until it knows all of them it answers 202 to events and forgets them.
    kinds: &["alert", "provider"],
    defines: false,
};
pub static KUSTOMIZE: FluxController = FluxController {
    name: "flux-kustomize-controller",
    recipe: &CONSUMERS_RECIPE,
    program: "kustomize-controller",
    folder: "flux-consumers",
    kinds: &["kustomization"],
    defines: true,
};
pub static HELM: FluxController = FluxController {
    name: "flux-helm-controller",
    recipe: &CONSUMERS_RECIPE,
    program: "helm-controller",
    folder: "flux-consumers",
    kinds: &["helmrelease"],
    defines: true,
};

/// Returns true for a process of Flux, which lacks the flags that only our controllers have.
pub(crate) fn is_of_flux(name: &str) -> bool {
    [&NOTIFICATION, &KUSTOMIZE, &HELM]
        .iter()
        .any(|known| known.name == name)
}

/// Returns true for a notification-controller, ours or Flux's.
pub(crate) fn takes_events(name: &str) -> bool {
    [NOTIFICATION.name, NOTIFICATION.program].contains(&name)
}

impl FluxController {
    /// Returns the program, in the version that its folder of `hack/` pins, if it is in the cache.
    pub fn find(&self) -> Result<Option<PathBuf>> {
        let (_, dir) = self.folders()?;
        Ok(self.is_complete(&dir).then(|| dir.join(self.program)))
    }

    /// Builds the program into the cache, with the others of its recipe and the definitions of their kinds, unless they are there.
    pub fn build(&self) -> Result<PathBuf> {
        let (cache, dir) = self.folders()?;
        if !self.is_complete(&dir) {
            let missing = || Vec::from_iter((!self.has_programs(&dir)).then_some(self.recipe));
            gobuild::build(&cache, &dir, "-s -w", missing, |work| match self.defines {
                true => copy_definitions(self.recipe, work, &definitions(&dir)),
                false => Ok(()),
            })?;
        }
        Ok(dir.join(self.program))
    }

    /// Starts the program that [`FluxController::find`] returned, with a kubeconfig, after the definitions of its kinds are installed, and
    /// waits until it works.
    pub async fn start(&self, program: &Path, plane: &ControlPlane) -> Result<Controller> {
        if self.defines {
            let dir = program.parent().context("the program has no folder")?;
            plane.install_crds(&definitions(dir)).await?;
        }
        let controller = Controller::named(self.name)
            .program(program)
            .run_by(plane.kubeconfig())
            .flag("--enable-leader-election=false")
            .start()
            .await?;
        for kind in self.kinds {
            let what = format!("the controller of kind {kind} to know all objects");
            controller
                .wait_log(&what, crate::WAIT_TIMEOUT, |entry| {
                    entry["msg"] == "Starting workers" && entry["controller"] == *kind
                })
                .await?;
        }
        Ok(controller)
    }

    /// Returns the folder of the cache for all versions, and the folder of the pinned one.
    fn folders(&self) -> Result<(PathBuf, PathBuf)> {
        let module = self.recipe.packages.first().context("the recipe makes nothing")?;
        let (cache, first) = cached_path(self.folder, self.recipe, module)?;
        let dir = first.parent().context("the program has no folder")?.to_owned();
        Ok((cache, dir))
    }

    fn has_programs(&self, dir: &Path) -> bool {
        self.recipe
            .programs
            .iter()
            .all(|program| dir.join(program).exists())
    }

    fn is_complete(&self, dir: &Path) -> bool {
        self.has_programs(dir) && (!self.defines || definitions(dir).exists())
    }
}

fn definitions(dir: &Path) -> PathBuf {
    dir.join("crds")
}

/// Copies the definitions of the kinds of all packages of a recipe, by way of a folder for unfinished work.
fn copy_definitions(recipe: &Recipe, work: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Ok(());
    }
    let all = work.join("crds");
    for package in recipe.packages {
        copy_files(&downloaded(recipe.module, package)?.join(BASES), &all)?;
    }
    fs::rename(&all, to).with_context(|| format!("can't write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_flux_are_not_those_of_our_controllers() {
        for known in [&NOTIFICATION, &KUSTOMIZE, &HELM] {
            assert!(is_of_flux(known.name));
            assert!(!is_of_flux(known.program), "{}", known.program);
            assert!(known.recipe.programs.contains(&known.program), "{known:?}");
        }
        assert!(takes_events("notification-controller"));
        assert!(!takes_events(KUSTOMIZE.name));
    }
}
