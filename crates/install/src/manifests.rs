//! The objects of an installation in manifests that somebody else made, such as another release.

use std::collections::BTreeSet;

use tree::{Budget, Limits};
use yaml::Value;

use crate::{COMPONENT, Error, NAMESPACE, edit};

/// A selection from manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Names of controllers; empty for all.
    pub components: Vec<String>,
    pub network_policy: bool,
    /// Namespace of the controllers.
    pub namespace: String,
}

/// Returns the objects of manifests, in their order: the objects of the selected controllers, and the objects of no controller. Values are not
/// changed, so the namespace has to be the one of the manifests.
///
/// # Errors
/// If a document is invalid YAML, there are no objects, a controller is missing, or the manifests are for another namespace.
pub fn select(texts: &[String], selection: &Selection) -> Result<Vec<Value>, Error> {
    let budget = Budget::new(Limits::default());
    let mut objects = Vec::new();
    for text in texts {
        let documents =
            yaml::read::goyaml_all(text, &budget).map_err(|error| Error::Manifests(error.to_string()))?;
        objects.extend(documents.into_iter().map(|document| document.value));
    }
    objects.retain(|object| *object != Value::Null);
    let component = |object: &Value| {
        let label = object.pointer(&["metadata", "labels", COMPONENT]);
        label.and_then(Value::as_str).map(str::to_owned)
    };
    let available: BTreeSet<String> = objects
        .iter()
        .filter(|object| edit::is_kind("Deployment")(object))
        .filter_map(component)
        .collect();
    if available.is_empty() {
        return Err(Error::Manifests("they have no controller".to_owned()));
    }
    if let Some(name) = selection
        .components
        .iter()
        .find(|name| !available.contains(*name))
    {
        return Err(Error::UnknownComponent {
            name: name.clone(),
            available: available.into_iter().collect::<Vec<_>>().join(", "),
        });
    }
    check_namespace(&objects, &selection.namespace)?;
    objects.retain(|object| {
        let is_wanted =
            |name: String| selection.components.is_empty() || selection.components.contains(&name);
        (selection.network_policy || !edit::is_kind("NetworkPolicy")(object))
            && component(object).is_none_or(is_wanted)
    });
    Ok(objects)
}

fn check_namespace(objects: &[Value], wanted: &str) -> Result<(), Error> {
    let mut deployments = objects
        .iter()
        .filter(|object| edit::is_kind("Deployment")(object));
    let own = deployments.find_map(|object| object.pointer(&["metadata", "namespace"])?.as_str());
    let own = own.unwrap_or(NAMESPACE);
    match own == wanted {
        true => Ok(()),
        false => Err(Error::Manifests(format!(
            "they install into the namespace {own}, not {wanted}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, install};

    fn selection(components: &[&str]) -> Selection {
        Selection {
            components: components.iter().map(|name| (*name).to_owned()).collect(),
            network_policy: true,
            namespace: NAMESPACE.to_owned(),
        }
    }

    fn deployments(objects: &[Value]) -> Vec<&str> {
        let deployments = objects
            .iter()
            .filter(|object| edit::is_kind("Deployment")(object));
        deployments
            .filter_map(|object| object.pointer(&["metadata", "name"])?.as_str())
            .collect()
    }

    #[test]
    fn manifests_are_reduced_to_the_selected_controllers() {
        let texts = [install(&Options::default()).unwrap()];
        let all = select(&texts, &selection(&[])).unwrap();
        assert_eq!(all, crate::objects(&Options::default()).unwrap());
        let one = select(&texts, &selection(&["source-controller"])).unwrap();
        assert_eq!(deployments(&one), ["source-controller"]);
        let definitions = |objects: &[Value]| {
            let is_definition = edit::is_kind("CustomResourceDefinition");
            objects.iter().filter(|object| is_definition(object)).count()
        };
        assert!(definitions(&one) > 0 && definitions(&one) < definitions(&all));
        let open = Selection {
            network_policy: false,
            ..selection(&[])
        };
        let open = select(&texts, &open).unwrap();
        assert!(!open.iter().any(edit::is_kind("NetworkPolicy")));
    }

    #[test]
    fn manifests_that_install_something_else_are_refused() {
        let texts = [install(&Options::default()).unwrap()];
        let refused =
            |texts: &[String], selection: &Selection| select(texts, selection).unwrap_err().to_string();
        let unknown = refused(&texts, &selection(&["other"]));
        assert!(
            unknown.starts_with("unknown component 'other': there are "),
            "{unknown}"
        );
        let elsewhere = Selection {
            namespace: "gitops".to_owned(),
            ..selection(&[])
        };
        assert!(
            refused(&texts, &elsewhere).ends_with("they install into the namespace flux-system, not gitops")
        );
        for text in ["kind: ConfigMap\n", "a: [", ""] {
            assert!(select(&[text.to_owned()], &selection(&[])).is_err(), "{text}");
        }
    }
}
