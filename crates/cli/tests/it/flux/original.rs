//! The commands that read, compared with the real flux on the same objects.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use testkit::{flux, skipped};
use tokio::process::Command;

use super::{Objects, inspect::delivered};

/// Commands whose output and exit code are compared.
const LINES: &[&str] = &[
    "get all",
    "get all --status-selector ready!=true",
    "get sources all",
    "get sources git",
    "get source git podinfo --no-header",
    "get sources git -l none=such",
    "get kustomizations --show-source",
    "get ks --status-selector ready=false",
    "get ks nothing",
    "get receivers",
    "tree kustomization apps",
    "tree ks apps --compact",
    "tree ks apps -o json",
    "tree ks apps -o yaml",
    "tree ks nothing",
    "trace configmap m",
    "trace kustomization/inner configmap/m",
    "trace m --kind=configmap --api-version=v1",
    "export source git podinfo",
    "export kustomization --all",
    "export kustomization nothing",
    "events",
    "events --for Kustomization/apps",
    "debug kustomization apps --show-status",
    "debug kustomization apps --show-history",
    "debug kustomization apps",
];

async fn printed(program: &Path, objects: &Objects, line: &str) -> Result<(bool, String)> {
    let output = Command::new(program)
        .args(line.split(' '))
        .env("KUBECONFIG", objects.plane.kubeconfig())
        .env("FLUX_SYSTEM_NAMESPACE", &objects.namespace)
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("run {}", program.display()))?;
    Ok((output.status.success(), String::from_utf8(output.stdout)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_the_one_of_flux() -> Result<()> {
    let Some(program) = flux::find()? else {
        skipped::note("cli: comparison with flux", "flux isn't built: run make flux-cli");
        return Ok(());
    };
    let objects = delivered().await?;
    let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
    for line in LINES {
        let expected = printed(&program, &objects, line).await?;
        let own = printed(weir, &objects, line).await?;
        ensure!(own == expected, "{line}: flux: {expected:?}\nweir: {own:?}");
    }
    Ok(())
}
