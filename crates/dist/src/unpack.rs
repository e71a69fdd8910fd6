//! Unpacks images into folders, for builds of other images and for running their programs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

use crate::{
    Architecture, Layout,
    layout::{self, list, text},
};

/// Unpacks the images of a release in `dir`: the root of each goes to `out/<program>/<architecture>`. Returns these folders.
///
/// # Errors
/// If there is no image, a layout is damaged, or a folder exists already.
pub fn unpack(dir: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (name, path) in layout::find_all(dir)? {
        let layout = Layout::open(&path)?;
        let index = layout.json(&layout.root)?;
        for image in list(&index, "manifests") {
            let architecture = architecture(image).with_context(|| path.display().to_string())?;
            let folder = out.join(&name).join(architecture.to_string());
            unpack_image(&layout, text(image, "digest")?, &folder)
                .with_context(|| format!("cannot unpack {} into {}", path.display(), folder.display()))?;
            folders.push(folder);
        }
    }
    ensure!(!folders.is_empty(), "{} has no images", dir.display());
    Ok(folders)
}

fn architecture(image: &Value) -> Result<Architecture> {
    let name = image.pointer("/platform/architecture").and_then(Value::as_str);
    let found = name.and_then(Architecture::from_name);
    found.context("an image has no known architecture")
}

/// Unpacks the layers of an image into a folder. Modes are as in the image, owners are not.
fn unpack_image(layout: &Layout, digest: &str, folder: &Path) -> Result<()> {
    ensure!(
        !folder.exists(),
        "the folder exists: remove it, or name another one"
    );
    fs::create_dir_all(folder)?;
    for layer in list(&layout.json(digest)?, "layers") {
        let blob = layout.blob(text(layer, "digest")?)?;
        let mut archive = Archive::new(GzDecoder::new(blob));
        archive.set_preserve_permissions(true);
        archive.unpack(folder)?;
    }
    Ok(())
}
