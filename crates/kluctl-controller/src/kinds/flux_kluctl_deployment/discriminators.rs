//! The discriminators that an object deployed with before the present one, until their objects are deleted. Pure.
//!
//! They are part of the target in the status, because statuses have no field for them that all schemas of the kind allow.

use api::kluctl::KluctlDeploymentStatus;
use engine::discriminator;
use yaml::{Map, Value};

const FIELD: &str = "previousDiscriminators";
/// Maximum number of remembered discriminators.
const MOST: usize = 16;

/// Returns the previous discriminators of an object that now deploys with `current`, the newest last. The oldest beyond 16 are
/// dropped, which the log says.
pub(super) fn previous(status: Option<&KluctlDeploymentStatus>, current: Option<&str>) -> Vec<String> {
    let Some(status) = status else {
        return Vec::new();
    };
    let mut all = status.raw_target.as_deref().map(remembered).unwrap_or_default();
    all.extend(status.discriminator.clone());
    let current = current.unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for one in all {
        if one != current && discriminator::check(&one).is_ok() && !found.contains(&one) {
            found.push(one);
        }
    }
    let dropped: Vec<String> = found.drain(..found.len().saturating_sub(MOST)).collect();
    if !dropped.is_empty() {
        let dropped = dropped.join(", ");
        tracing::warn!(
            dropped,
            "the discriminator changed too often: objects with these may be left"
        );
    }
    found
}

pub(super) fn remember(target: &mut Map, previous: &[String]) {
    if !previous.is_empty() {
        let list: Vec<Value> = previous.iter().map(|one| Value::from(one.as_str())).collect();
        target.insert(FIELD, list);
    }
}

/// Returns the part of the Ready message about objects that are left because pruning is off.
pub(super) fn left(previous: &[String]) -> String {
    format!(
        "objects with the previous discriminators {} may be left: turn on spec.prune, or delete them",
        previous.join(", ")
    )
}

fn remembered(raw_target: &str) -> Vec<String> {
    let target = yaml::read::goyaml(raw_target, &tree::Budget::default());
    let list = target.ok().and_then(|target| target.value.get(FIELD).cloned());
    let list = list.as_ref().and_then(Value::as_seq).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(discriminator: &str, previous: &[&str]) -> KluctlDeploymentStatus {
        let mut target = Map::from([("name", "test")]);
        let previous: Vec<String> = previous.iter().map(|&one| one.to_owned()).collect();
        remember(&mut target, &previous);
        KluctlDeploymentStatus {
            discriminator: Some(discriminator.to_owned()),
            raw_target: Some(yaml::print::goyaml(&Value::Map(target))),
            ..KluctlDeploymentStatus::default()
        }
    }

    #[test]
    fn previous_discriminators_are_those_of_the_status_but_the_current_one() {
        let of = |status: &KluctlDeploymentStatus, current| previous(Some(status), current);
        assert_eq!(previous(None, Some("a")), Vec::<String>::new());
        assert_eq!(of(&status("a", &[]), Some("a")), Vec::<String>::new());
        assert_eq!(of(&status("a", &[]), Some("b")), ["a"]);
        assert_eq!(of(&status("b", &["a"]), Some("c")), ["a", "b"]);
        assert_eq!(of(&status("b", &["a"]), Some("a")), ["b"]);
        assert_eq!(of(&status("b", &["a"]), None), ["a", "b"]);
        assert_eq!(of(&status("b", &["a", "not a label", "a"]), Some("b")), ["a"]);
        let many: Vec<String> = (0..40).map(|i| format!("d{i}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let kept = of(&status("b", &many), Some("b"));
        assert_eq!((kept.len(), kept.last().map(String::as_str)), (MOST, Some("d39")));
    }
}
