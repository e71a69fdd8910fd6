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
    /// Bytes of the largest object that was converted so far.
    converted: std::cell::Cell<u64>,
}

/// Memory of a node of a parsed file, in bytes, for each separator of its text.
const NODE_MEMORY: u64 = 128;

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
            converted: std::cell::Cell::default(),
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

    /// Counts the content of a file before it is parsed. Its nodes live until the end of the build, and may take 50 times its size.
    pub(crate) fn parses(&self, text: &[u8], file: &TreePath) -> Result<(), Error> {
        self.step(text.len() as u64 / 64, file)?;
        let nodes = yaml::read::most_nodes(text) as u64;
        let counted = self.budget.memory(nodes.saturating_mul(NODE_MEMORY));
        counted.map_err(ended(file))
    }

    /// Counts an object of `bytes` bytes that is converted to another form and back. Two forms of it live beside the object meanwhile;
    /// the next object takes the memory of the last.
    pub(crate) fn converts(&self, bytes: usize, file: &TreePath) -> Result<(), Error> {
        self.step(bytes as u64 / 16, file)?;
        let bytes = (bytes as u64).saturating_mul(3);
        let more = bytes.saturating_sub(self.converted.get());
        self.budget.memory(more).map_err(ended(file))?;
        self.converted.set(self.converted.get().max(bytes));
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use tree::{Mem, SharedMemory};

    use super::*;
    use crate::build;

    /// Counts the bytes that operations take.
    #[derive(Debug, Default)]
    struct Taken(AtomicU64);

    impl SharedMemory for Taken {
        fn take(&self, bytes: u64) -> bool {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            true
        }

        fn give_back(&self, bytes: u64) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }

        fn is_revoked(&self) -> bool {
            false
        }
    }

    /// Returns the memory that a build of a ConfigMap with a list of `items` items takes, with a number of JSON patches.
    fn memory_of(items: usize, patches: usize) -> u64 {
        let list = "1,".repeat(items);
        let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\nlist: [{list}]\n");
        let patch =
            "- {target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/x\", \"value\": 1}]'}\n";
        let kustomization = format!("resources: [a.yaml]\npatches:\n{}", patch.repeat(patches));
        let tree = Mem::from_files([("kustomization.yaml", kustomization), ("a.yaml", object)]).unwrap();
        let taken = Arc::new(Taken::default());
        let budget = Budget::default().with_memory(Arc::clone(&taken) as Arc<dyn SharedMemory>);
        build(&tree, &TreePath::root(), &Options::default(), &budget).unwrap();
        taken.0.load(Ordering::Relaxed)
    }

    #[test]
    fn nodes_of_files_and_patched_objects_take_shared_memory() {
        let (few, many) = (memory_of(1_000, 1), memory_of(100_000, 1));
        assert!(many > few + 99_000 * NODE_MEMORY, "{few}, {many}");
        let again = memory_of(100_000, 3);
        assert!(
            again < many + (1 << 16),
            "{many}, {again}: a patch takes the memory of the one before"
        );
    }
}
