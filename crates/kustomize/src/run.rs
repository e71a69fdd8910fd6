//! The state of one build: options, budget, schema, warnings and counters.

use tree::{Budget, Exceeded, TreePath};

use crate::{
    Error,
    options::{Options, Warning},
    schema::Schema,
};

/// The state that all parts of one build share.
pub(crate) struct Run<'a> {
    pub(crate) options: Options<'a>,
    pub(crate) budget: &'a Budget,
    pub(crate) schema: std::cell::RefCell<Schema>,
    pub(crate) warnings: std::cell::RefCell<Vec<Warning>>,
    /// Bytes read from files.
    read: std::cell::Cell<u64>,
    /// Bytes of the compiled patterns of the build.
    patterns: std::cell::Cell<u64>,
}

/// Maximum memory of all compiled patterns of a build, in bytes: some ten thousand usual ones.
const MAX_PATTERNS: u64 = 64 << 20;

impl<'a> Run<'a> {
    pub(crate) fn new(options: Options<'a>, budget: &'a Budget) -> Self {
        Self {
            options,
            budget,
            schema: std::cell::RefCell::default(),
            warnings: std::cell::RefCell::default(),
            read: std::cell::Cell::default(),
            patterns: std::cell::Cell::default(),
        }
    }

    pub(crate) fn warn(&self, file: &TreePath, text: impl Into<String>) {
        let (file, text) = (file.clone(), text.into());
        self.warnings.borrow_mut().push(Warning { file, text });
    }

    pub(crate) fn step(&self, n: u64, dir: &TreePath) -> Result<(), Error> {
        self.budget.step(n).map_err(ended(dir))
    }

    /// Checks deadline and cancellation, however few steps there were.
    pub(crate) fn check(&self, dir: &TreePath) -> Result<(), Error> {
        self.budget.check().map_err(ended(dir))
    }

    /// Counts bytes that are written into objects: a string counts for each field that it is set in.
    pub(crate) fn grow(&self, bytes: usize, dir: &TreePath) -> Result<(), Error> {
        self.budget.output(bytes as u64).map_err(ended(dir))
    }

    /// Counts a compiled pattern. Transformers live until their kustomization is done, so none is released.
    pub(crate) fn compiled(&self, bytes: usize, dir: &TreePath) -> Result<(), Error> {
        let all = self.patterns.get().saturating_add(bytes as u64);
        self.patterns.set(all);
        self.within("bytes of compiled patterns in one build", all, MAX_PATTERNS, dir)
    }

    /// Counts the content of a file. A build holds only the content of files, so that this bounds its memory: a file that is
    /// named a thousand times counts a thousand times.
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

    /// Fails if there are more objects than a build may have.
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

/// Makes the error of a budget that ended in a directory.
fn ended(dir: &TreePath) -> impl FnOnce(Exceeded) -> Error {
    let dir = dir.clone();
    move |source| Error::Budget { dir, source }
}
