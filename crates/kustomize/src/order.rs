//! The order of the objects of a build: `sortOptions`.

use std::{cmp::Reverse, collections::HashMap};

use crate::{
    Error,
    error::Step,
    id::{FIRST_KINDS, Gvk, Id, LAST_KINDS},
    model::{LegacySortOptions, SortOptions},
    resmap::ResMap,
};

/// Sorts objects by `sortOptions`. Fails for an unknown order, or for kinds with an order that does not use them.
pub(crate) fn sort(resources: &mut ResMap, options: &SortOptions) -> Result<(), Error> {
    match (options.order.as_str(), &options.legacy_sort_options) {
        ("fifo", None) => Ok(()),
        ("fifo", Some(_)) => Err(Error::new(
            Step::Output,
            "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'",
        )),
        ("legacy", None) => {
            by_kind(resources, &Ranks::new(FIRST_KINDS, LAST_KINDS));
            Ok(())
        }
        (
            "legacy",
            Some(LegacySortOptions {
                order_first,
                order_last,
            }),
        ) => {
            by_kind(resources, &Ranks::new(order_first, order_last));
            Ok(())
        }
        _ => Err(Error::new(
            Step::Output,
            "the field 'sortOptions.order' must be one of [fifo, legacy]",
        )),
    }
}

/// Sorts objects by kind, in the built-in order.
pub(crate) fn legacy(resources: &mut ResMap) {
    by_kind(resources, &Ranks::new(FIRST_KINDS, LAST_KINDS));
}

struct Ranks(HashMap<String, i64>);

impl Ranks {
    fn new<T: AsRef<str>>(first: &[T], last: &[T]) -> Self {
        let names = first.iter().rev().map(|kind| kind.as_ref().to_owned());
        let mut ranks: HashMap<_, _> = names.zip((1..).map(|rank: i64| -rank)).collect();
        // quirk: a kind that is in both lists is among the last.
        ranks.extend(last.iter().map(|kind| kind.as_ref().to_owned()).zip(1..));
        Self(ranks)
    }

    fn of(&self, kind: &str) -> i64 {
        self.0.get(kind).copied().unwrap_or_default()
    }
}

fn by_kind(resources: &mut ResMap, ranks: &Ranks) {
    resources.list_mut().sort_by_cached_key(|resource| {
        let id = resource.id();
        let rank = ranks.of(&id.gvk.kind);
        (rank, kind_key(&id.gvk, rank), identity_key(id))
    });
}

/// Sort keys are strings, where `~` comes after all letters: the core group is last. A listed kind Namespace is first.
fn kind_key(gvk: &Gvk, rank: i64) -> (Reverse<bool>, String) {
    let core_namespace = rank != 0 && gvk.kind == "Namespace" && gvk.group.is_empty();
    (Reverse(core_namespace), gvk.sort_text())
}

fn identity_key(id: &Id) -> String {
    let namespace = if id.namespace.is_empty() {
        "~X"
    } else {
        &id.namespace
    };
    let name = if id.name.is_empty() { "~N" } else { &id.name };
    format!("{}|{namespace}|{name}", id.gvk)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tree::{Budget, TreePath};

    use super::*;
    use crate::resource::Resource;

    fn sorted(objects: &str, options: &SortOptions) -> Result<String, String> {
        let nodes = yaml::read::nodes(objects, &Budget::default()).unwrap();
        let file = Arc::new(TreePath::parse("m.yaml").unwrap());
        let mut resources: ResMap = nodes
            .into_iter()
            .map(|node| Resource::new(node, file.clone(), 1))
            .collect();
        sort(&mut resources, options).map_err(|error| error.to_string())?;
        let names: Vec<_> = resources.iter().map(Resource::name).collect();
        Ok(names.join(" "))
    }

    fn objects(kinds: &[(&str, &str, &str)]) -> String {
        let object = |(version, kind, name): &(&str, &str, &str)| {
            format!("{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}}}}}")
        };
        kinds.iter().map(object).collect::<Vec<_>>().join("\n---\n")
    }

    #[test]
    fn kinds_have_their_order_and_the_core_group_comes_last() {
        let objects = objects(&[
            (
                "admissionregistration.k8s.io/v1",
                "ValidatingWebhookConfiguration",
                "last",
            ),
            ("v1", "Other", "core"),
            ("b.com/v1", "Other", "b"),
            ("a.com/v1", "Zed", "a"),
            ("apps/v1", "Deployment", "d"),
            ("v1", "Service", "s2"),
            ("v1", "Service", "s10"),
            ("x.com/v1", "Namespace", "xn"),
            ("v1", "Namespace", "n"),
        ]);
        let legacy = SortOptions {
            order: "legacy".to_owned(),
            legacy_sort_options: None,
        };
        assert_eq!(sorted(&objects, &legacy).unwrap(), "n xn s10 s2 d a b core last");
        let own = SortOptions {
            order: "legacy".to_owned(),
            legacy_sort_options: Some(LegacySortOptions {
                order_first: vec!["Zed".to_owned(), "Service".to_owned()],
                order_last: vec!["Namespace".to_owned()],
            }),
        };
        assert_eq!(sorted(&objects, &own).unwrap(), "a s10 s2 last d b core n xn");
    }

    #[test]
    fn unknown_sort_orders_are_refused() {
        let options = |order: &str, kinds: bool| SortOptions {
            order: order.to_owned(),
            legacy_sort_options: kinds.then(LegacySortOptions::default),
        };
        assert_eq!(sorted("kind: A", &options("fifo", false)).unwrap(), "");
        assert!(
            sorted("kind: A", &options("fifo", true))
                .unwrap_err()
                .contains("not 'legacy'")
        );
        assert!(
            sorted("kind: A", &options("", false))
                .unwrap_err()
                .contains("must be one of")
        );
    }
}
