//! What projects may ask for and a deployment does not obey yet: refused before anything is applied.

use kluctl::{Item, Rendered};
use objects::{ObjectRef, annotations as names, meta};
use yaml::Value;

use crate::Error;

/// Annotations that begin so would not be obeyed.
const HOOKS: [&str; 2] = ["kluctl.io/hook", "helm.sh/hook"];

/// Refuses a render with the first of what would be ignored.
pub(crate) fn refuse(rendered: &Rendered) -> Result<(), Error> {
    let problem = rendered.items.iter().find_map(|item| {
        let of_object = |object: &Value| {
            let annotation = annotation(object)?;
            let name = ObjectRef::of(object).map_or_else(|_| String::new(), |of| format!("{of}: "));
            Some(format!("{name}the annotation {annotation}"))
        };
        of_item(item)
            .map(str::to_owned)
            .or_else(|| item.objects.iter().find_map(of_object))
            .map(|what| match &item.dir {
                Some(dir) => format!("{dir}: {what} is not supported yet: remove it"),
                None => format!("{what} is not supported yet: remove it"),
            })
    });
    match problem {
        Some(problem) => Err(Error::Render(kluctl::Error::Object(problem))),
        None => Ok(()),
    }
}

fn of_item(item: &Item) -> Option<&'static str> {
    [
        (!item.delete_objects.is_empty(), "deleteObjects"),
        (!item.wait_readiness_objects.is_empty(), "waitReadinessObjects"),
        (!item.rules.ignore_for_diff.is_empty(), "ignoreForDiff"),
        (!item.rules.conflict_resolution.is_empty(), "conflictResolution"),
    ]
    .into_iter()
    .find_map(|(asked, name)| asked.then_some(name))
}

fn annotation(object: &Value) -> Option<String> {
    let hook = meta::annotations(object)
        .map(|(name, _)| name)
        .find(|name| HOOKS.iter().any(|prefix| name.starts_with(prefix)));
    hook.map(str::to_owned)
        .or_else(|| meta::flag(object, names::DELETE).then(|| names::DELETE.to_owned()))
        .or_else(|| names::unsupported(object).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(object: &str, item: Item) -> Option<String> {
        let object = yaml::read::goyaml(object, &tree::Budget::default())
            .unwrap()
            .value;
        let rendered = Rendered {
            items: vec![Item {
                objects: vec![object],
                ..item
            }],
            ..Rendered::default()
        };
        refuse(&rendered).err().map(|error| error.to_string())
    }

    #[test]
    fn what_would_be_ignored_is_refused_by_name() {
        let object = |annotation: &str| {
            format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{{annotation}}}}}\n")
        };
        for (annotation, expected) in [
            (
                "kluctl.io/hook: pre-deploy",
                "the annotation kluctl.io/hook is not supported",
            ),
            (
                "helm.sh/hook-weight: '1'",
                "the annotation helm.sh/hook-weight is not supported",
            ),
            (
                "kluctl.io/delete: 'true'",
                "the annotation kluctl.io/delete is not supported",
            ),
            (
                "kluctl.io/diff-name: x",
                "the annotation kluctl.io/diff-name is not supported",
            ),
        ] {
            let found = refused(&object(annotation), Item::default()).unwrap();
            assert!(found.contains(expected), "{found}");
        }
        assert_eq!(
            refused(&object("kluctl.io/delete: 'false'"), Item::default()),
            None
        );
        let item = Item {
            delete_objects: vec![kluctl::ObjectSelector::default()],
            ..Item::default()
        };
        let found = refused(&object("a: b"), item).unwrap();
        assert_eq!(found, "deleteObjects is not supported yet: remove it");
    }
}
