//! The real `flux` command line, as a client of our controllers. Building it takes minutes, so it is built on request only.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::{
    gobuild::{self, Recipe, cached_path, compile, copy_files, downloaded, version},
    progress::Progress,
};

static RECIPE: Recipe = Recipe {
    module: "flux",
    packages: &["github.com/fluxcd/flux2/v2/cmd/flux"],
    programs: &["flux"],
    tags: "",
    seconds: 300,
};
const MODULE: &str = "github.com/fluxcd/flux2/v2";

/// Returns the program, in the version that `hack/flux` pins, if it is in the cache.
pub fn find() -> Result<Option<PathBuf>> {
    let (_, program) = cached_path("flux", &RECIPE, MODULE)?;
    Ok(program.exists().then_some(program))
}

pub fn build() -> Result<PathBuf> {
    let (cache, program) = cached_path("flux", &RECIPE, MODULE)?;
    let dir = program.parent().context("the program has no folder")?;
    gobuild::build(&cache, dir, "", Vec::new, |work| match program.exists() {
        true => Ok(()),
        false => build_copy(work, &program),
    })?;
    Ok(program)
}

/// Builds a copy of the module: its program embeds manifests that only its release has, so it gets an empty one.
fn build_copy(work: &Path, program: &Path) -> Result<()> {
    let copy = work.join("module");
    copy_files(&downloaded(RECIPE.module, MODULE)?, &copy)?;
    let manifests = copy.join("cmd/flux/manifests");
    fs::create_dir_all(&manifests)?;
    fs::write(manifests.join("none.yaml"), "{}\n")?;
    let pinned = version(RECIPE.module, MODULE)?;
    let flags = format!("-s -w -X main.VERSION={}", pinned.trim_start_matches('v'));
    compile(&RECIPE, &copy, &flags, work, &mut Progress::new([&RECIPE]))?;
    fs::rename(work.join("flux"), program)?;
    Ok(())
}
