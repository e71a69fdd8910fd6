//! KluctlDeployments of `gitops.kluctl.io`.

mod project;

use api::kluctl::gitops::KluctlDeploymentSpec;
use kluctl::{Contexts, FixedImage, Inclusion, Request};
use tree::{Budget, TreePath};
use yaml::Map;

use super::filled;
pub use project::{InvalidSpec, Source, deploy_mode, pokes_images, source};

/// Fixed images that can't be read, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("spec.images: {0}")]
pub struct InvalidImages(String);

/// Returns the request of a spec for the project in a directory.
///
/// # Errors
/// If the fixed images are invalid.
pub fn request(
    spec: &KluctlDeploymentSpec,
    project_dir: TreePath,
    contexts: Contexts,
) -> Result<Request, InvalidImages> {
    Ok(Request {
        project_dir,
        target: filled(spec.target.as_ref()),
        target_name_override: filled(spec.target_name_override.as_ref()),
        context_override: filled(spec.context.as_ref()),
        contexts,
        args: args(spec),
        images: images(spec)?,
        inclusion: inclusion(spec),
        ..Request::default()
    })
}

#[must_use]
pub fn args(spec: &KluctlDeploymentSpec) -> Map {
    super::args(spec.args.as_ref())
}

fn images(spec: &KluctlDeploymentSpec) -> Result<Vec<FixedImage>, InvalidImages> {
    if spec.images.is_empty() {
        return Ok(Vec::new());
    }
    let failed = |error: &dyn std::fmt::Display| InvalidImages(error.to_string());
    let list = serde_json::json!({ "images": spec.images });
    let text = serde_json::to_vec(&list).map_err(|error| failed(&error))?;
    let name = TreePath::root().child("spec.images");
    FixedImage::read_list(&name, &text, &Budget::default()).map_err(|error| failed(&error))
}

#[must_use]
pub fn inclusion(spec: &KluctlDeploymentSpec) -> Inclusion {
    Inclusion {
        include_tags: spec.include_tags.clone(),
        exclude_tags: spec.exclude_tags.clone(),
        include_dirs: spec.include_deployment_dirs.clone(),
        exclude_dirs: spec.exclude_deployment_dirs.clone(),
    }
}
