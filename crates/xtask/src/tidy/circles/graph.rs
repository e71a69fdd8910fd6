//! The graph of imports between the files of a crate, and its circles. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Source,
    imports::{self, Names, Path},
};
use crate::tidy::{lexer::Kind, test_code::production};

/// Limit of re-exports of re-exports that are followed.
const DEEPEST: usize = 16;

/// The imported files of each file, with the names for which it does so.
pub(super) type Edges<'a> = BTreeMap<&'a str, BTreeMap<&'a str, BTreeSet<&'a str>>>;

struct Module<'a> {
    file: &'a str,
    names: Names<'a>,
}

/// The modules of a crate by their paths; the root's is empty.
pub(super) struct Crate<'a> {
    modules: BTreeMap<Vec<&'a str>, Module<'a>>,
}

/// The end of a path.
enum Target<'a> {
    Module,
    Name(&'a str),
    /// Another crate's, or unknown.
    Other,
}

impl<'a> Crate<'a> {
    pub(super) fn new(root: &str, sources: &[&'a Source<'a>]) -> Self {
        let mut modules = BTreeMap::new();
        // With a library, `main.rs` is a crate of its own, of one file.
        let library = sources
            .iter()
            .any(|source| source.path.strip_prefix(root) == Some("lib.rs"));
        for source in sources {
            let Some(below) = source.path.strip_prefix(root) else {
                continue;
            };
            if library && (below == "main.rs" || below.starts_with("bin/")) {
                continue;
            }
            let path = module_path(below);
            let lines: BTreeSet<usize> = production(source.text).map(|(line, _)| line).collect();
            let is_code = |kind: &Kind<'_>| !matches!(kind, Kind::Comment(_));
            let tokens: Vec<_> = source
                .tokens
                .iter()
                .filter(|token| is_code(&token.kind) && lines.contains(&token.line))
                .copied()
                .collect();
            let names = imports::read(&path, &tokens);
            modules.insert(
                path,
                Module {
                    file: source.path,
                    names,
                },
            );
        }
        Self { modules }
    }

    pub(super) fn edges(&self) -> Edges<'a> {
        let mut edges = Edges::new();
        for (path, module) in &self.modules {
            let names = &module.names;
            let imports = names.imports.iter().filter(|import| {
                // A re-export does not use the name.
                !import.public || import.name.is_some_and(|name| names.words.contains(name))
            });
            let used = imports.map(|import| (&import.path, import.name.is_none()));
            for (used, glob) in used.chain(names.paths.iter().map(|path| (path, false))) {
                let name = used.segments.last().copied().unwrap_or("*");
                let target = match self.resolve(path, used, DEEPEST) {
                    Target::Name(file) => Some((file, name)),
                    Target::Module if glob => {
                        self.modules.get(&used.segments).map(|module| (module.file, "*"))
                    }
                    Target::Module | Target::Other => None,
                };
                if let Some((file, name)) = target.filter(|(file, _)| *file != module.file) {
                    edges
                        .entry(module.file)
                        .or_default()
                        .entry(file)
                        .or_default()
                        .insert(name);
                }
            }
        }
        edges
    }

    fn resolve(&self, here: &[&'a str], path: &Path<'a>, deepest: usize) -> Target<'a> {
        let mut at = if path.absolute { Vec::new() } else { here.to_vec() };
        let mut rest = path.segments.iter().copied();
        let mut first = !path.absolute;
        while let Some(segment) = rest.next() {
            let Some(module) = self.modules.get(&at) else {
                return Target::Other;
            };
            at.push(segment);
            if self.modules.contains_key(&at) {
                first = false;
                continue;
            }
            at.pop();
            let names = &module.names;
            let import = names.imports.iter().find(|import| import.name == Some(segment));
            // `use a::a` names another crate, not itself.
            if let Some(import) = import.filter(|import| deepest > 0 && import.path.segments != [segment]) {
                let mut path = import.path.clone();
                path.segments.extend(rest);
                return self.resolve(&at, &path, deepest - 1);
            }
            if names.defined.contains(segment) {
                return Target::Name(module.file);
            }
            return match self.glob(&at, segment, deepest) {
                Some(file) => Target::Name(file),
                None if first => Target::Other,
                None => Target::Name(module.file),
            };
        }
        Target::Module
    }

    /// Finds the file that defines a name behind the globs of a module.
    fn glob(&self, at: &[&'a str], segment: &'a str, deepest: usize) -> Option<&'a str> {
        let deepest = deepest.checked_sub(1)?;
        let globs = self
            .modules
            .get(at)?
            .names
            .imports
            .iter()
            .filter(|import| import.name.is_none());
        globs.into_iter().find_map(|glob| {
            let base = if glob.path.absolute { &[] } else { at };
            let from: Vec<&str> = base.iter().chain(&glob.path.segments).copied().collect();
            let names = &self.modules.get(&from)?.names;
            let known = names.defined.contains(segment)
                || names
                    .imports
                    .iter()
                    .any(|import| import.public && import.name == Some(segment));
            let path = Path {
                absolute: true,
                segments: from.into_iter().chain([segment]).collect(),
            };
            match known.then(|| self.resolve(&[], &path, deepest))? {
                Target::Name(file) => Some(file),
                Target::Module | Target::Other => None,
            }
        })
    }
}

fn module_path(below: &str) -> Vec<&str> {
    let mut path: Vec<&str> = below.trim_end_matches(".rs").split('/').collect();
    if matches!(path.last(), Some(&("mod" | "lib" | "main"))) {
        path.pop();
    }
    path
}

/// Returns the sets of files that import each other, over any number of steps.
pub(super) fn circles<'a>(edges: &Edges<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|file| (*file, reach(edges, file))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (file, files) in &reached {
        if circles.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let returns = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(file));
        let circle: BTreeSet<&str> = files.iter().filter(returns).copied().collect();
        if !circle.is_empty() {
            circles.push(circle);
        }
    }
    circles
}

/// Returns the files that a file imports, over any number of steps.
fn reach<'a>(edges: &Edges<'a>, file: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut stack = vec![file];
    while let Some(file) = stack.pop() {
        for used in edges.get(file).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(*used) {
                stack.push(used);
            }
        }
    }
    found
}
