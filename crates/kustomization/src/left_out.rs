//! Entries of kustomizations that rules leave out, so that a preview needs no files that an artifact does not have.

use std::collections::HashSet;

use kustomize::FILE_NAMES;
use serde_json::{Map, Value as Json};
use tree::{Budget, Overlay, Tree as _, TreePath, ignore::Rules};
use yaml::Value;

use crate::BuildError;

/// The fields whose entries are files and directories.
const FIELDS: [&str; 3] = ["resources", "components", "crds"];
/// The fields whose entries may be directories with a kustomization.
const BELOW: [&str; 3] = ["resources", "bases", "components"];

/// Rules for entries of kustomizations.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Rules for the entries of the kustomization that is built.
    pub rules: Rules,
    /// Lines with the syntax of .gitignore for every kustomization of the build, each in its own directory.
    pub lines: Vec<String>,
}

impl LeftOut {
    /// Removes the entries that are left out from the kustomizations of a build, in place.
    pub(crate) fn remove(&self, files: &Overlay, dir: &TreePath, budget: &Budget) -> Result<(), BuildError> {
        if self.rules.is_empty() && self.lines.is_empty() {
            return Ok(());
        }
        let mut open = vec![dir.clone()];
        let mut visited = HashSet::new();
        while let Some(at) = open.pop() {
            if !visited.insert(at.clone()) {
                continue;
            }
            let Some((file, mut fields)) = kustomization(files, &at, budget) else {
                continue;
            };
            let rules = match at == *dir {
                true => self.with_lines(self.rules.clone(), &at),
                false => self.with_lines(Rules::new(), &at),
            };
            if filter(&mut fields, files, (&at, &rules), budget)? {
                let text = yaml::print::goyaml(&Value::from_json(Json::Object(fields.clone())));
                files.write(file, text)?;
            }
            let below = BELOW.into_iter().flat_map(|field| entries(&fields, field));
            let below = below.filter_map(|path| at.join(path).ok());
            open.extend(below.filter(|path| files.is_dir(path)));
        }
        Ok(())
    }

    fn with_lines(&self, mut rules: Rules, dir: &TreePath) -> Rules {
        for line in &self.lines {
            rules.add_file(dir, line);
        }
        rules
    }
}

/// Returns the kustomization of a directory; `None` if there is none that can be read: the build says why.
fn kustomization(files: &Overlay, dir: &TreePath, budget: &Budget) -> Option<(TreePath, Map<String, Json>)> {
    let file = FILE_NAMES.iter().map(|name| dir.child(name));
    let file = file.into_iter().find(|file| files.is_file(file))?;
    let document = yaml::read::kustomize(files.read(&file).ok()?, budget).ok()?;
    match document.value.to_json() {
        Json::Object(fields) => Some((file, fields)),
        _ => None,
    }
}

fn entries<'f>(fields: &'f Map<String, Json>, field: &str) -> impl Iterator<Item = &'f str> {
    let list = fields.get(field).and_then(Json::as_array).into_iter().flatten();
    list.filter_map(Json::as_str)
}

/// Removes entries, and returns true if there were any. Missing ones stay: the build says that they are missing.
fn filter(
    fields: &mut Map<String, Json>,
    files: &Overlay,
    (dir, rules): (&TreePath, &Rules),
    budget: &Budget,
) -> Result<bool, BuildError> {
    let mut has_changed = false;
    for field in FIELDS {
        let Some(list) = fields.get_mut(field).and_then(Json::as_array_mut) else {
            continue;
        };
        let mut remaining = Vec::with_capacity(list.len());
        for entry in std::mem::take(list) {
            let path = entry.as_str().filter(|entry| !entry.contains("://"));
            let path = path.and_then(|entry| dir.join(entry).ok());
            let kind = path.as_ref().and_then(|path| files.kind(path).ok().flatten());
            let is_ignored = match (&path, kind) {
                (Some(path), Some(kind)) => {
                    rules.is_ignored(path, matches!(kind, tree::NodeKind::Dir), budget)?
                }
                _ => false,
            };
            match is_ignored {
                true => has_changed = true,
                false => remaining.push(entry),
            }
        }
        *list = remaining;
    }
    Ok(has_changed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tree::Mem;

    use super::*;

    const FILES: [(&str, &str); 8] = [
        (
            "app/kustomization.yaml",
            "resources: [a.yaml, a.enc.yaml, ../base, https://x.io/b.enc.yaml, gone.enc.yaml]\ncomponents: [part]\n",
        ),
        ("app/a.yaml", ""),
        ("app/a.enc.yaml", ""),
        ("app/part/kustomization.yaml", "kind: Component\n"),
        (
            "base/kustomization.yaml",
            "resources: [c.yaml, c.enc.yaml, ../app]\n",
        ),
        ("base/c.yaml", ""),
        ("base/c.enc.yaml", ""),
        ("other/kustomization.yaml", "resources: [d.enc.yaml]\n"),
    ];

    fn removed(left_out: &LeftOut) -> [Json; 2] {
        let tree = Mem::from_files(FILES.map(|(path, text)| (path, text.to_owned()))).unwrap();
        let files = Overlay::new(Arc::new(tree));
        let budget = Budget::default();
        let dir = TreePath::parse("app").unwrap();
        left_out.remove(&files, &dir, &budget).unwrap();
        ["app", "base"].map(|dir| {
            let dir = TreePath::parse(dir).unwrap();
            Json::Object(kustomization(&files, &dir, &budget).unwrap().1)
        })
    }

    #[test]
    fn lines_are_for_every_kustomization_of_the_build() {
        let left_out = LeftOut {
            lines: vec!["*.enc.yaml".to_owned()],
            ..LeftOut::default()
        };
        let [app, base] = removed(&left_out);
        let expected = ["a.yaml", "../base", "https://x.io/b.enc.yaml", "gone.enc.yaml"];
        assert_eq!(app["resources"], Json::from(expected.to_vec()));
        assert_eq!(base["resources"], Json::from(vec!["c.yaml", "../app"]));
    }

    #[test]
    fn rules_are_for_the_built_kustomization_alone() {
        let mut rules = Rules::new();
        rules.add_file(
            &TreePath::parse("app").unwrap(),
            "/part/\n*.enc.yaml\n!a.enc.yaml\n",
        );
        let left_out = LeftOut {
            rules,
            ..LeftOut::default()
        };
        let [app, base] = removed(&left_out);
        assert_eq!(app["components"], Json::Array(Vec::new()));
        assert_eq!(app["resources"].as_array().unwrap().len(), 5);
        assert_eq!(base["resources"].as_array().unwrap().len(), 3);
    }
}
