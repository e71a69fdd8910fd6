//! How a build is done, and what it may ask for.

use std::sync::Arc;

use bytes::Bytes;
use tree::{Budget, Exceeded, Tree, TreePath};

use crate::Error;

/// Which files a kustomization may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadRestriction {
    /// Those in and below its own directory.
    #[default]
    RootOnly,
    /// All of the tree.
    None,
}

/// In which order the objects of a build come out, when its kustomization doesn't say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As they were accumulated.
    #[default]
    Accumulated,
    /// By kind, as the command line has it.
    Legacy,
}

/// What `openapi.path` does to the built-in schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenApi {
    /// It takes its place, as on the command line.
    #[default]
    Replace,
    /// It is added, as in Flux.
    Add,
}

/// The version whose behaviour is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Profile {
    /// kustomize 5.8.1.
    #[default]
    V5_8_1,
    /// kustomize 5.8.3.
    V5_8_3,
}

impl Profile {
    /// The version, as `app.kubernetes.io/managed-by` has it.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::V5_8_1 => "v5.8.1",
            Self::V5_8_3 => "v5.8.3",
        }
    }
}

/// A directory of a repository that was fetched.
#[derive(Clone)]
pub struct Fetched {
    /// The whole repository.
    pub tree: Arc<dyn Tree>,
    /// The directory in it.
    pub dir: TreePath,
}

/// Gets what is on other machines. Without it, nothing is fetched and remote entries are refused by name.
pub trait Fetch: Send + Sync {
    /// A repository, by an address that [`crate::remote::Repository`] took apart.
    ///
    /// # Errors
    /// When it can't be had; the text goes into the error of the build and holds no secret.
    fn repository(&self, repository: &crate::remote::Repository, budget: &Budget) -> Result<Fetched, String>;

    /// A file, by its http or https address.
    ///
    /// # Errors
    /// As [`Self::repository`].
    fn file(&self, url: &str, budget: &Budget) -> Result<Bytes, String>;
}

/// A Helm chart to be inflated: an entry of `helmCharts` with the `helmGlobals`, paths relative to the kustomization.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The entry: its fields as kustomize documents them, with `chartHome` and `configHome` of the globals.
    pub config: yaml::Value,
}

/// Inflates Helm charts. Without it, `helmCharts` are refused by name.
pub trait InflateChart: Send + Sync {
    /// The manifests that a chart gives, as YAML; `dir` of `tree` is the directory of the kustomization.
    ///
    /// # Errors
    /// When the chart can't be had or rendered; the text goes into the error of the build and holds no secret.
    fn inflate(
        &self,
        chart: &Chart,
        tree: &dyn Tree,
        dir: &TreePath,
        budget: &Budget,
    ) -> Result<String, String>;
}

/// How a build is done.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which files a kustomization may name.
    pub load_restriction: LoadRestriction,
    /// In which order the objects come out.
    pub order: Order,
    /// What `openapi.path` does.
    pub openapi: OpenApi,
    /// Whose behaviour is wanted.
    pub profile: Profile,
    /// Whether every object gets the label `app.kubernetes.io/managed-by`.
    pub managed_by_label: bool,
    /// Gets what is on other machines.
    pub fetch: Option<&'a dyn Fetch>,
    /// Inflates Helm charts.
    pub helm: Option<&'a dyn InflateChart>,
}

/// What a build says beside its objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kustomization that it is about.
    pub file: TreePath,
    /// What it says, as kustomize does.
    pub text: String,
}

/// What is shared by all parts of one build.
pub(crate) struct Run<'a> {
    pub(crate) options: Options<'a>,
    pub(crate) budget: &'a Budget,
    pub(crate) schema: std::cell::RefCell<crate::schema::Schema>,
    pub(crate) warnings: std::cell::RefCell<Vec<Warning>>,
    /// How much of files has been read.
    read: std::cell::Cell<u64>,
}

impl<'a> Run<'a> {
    /// A new build.
    pub(crate) fn new(options: Options<'a>, budget: &'a Budget) -> Self {
        Self {
            options,
            budget,
            schema: std::cell::RefCell::default(),
            warnings: std::cell::RefCell::default(),
            read: std::cell::Cell::default(),
        }
    }

    /// Says something beside the objects.
    pub(crate) fn warn(&self, file: &TreePath, text: impl Into<String>) {
        let (file, text) = (file.clone(), text.into());
        self.warnings.borrow_mut().push(Warning { file, text });
    }

    /// Counts work, and ends it when the budget does.
    pub(crate) fn step(&self, n: u64, dir: &TreePath) -> Result<(), Error> {
        self.budget.step(n).map_err(ended(dir))
    }

    /// Ends the work when its time is over, however few steps there were.
    pub(crate) fn check(&self, dir: &TreePath) -> Result<(), Error> {
        self.budget.check().map_err(ended(dir))
    }

    /// Counts what is written into objects again and again: a text, for each field that it is set in.
    pub(crate) fn grow(&self, bytes: usize, dir: &TreePath) -> Result<(), Error> {
        self.budget.output(bytes as u64).map_err(ended(dir))
    }

    /// Counts the content of a file that was read. All that a build holds is made from such, so that this is the bound of
    /// its memory: a file that is named a thousand times counts as often.
    pub(crate) fn took(&self, bytes: usize, file: &TreePath) -> Result<(), Error> {
        let read = self.read.get().saturating_add(bytes as u64);
        self.read.set(read);
        self.within(
            "bytes of files in one build",
            read,
            self.budget.limits().bytes,
            file,
        )
    }

    /// Refuses more objects than a build may have, before it holds many times as many.
    pub(crate) fn fits(&self, objects: usize, dir: &TreePath) -> Result<(), Error> {
        let limit = self.budget.limits().objects;
        self.within("objects", objects as u64, limit, dir)
    }

    fn within(&self, what: &'static str, n: u64, limit: u64, dir: &TreePath) -> Result<(), Error> {
        if n <= limit {
            return Ok(());
        }
        Err(ended(dir)(Exceeded::Limit { what, limit }))
    }
}

/// The error of a budget that ended while a directory was built.
fn ended(dir: &TreePath) -> impl FnOnce(Exceeded) -> Error {
    let dir = dir.clone();
    move |source| Error::Budget { dir, source }
}
