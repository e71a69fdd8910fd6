//! The directories of a new commit.

use std::collections::BTreeMap;

use gix::{
    ObjectId,
    bstr::BString,
    objs::{
        Kind, Tree, TreeRef, WriteTo as _,
        tree::{Entry, EntryKind},
    },
};
use tree::TreePath;

use super::{HASH, pack::Objects};
use crate::{Error, Snapshot, error::chain};

/// Files and directories to write, by name.
#[derive(Default)]
struct Changes<'a> {
    files: BTreeMap<&'a str, &'a [u8]>,
    dirs: BTreeMap<&'a str, Changes<'a>>,
}

/// Adds files and the directories above them to the objects, and returns the root.
pub(super) fn write(
    base: Option<&Snapshot>,
    files: &[(String, Vec<u8>)],
    objects: &mut Objects,
) -> Result<ObjectId, Error> {
    let mut root = Changes::default();
    for (path, content) in files {
        check(path)?;
        let mut dir = &mut root;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for part in above.split('/').filter(|part| !part.is_empty()) {
            dir = dir.dirs.entry(part).or_default();
        }
        dir.files.insert(name, content);
    }
    root.write(base, base.map(Snapshot::tree), objects)
}

/// Refuses paths that a checkout could not have, or that would change Git's own files.
fn check(path: &str) -> Result<(), Error> {
    let refused = |why| Error::RefusedPath {
        path: path.to_owned(),
        why,
    };
    match TreePath::parse(path) {
        Ok(parsed) if parsed.as_str() == path && !parsed.is_root() => {}
        _ => return Err(refused("it is not a relative path within the repository")),
    }
    match path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        true => Err(refused("it is within a directory of Git itself")),
        false => Ok(()),
    }
}

impl Changes<'_> {
    fn write(
        &self,
        base: Option<&Snapshot>,
        tree: Option<ObjectId>,
        objects: &mut Objects,
    ) -> Result<ObjectId, Error> {
        let mut entries = match (base, tree) {
            (Some(base), Some(tree)) => entries(base, tree)?,
            _ => Vec::new(),
        };
        for (name, content) in &self.files {
            let id = objects.add(Kind::Blob, content.to_vec())?;
            let present = entries.iter().find(|entry| entry.filename == **name);
            let kind = match present.map(|entry| entry.mode.kind()) {
                Some(EntryKind::BlobExecutable) => EntryKind::BlobExecutable,
                _ => EntryKind::Blob,
            };
            set(&mut entries, name, kind, id);
        }
        for (name, changes) in &self.dirs {
            let present = entries
                .iter()
                .find(|entry| entry.filename == **name && entry.mode.is_tree());
            let present = present.map(|entry| entry.oid);
            let id = changes.write(base, present, objects)?;
            set(&mut entries, name, EntryKind::Tree, id);
        }
        entries.sort();
        let mut bytes = Vec::new();
        let written = Tree { entries }.write_to(&mut bytes);
        written.map_err(|error| Error::Disk(error.to_string()))?;
        objects.add(Kind::Tree, bytes)
    }
}

fn entries(base: &Snapshot, id: ObjectId) -> Result<Vec<Entry>, Error> {
    let bytes = base.tree_bytes(id)?;
    let tree = TreeRef::from_bytes(&bytes, HASH).map_err(|error| Error::Object {
        id: id.to_string(),
        why: chain(&error),
    })?;
    Ok(Tree::from(tree).entries)
}

fn set(entries: &mut Vec<Entry>, name: &str, kind: EntryKind, id: ObjectId) {
    entries.retain(|entry| entry.filename != *name);
    entries.push(Entry {
        mode: kind.into(),
        filename: BString::from(name),
        oid: id,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_the_repository_are_refused() {
        for path in [
            "",
            ".",
            "/a",
            "../a",
            "a/../b",
            "a//b",
            ".git/config",
            "a/.GIT/hooks/x",
        ] {
            assert!(check(path).is_err(), "{path}");
        }
        assert!(check("clusters/one/flux-system/gotk-sync.yaml").is_ok());
    }

    #[test]
    fn directories_sort_as_if_their_names_ended_with_a_slash() {
        let mut objects = Objects::default();
        let files = ["a.b", "a/x", "a0"].map(|path| (path.to_owned(), b"1\n".to_vec()));
        let id = write(None, &files, &mut objects).unwrap();
        // Computed by `git write-tree` of these files.
        let same = write(
            None,
            &[files[2].clone(), files[0].clone(), files[1].clone()],
            &mut objects,
        )
        .unwrap();
        assert_eq!(id, same);
    }
}
