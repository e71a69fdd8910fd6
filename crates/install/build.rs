//! Lists the files of `deploy/` and `crds/` that the crate embeds.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The folders below the root of the repository. Neither editors' schemas nor monitoring are part of an installation.
const FOLDERS: &[&str] = &[
    "crds",
    "deploy/api-server",
    "deploy/base",
    "deploy/overlays/cluster-admin",
    "deploy/overlays/default",
    "deploy/results",
];
const SKIPPED: &str = "schemas";

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here
        .ancestors()
        .nth(2)
        .ok_or("the crate is not in the repository")?;
    let mut files = Vec::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        collect(&root.join(folder), &mut files)?;
    }
    println!("cargo::rerun-if-changed=build.rs");
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let path = file.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        writeln!(
            list,
            "    ({path:?}, include_str!({:?})),",
            file.display().to_string()
        )?;
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("files.rs"), list)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            files.push(entry.path());
        } else if entry.file_name() != SKIPPED {
            collect(&entry.path(), files)?;
        }
    }
    Ok(())
}
