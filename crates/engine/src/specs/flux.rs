//! KluctlDeployments of `flux.kluctl.io`.

use api::kluctl::KluctlDeploymentSpec;
use kluctl::{Contexts, FixedImage, Inclusion, Request};
use tree::TreePath;

use super::{args, filled};

/// Returns the request of a spec for the project in a directory.
#[must_use]
pub fn request(spec: &KluctlDeploymentSpec, project_dir: TreePath, contexts: Contexts) -> Request {
    Request {
        project_dir,
        target: spec.target.clone(),
        target_name_override: spec.target_name_override.clone(),
        context_override: filled(spec.context.as_ref()),
        contexts,
        args: args(spec.args.as_ref()),
        images: images(spec),
        inclusion: inclusion(spec),
        ..Request::default()
    }
}

/// Returns the path of the project directory in the source, as it was written.
#[must_use]
pub fn path(spec: &KluctlDeploymentSpec) -> &str {
    let path = match &spec.source {
        Some(source) => source.path.as_deref(),
        None => spec.path.as_deref(),
    };
    path.unwrap_or_default()
}

/// Returns the fixed images. Their other fields describe where an image was found when the list was made, as in kluctl, and select
/// nothing.
#[must_use]
pub fn images(spec: &KluctlDeploymentSpec) -> Vec<FixedImage> {
    let images = spec.images.iter().map(|image| FixedImage {
        image: Some(image.image.clone()),
        image_regex: None,
        result_image: image.result_image.clone(),
        namespace: filled(image.namespace.as_ref()),
        deployment: filled(image.deployment.as_ref()),
        container: filled(image.container.as_ref()),
    });
    images.collect()
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
