//! Temporary files of sources. They share the bytes of one volume, which evicts the Pod when it is full.

use std::{
    fs::File,
    io::{self, Write},
    ops::Deref,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use api::{Fault, Reason};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tree::{ByteBudget, ByteBudgetError, Share};

use crate::{
    blocking::{self, Unfinished, Work},
    builder::temp_dir,
};

/// Bytes that a file or directory takes on a disk beside its content.
const PER_FILE: u64 = 4 << 10;
/// Bytes that a byte of a tarball becomes: most become fewer. Others take more as they grow.
const GROWTH: u64 = 8;

/// A directory for temporary files, and the bytes that they take until it is removed.
#[derive(Debug)]
pub(crate) struct TempFiles {
    // Removed before its bytes are given back.
    dir: TempDir,
    space: Mutex<Space>,
}

#[derive(Debug)]
struct Space {
    share: Share,
    /// Bytes that the files will take, as far as they are known.
    expected: u64,
    /// The first refusal of bytes.
    refused: Option<ByteBudgetError>,
}

impl TempFiles {
    fn new(share: Share, above: &Path) -> Result<Self, Fault> {
        let space = Space {
            share,
            expected: 0,
            refused: None,
        };
        Ok(Self {
            dir: temp_dir(above)?,
            space: Mutex::new(space),
        })
    }

    /// Returns the directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Notes that a file of so many bytes follows, or what a tarball of them unpacks to. Nothing is taken yet.
    pub(crate) fn expect(&self, bytes: u64) {
        let mut space = self.space();
        space.expected = space.expected.saturating_add(bytes).saturating_add(PER_FILE);
    }

    /// Notes that a tarball of so many bytes will be unpacked to `most` at most. Nothing is taken yet.
    pub(crate) fn expect_unpacked(&self, bytes: u64, most: u64) {
        self.expect(bytes.saturating_mul(GROWTH).min(most));
    }

    /// Takes the bytes of a file or directory that will be made.
    ///
    /// # Errors
    /// Fails if the bytes can't be had.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        self.grow(bytes.saturating_add(PER_FILE))
    }

    /// Creates a new file, which takes its bytes before they are written.
    ///
    /// # Errors
    /// Fails if it is there already, or has no space.
    pub(crate) fn create(&self, name: &str) -> io::Result<TempFile<'_>> {
        self.take(0).map_err(io::Error::other)?;
        let file = File::create_new(self.path().join(name))?;
        Ok(TempFile { file, files: self })
    }

    /// Removes a file, and gives its bytes back.
    ///
    /// # Errors
    /// Fails if it can't be removed.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path().join(name);
        let bytes = path.metadata()?.len();
        std::fs::remove_file(path)?;
        self.space().share.shrink(bytes.saturating_add(PER_FILE));
        Ok(())
    }

    fn grow(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        let mut space = self.space();
        let grown = space.share.try_grow(bytes);
        if let Err(why) = grown {
            // What it was refused is the least that it needs.
            space.expected = space.expected.max(space.share.bytes().saturating_add(bytes));
            space.refused.get_or_insert(why);
        }
        grown
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A temporary file that is being written.
pub(crate) struct TempFile<'a> {
    file: File,
    files: &'a TempFiles,
}

impl Write for TempFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files.grow(bytes.len() as u64).map_err(io::Error::other)?;
        // What is not written now will be soon.
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Something whose content is in temporary files, which live as long as it.
#[derive(Debug)]
pub(crate) struct Filled<T> {
    pub(crate) content: T,
    pub(crate) files: TempFiles,
}

impl<T> Deref for Filled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

/// Work that needs temporary files.
pub(crate) struct Filling<'a> {
    pub(crate) runtime: &'a Handle,
    pub(crate) work: &'a Work,
    /// The bytes of all tenants.
    pub(crate) disk: &'a ByteBudget,
    /// The directory to make one in.
    pub(crate) above: &'a Path,
    /// Files that the work has already.
    pub(crate) beside: Option<&'a TempFiles>,
    /// The fault of files that have no space.
    pub(crate) refusal: Refusal<'a>,
}

