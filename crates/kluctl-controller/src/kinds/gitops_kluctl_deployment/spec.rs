//! Validation of the spec, and its values with their defaults. Pure.

use std::time::Duration;

use api::kluctl::gitops::{KluctlDeployment, KluctlDeploymentSpec};
use cluster::access::Contexts;
use deployer::schedule;
use engine::specs;
pub(crate) use engine::specs::gitops::{
    InvalidSpec, Source, args, deploy_mode, inclusion, pokes_images, source,
};
use kluctl::Request;

pub(crate) fn request(object: &KluctlDeployment, source: &Source) -> Result<Request, InvalidSpec> {
    let contexts = Contexts::default();
    let contexts = kluctl::Contexts {
        current: contexts.current,
        names: contexts.names,
    };
    Ok(specs::gitops::request(
        &object.spec,
        source.dir.clone(),
        contexts,
    )?)
}

pub(crate) fn interval(spec: &KluctlDeploymentSpec) -> Duration {
    schedule::interval(spec.interval)
}

/// Returns the delay before the next attempt after a project could not be prepared.
pub(crate) fn retry_interval(spec: &KluctlDeploymentSpec) -> Duration {
    schedule::interval(spec.retry_interval.unwrap_or(spec.interval))
}

pub(crate) fn deploy_interval(spec: &KluctlDeploymentSpec) -> Option<Duration> {
    spec.deploy_interval.map(schedule::interval)
}

pub(crate) fn validate_interval(spec: &KluctlDeploymentSpec) -> Duration {
    schedule::interval(spec.validate_interval.unwrap_or(spec.interval))
}

pub(crate) fn timeout(spec: &KluctlDeploymentSpec) -> Duration {
    schedule::timeout(spec.timeout.or(spec.deploy_interval).unwrap_or(spec.interval))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yaml::Value;

    use super::*;

    fn spec(change: &serde_json::Value) -> KluctlDeploymentSpec {
        let mut spec =
            json!({ "interval": "5m", "source": { "git": { "url": "https://h.io/Org/Shop.git" } } });
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn informational_fields_of_images_change_nothing() {
        let image = json!({ "image": "a", "resultImage": "b" });
        let of = |image: &serde_json::Value| {
            let object = KluctlDeployment::new("shop", spec(&json!({ "images": [image] })));
            let request = request(&object, &source(&object.spec).unwrap()).unwrap();
            request
                .images
                .iter()
                .map(kluctl::FixedImage::to_map)
                .collect::<Vec<_>>()
        };
        let object = json!({ "group": "apps", "version": "v1", "kind": "Deployment", "name": "shop", "namespace": "apps" });
        for (name, value) in [
            ("deployedImage", json!("c")),
            ("object", object),
            ("deployTags", json!(["x"])),
            ("deploymentDir", json!("app")),
        ] {
            let mut listed = image.clone();
            listed[name] = value;
            assert_eq!(of(&listed), of(&image), "{name}: a list of images has it");
        }
    }

    #[test]
    fn images_of_the_spec_are_fixed_images() {
        let object = KluctlDeployment::new(
            "shop",
            spec(&json!({
                "images": [{ "imageRegex": "a.*", "resultImage": "b", "container": "c" }],
                "args": { "replicas": 3 },
            })),
        );
        let request = request(&object, &source(&object.spec).unwrap()).unwrap();
        assert_eq!(
            (request.images.len(), request.images[0].result_image.as_str()),
            (1, "b")
        );
        assert_eq!(request.args.get("replicas").and_then(Value::as_i64), Some(3));
        assert_eq!(timeout(&object.spec), Duration::from_secs(300));
    }
}
