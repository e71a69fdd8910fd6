//! The crates that programs are made of, as cargo resolves them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, NodeDep, Package, PackageId, TargetKind};

const TARGETS: &[&str] = &["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// All crates of the workspace and their dependencies.
#[derive(Debug)]
pub(crate) struct Crates {
    packages: BTreeMap<PackageId, Package>,
    /// Crates that a crate uses, and if they are linked into it.
    uses: BTreeMap<PackageId, BTreeMap<PackageId, bool>>,
}

/// A crate of a program.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) package: &'a Package,
    /// True if it runs only while the program is compiled: in a build script or a procedural macro.
    pub(crate) only_builds: bool,
    /// Positions of the crates that it uses.
    pub(crate) uses: Vec<usize>,
}

/// The crates of a program, sorted by name and version.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    /// Position of the crate with the program.
    pub(crate) main: usize,
    pub(crate) all: Vec<Part<'a>>,
}

impl Crates {
    /// Asks cargo for the locked dependencies on the targets of releases.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut options = vec!["--locked".to_owned()];
        for target in TARGETS {
            options.extend(["--filter-platform".to_owned(), (*target).to_owned()]);
        }
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .other_options(options)
            .exec()
            .context("cargo metadata failed: run `cargo metadata --locked` to see why")?;
        Self::of(metadata)
    }

    fn of(metadata: Metadata) -> Result<Self> {
        let resolve = metadata.resolve.context("cargo resolved no dependencies")?;
        let packages = metadata.packages.into_iter();
        let packages: BTreeMap<_, _> = packages.map(|package| (package.id.clone(), package)).collect();
        let mut uses = BTreeMap::new();
        for node in resolve.nodes {
            let used = node.deps.into_iter().filter_map(|dep| {
                let linked = is_linked(&dep, packages.get(&dep.pkg)?)?;
                Some((dep.pkg, linked))
            });
            uses.insert(node.id, used.collect());
        }
        Ok(Self { packages, uses })
    }

    /// Returns the crates of a program.
    ///
    /// # Errors
    /// If no crate has a program of this name.
    pub(crate) fn parts(&self, program: &str) -> Result<Parts<'_>> {
        let has_program = |package: &&Package| {
            let mut targets = package.targets.iter();
            package.source.is_none()
                && targets.any(|target| target.is_kind(TargetKind::Bin) && target.name == program)
        };
        let main = self.packages.values().find(has_program);
        let main = main.with_context(|| format!("no crate has the program {program}"))?;
        let linked = self.reachable(&main.id, true);
        let all = self.reachable(&main.id, false).into_iter();
        let mut all: Vec<&Package> = all.filter_map(|id| self.packages.get(id)).collect();
        // Identifiers have paths of the machine, so names decide.
        all.sort_by_key(|package| (&package.name, &package.version, &package.id));
        let positions = all
            .iter()
            .enumerate()
            .map(|(position, package)| (&package.id, position));
        let positions: BTreeMap<&PackageId, usize> = positions.collect();
        let main = *positions.get(&main.id).context("the program is missing")?;
        let parts = all.iter().copied().map(|package| Part {
            package,
            only_builds: !linked.contains(&package.id),
            uses: self.positions_of_used(&package.id, &positions),
        });
        let all = parts.collect();
        Ok(Parts { main, all })
    }

    fn positions_of_used(&self, id: &PackageId, positions: &BTreeMap<&PackageId, usize>) -> Vec<usize> {
        let used = self.uses.get(id).into_iter().flatten();
        let mut used: Vec<usize> = used.filter_map(|(id, _)| positions.get(id).copied()).collect();
        used.sort_unstable();
        used
    }

    /// Returns the crates that a crate needs, itself included: all, or only those that are linked into it.
    fn reachable<'a>(&'a self, from: &'a PackageId, only_linked: bool) -> BTreeSet<&'a PackageId> {
        let mut todo = vec![from];
        let mut all = BTreeSet::from([from]);
        while let Some(id) = todo.pop() {
            for (used, linked) in self.uses.get(id).into_iter().flatten() {
                if (*linked || !only_linked) && all.insert(used) {
                    todo.push(used);
                }
            }
        }
        all
    }
}

/// Returns true if a dependency becomes part of the program, false if it only builds, and nothing if it only tests.
fn is_linked(dep: &NodeDep, used: &Package) -> Option<bool> {
    let has = |wanted| dep.dep_kinds.iter().any(|dep| dep.kind == wanted);
    let mut targets = used.targets.iter();
    let is_macro = targets.any(|target| target.is_kind(TargetKind::ProcMacro));
    match (has(DependencyKind::Normal), has(DependencyKind::Build)) {
        (true, _) => Some(!is_macro),
        (false, true) => Some(false),
        (false, false) => None,
    }
}