/// The words of the fault of files that have no space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal<'a> {
    /// Beginning of the message.
    pub(crate) failed: &'a str,
    /// Reason of the fault.
    pub(crate) reason: Reason,
    /// Advice to the user about files that need more than there will ever be.
    pub(crate) remedy: &'a str,
}

impl Filling<'_> {
    /// Runs `fill` with a directory of its own. If others hold the bytes that it needs, everything is removed and given back, and it runs
    /// once more after a wait for all of them at once. Nobody who holds some waits: work that has files already is only tried again.
    ///
    /// # Errors
    /// The fault of `fill`, or that of files that have no space.
    pub(crate) fn run<T>(
        &self,
        mut fill: impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Filled<T>, Fault> {
        let tenant = self.disk.tenant(&self.work.namespace);
        let Some(beside) = self.beside else {
            let first = self.fill(tenant.share(), &mut fill)?;
            let needed = match first {
                Attempt::Done(filled) => return Ok(filled),
                Attempt::Held(needed) => needed.min(tenant.most()),
            };
            let mut share = tenant.share();
            self.reserve(&mut share, needed)?;
            return self.last(share, &mut fill);
        };
        let share = beside.space().share.beside();
        self.last(share, &mut fill)
    }

    /// Runs it for the last time in this pass.
    fn last<T>(
        &self,
        share: Share,
        fill: &mut impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Filled<T>, Fault> {
        match self.fill(share, fill)? {
            Attempt::Done(filled) => Ok(filled),
            Attempt::Held(_) => Err(self.refusal.fault(ByteBudgetError::InUse)),
        }
    }

    fn fill<T>(
        &self,
        share: Share,
        fill: &mut impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Attempt<T>, Fault> {
        let files = TempFiles::new(share, self.above)?;
        let filled = fill(&files);
        let mut space = files.space();
        match (filled, space.refused) {
            (Ok(content), _) => {
                // What was reserved and isn't used.
                space.share.shrink(0);
                drop(space);
                Ok(Attempt::Done(Filled { content, files }))
            }
            (Err(_), Some(ByteBudgetError::InUse)) => Ok(Attempt::Held(space.expected)),
            (Err(_), Some(why)) => Err(self.refusal.fault(why)),
            (Err(fault), None) => Err(fault),
        }
    }

    /// Waits for bytes, until the timeout or the cancellation of the work.
    fn reserve(&self, share: &mut Share, bytes: u64) -> Result<(), Fault> {
        let reserved = blocking::wait(self.runtime, self.work, share.reserve(bytes));
        reserved.map_or_else(
            |unfinished| match unfinished {
                Unfinished::Timeout(time) => Err(self.refusal.fault(ByteBudgetError::Busy(time))),
                Unfinished::Cancelled => {
                    let message = format!("{}: {unfinished}", self.refusal.failed);
                    Err(Fault::retry(self.refusal.reason, message))
                }
            },
            |reserved| reserved.map_err(|why| self.refusal.fault(why)),
        )
    }
}

impl Refusal<'_> {
    fn fault(&self, why: ByteBudgetError) -> Fault {
        let Self { failed, remedy, .. } = self;
        let message = match why {
            ByteBudgetError::TooMuch { limit } => {
                format!("{failed}: it needs more than {limit} bytes of temporary files: {remedy}")
            }
            ByteBudgetError::Busy(time) => format!(
                "{failed}: other work held the space for temporary files for {time:?}; it will be tried again"
            ),
            ByteBudgetError::InUse => {
                format!("{failed}: other work holds the space for temporary files; it will be tried again")
            }
        };
        Fault::retry(self.reason, message)
    }
}

/// The result of work that could be done.
enum Attempt<T> {
    Done(Filled<T>),
    /// Others hold the space; so many bytes were needed.
    Held(u64),
}

#[cfg(test)]
mod tests;
