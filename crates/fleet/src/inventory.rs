//! Inventories: the objects that an object has applied, as trees.

use std::fmt;

use objects::{ObjectId, inventory::Entry};

/// An object with the objects that it applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    pub object: ObjectId,
    pub children: Vec<Self>,
}

impl Tree {
    #[must_use]
    pub fn new(object: ObjectId) -> Self {
        Self {
            object,
            children: Vec::new(),
        }
    }

    /// Adds one line for each object below this one. `open` says for each level above if more lines follow there.
    fn write(&self, f: &mut fmt::Formatter<'_>, open: &mut Vec<bool>) -> fmt::Result {
        let last = self.children.len().saturating_sub(1);
        for (index, child) in self.children.iter().enumerate() {
            for more in open.iter() {
                f.write_str(if *more { "│   " } else { "    " })?;
            }
            let sign = if index == last { "└── " } else { "├── " };
            writeln!(f, "{sign}{}", name(&child.object))?;
            open.push(index != last);
            child.write(f, open)?;
            open.pop();
        }
        Ok(())
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", name(&self.object))?;
        self.write(f, &mut Vec::new())
    }
}

/// Returns `Kind/namespace/name`, or `Kind/name` without a namespace.
#[must_use]
pub fn name(object: &ObjectId) -> String {
    match &object.namespace {
        Some(namespace) => format!("{}/{namespace}/{}", object.kind, object.name),
        None => format!("{}/{}", object.kind, object.name),
    }
}

/// Parses the entries of an inventory, in their order. Malformed entries name no object, and are left out.
pub fn parse<'a>(ids: impl IntoIterator<Item = &'a str>) -> Vec<ObjectId> {
    let reference = |id: &str| {
        let entry = Entry {
            id: id.to_owned(),
            version: String::new(),
        };
        entry.reference().map(|reference| reference.id())
    };
    ids.into_iter().filter_map(reference).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_drawn_as_the_original_does() {
        let ids = [
            "_infra__Namespace",
            "flux-system_apps_kustomize.toolkit.fluxcd.io_Kustomization",
            "a_b__Pod",
            "odd",
        ];
        let [namespace, apps, pod] = parse(ids).try_into().unwrap();
        let mut root = Tree::new(apps.clone());
        let mut nested = Tree::new(apps);
        nested.children = vec![Tree::new(namespace.clone()), Tree::new(pod)];
        root.children = vec![nested, Tree::new(namespace)];
        assert_eq!(
            root.to_string(),
            "Kustomization/flux-system/apps\n├── Kustomization/flux-system/apps\n│   ├── Namespace/infra\n│   └── Pod/a/b\n└── \
             Namespace/infra\n"
        );
    }
}
