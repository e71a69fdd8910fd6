//! Packing a fetched commit.

use std::{
    collections::HashMap,
    fs::File,
    io::{Cursor, Read},
    path::Path,
    sync::Arc,
};

use api::{Fault, Reason};
use artifact::pack::{self, IGNORE_FILE, Item, MAX_RULE_BYTES, Packed, PathKind, has_long_rule};
use artifact::storage::ArtifactWriter;
use git::{Node, NodeKind, Snapshot};
use tree::{Budget, TreePath};

use super::{
    checkout::{Part, Sparse, UNPACKED_BYTES},
    failure::fault,
    include::{Include, IncludedPath, Includes},
    shared::Contents,
};
use crate::source_kind::{BuildError, PackOptions, Verification};

const IGNORE_BYTES: usize = 1 << 20;
const IGNORE_LINES: usize = 5000;

pub(crate) struct Fetched {
    /// The fetched commit; another one than the resolved one, if its tag was passed over.
    pub(super) head: git::Resolved,
    pub(super) parts: Vec<Part>,
    pub(super) sparse: Sparse,
    pub(super) included: Includes,
    pub(super) verification: Option<Verification>,
    /// Removes the temporary directories of the parts, and is dropped after them.
    pub(super) _contents: Arc<Contents>,
}

enum Content<'a> {
    Commit(&'a Snapshot, &'a Node),
    File(&'a Path),
}

/// Reads the commits of an artifact. Only the current one caches decoded objects.
#[derive(Default)]
struct Reader<'a>(Option<(&'a Snapshot, Snapshot)>);

impl<'a> Reader<'a> {
    fn read(&mut self, snapshot: &'a Snapshot, node: &Node) -> Result<Vec<u8>, git::Error> {
        let (_, reading) = match self.0.take() {
            Some((last, reading)) if std::ptr::eq(last, snapshot) => self.0.insert((last, reading)),
            // This drops the cache of the last commit.
            _ => self.0.insert((snapshot, snapshot.clone())),
        };
        let mut buffer = Vec::new();
        reading.read(node, &mut buffer)?;
        Ok(buffer)
    }
}

impl<'a> Content<'a> {
    fn open(&self, reader: &mut Reader<'a>) -> Result<(u64, Box<dyn Read>), Fault> {
        match self {
            Self::Commit(snapshot, node) => {
                let buffer = reader.read(snapshot, node).map_err(|error| fault(&error))?;
                Ok((buffer.len() as u64, Box::new(Cursor::new(buffer))))
            }
            Self::File(path) => {
                let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
                let (size, file) = opened.map_err(|error| {
                    let message = format!("failed to read an included file: {error}");
                    Fault::retry(Reason::CopyFailure, message)
                })?;
                Ok((size, Box::new(file)))
            }
        }
    }
}

pub(super) fn pack<'a>(
    fetched: &'a Fetched,
    options: &PackOptions,
    out: &mut ArtifactWriter<'_>,
) -> Result<Packed, BuildError> {
    let budget = &options.budget;
    let items = items(fetched)?;
    let ignore = options.ignore.as_deref();
    let mut reader = Reader::default();
    let rules = pack::rules(ignore_files(&items, ignore, (budget, &mut reader))?, ignore);
    let items = options.planned(pack::plan(items, &rules, budget)?);
    let open = |item: &Item<Content<'a>>| {
        budget.check()?;
        Ok::<_, BuildError>(item.content.open(&mut reader)?)
    };
    pack::pack_streams(&items, open, options.algorithm, UNPACKED_BYTES, out)
}

fn items(fetched: &Fetched) -> Result<Vec<Item<Content<'_>>>, Fault> {
    let mut items = Vec::new();
    for (at, part) in fetched.parts.iter().enumerate() {
        for node in part.nodes.iter() {
            let path = part.path(node);
            if !fetched.sparse.keeps(&path, node.kind) {
                continue;
            }
            let kind = match node.kind {
                NodeKind::Dir => PathKind::Dir,
                NodeKind::File { executable } => PathKind::File { executable },
                NodeKind::Submodule if is_fetched(&fetched.parts, at, &path) => PathKind::Dir,
                NodeKind::Link | NodeKind::Submodule => PathKind::Other,
                NodeKind::NotUtf8 => PathKind::NotUtf8,
            };
            let content = Content::Commit(&part.snapshot, node);
            items.push(Item { path, kind, content });
        }
    }
    for (include, paths) in fetched.included.iter() {
        add_include(&mut items, include, paths)?;
    }
    Ok(items)
}

fn is_fetched(parts: &[Part], above: usize, path: &TreePath) -> bool {
    parts.iter().skip(above + 1).any(|part| part.mount == *path)
}

fn add_include<'a>(
    items: &mut Vec<Item<Content<'a>>>,
    include: &Include,
    paths: &'a [IncludedPath],
) -> Result<(), Fault> {
    let kinds: HashMap<&TreePath, PathKind> = items.iter().map(|item| (&item.path, item.kind)).collect();
    let target = include.target();
    if target.is_root() || kinds.contains_key(target) {
        return Err(include.exists());
    }
    // The directories above the target may be new.
    let mut above = Vec::new();
    let mut at = target.parent();
    while let Some(path) = at.filter(|path| !path.is_root()) {
        match kinds.get(&path) {
            Some(PathKind::Dir) => {}
            Some(_) => return Err(include.exists()),
            None => above.push(path.clone()),
        }
        at = path.parent();
    }
    let nothing = Path::new("");
    items.extend(above.into_iter().map(|path| Item {
        path,
        kind: PathKind::Dir,
        content: Content::File(nothing),
    }));
    items.extend(paths.iter().map(|found| Item {
        path: found.path.clone(),
        kind: found.kind,
        content: Content::File(&found.file),
    }));
    Ok(())
}

fn ignore_files<'a>(
    items: &[Item<Content<'a>>],
    spec: Option<&str>,
    (budget, reader): (&Budget, &mut Reader<'a>),
) -> Result<Vec<(TreePath, String)>, BuildError> {
    let mut files = Vec::new();
    let (mut bytes, mut lines) = (0, spec.map_or(0, |spec| spec.lines().count()));
    for item in items {
        budget.check()?;
        let is_file = matches!(item.kind, PathKind::File { .. });
        let Some(dir) = item
            .path
            .parent()
            .filter(|_| is_file && item.path.name() == IGNORE_FILE)
        else {
            continue;
        };
        let (size, content) = item.content.open(reader)?;
        let too_long = || invalid_ignore(&format!("there are more than {IGNORE_BYTES} bytes of them"));
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        bytes = size.saturating_add(bytes);
        if bytes > IGNORE_BYTES {
            return Err(too_long().into());
        }
        let mut text = String::new();
        { content }
            .take(IGNORE_BYTES as u64)
            .read_to_string(&mut text)
            .map_err(|_| invalid_ignore(&format!("'{}' is not UTF-8", item.path)))?;
        lines += text.lines().count();
        files.push((dir, text));
    }
    if lines > IGNORE_LINES {
        return Err(invalid_ignore(&format!("there are more than {IGNORE_LINES} lines of them")).into());
    }
    if files
        .iter()
        .map(|(_, text)| text.as_str())
        .chain(spec)
        .any(has_long_rule)
    {
        return Err(invalid_ignore(&format!("a line has more than {MAX_RULE_BYTES} bytes")).into());
    }
    Ok(files)
}

fn invalid_ignore(why: &str) -> Fault {
    let message = format!("failed to load source ignore patterns from repository: {why}");
    Fault::retry(Reason::SourceIgnoreError, message)
}
