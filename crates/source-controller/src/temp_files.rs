//! Temporary files of sources. They share the bytes of one volume, which evicts the Pod when it is full.

use std::{
    fs::File,
    io::{self, Write},
    ops::Deref,
    path::Path,
};

use api::{Fault, Reason};
use limits::{ByteBudget, ByteBudgetError, Share};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::{
    blocking::{self, Ended, Job, Unfinished},
    builder::temp_dir,
};

/// Assumed bytes of a file or directory on a disk beside its content.
const PER_FILE: u64 = 4 << 10;
/// Assumed growth of a tarball when it is unpacked. If it grows more, the files take further bytes.
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
    expected: u64,
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

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Announces a file of `bytes`, or the files that a tarball of them unpacks to. Nothing is taken yet.
    pub(crate) fn expect(&self, bytes: u64) {
        let mut space = self.space.lock();
        space.expected = space.expected.saturating_add(bytes).saturating_add(PER_FILE);
    }

    /// Announces that a tarball of `bytes` will be unpacked to `most` at most. Nothing is taken yet.
    pub(crate) fn expect_unpacked(&self, bytes: u64, most: u64) {
        self.expect(bytes.saturating_mul(GROWTH).min(most));
    }

    /// Takes the bytes of a file or directory before it is made. Fails if there are too few.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        self.grow(bytes.saturating_add(PER_FILE))
    }

    /// Creates a new file, which takes its bytes before they are written. Fails if it exists, or has no space.
    pub(crate) fn create(&self, name: &str) -> io::Result<TempFile<'_>> {
        self.take(0).map_err(io::Error::other)?;
        let file = File::create_new(self.path().join(name))?;
        Ok(TempFile { file, files: self })
    }

    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path().join(name);
        let bytes = path.metadata()?.len();
        std::fs::remove_file(path)?;
        self.space.lock().share.shrink(bytes.saturating_add(PER_FILE));
        Ok(())
    }

    fn grow(&self, bytes: u64) -> Result<(), ByteBudgetError> {
        let mut space = self.space.lock();
        let grown = space.share.try_grow(bytes);
        if let Err(why) = grown {
            // The refused bytes are the least that it needs.
            space.expected = space.expected.max(space.share.bytes().saturating_add(bytes));
            space.refused.get_or_insert(why);
        }
        grown
    }
}

pub(crate) struct TempFile<'a> {
    file: File,
    files: &'a TempFiles,
}

impl Write for TempFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files.grow(bytes.len() as u64).map_err(io::Error::other)?;
        // Bytes that are not written now will be soon.
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A value whose content is in temporary files, with the same lifetime.
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

/// A job that needs temporary files.
pub(crate) struct Filling<'a> {
    pub(crate) runtime: &'a Handle,
    pub(crate) job: &'a Job,
    pub(crate) disk: &'a ByteBudget,
    pub(crate) above: &'a Path,
    pub(crate) beside: Option<&'a TempFiles>,
    pub(crate) refusal: Refusal<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal<'a> {
    pub(crate) failed: &'a str,
    pub(crate) reason: Reason,
    /// Advice to the user about files that need more than the maximum.
    pub(crate) remedy: &'a str,
}

impl Filling<'_> {
    /// Runs `fill` with its own directory. If others hold the needed bytes, everything is removed and given back, and it runs again after a
    /// wait for all of them at once. No job waits while it has bytes: a job that has files already is only tried again. Fails with the
    /// fault of `fill`, or of files that have no space.
    pub(crate) fn run<T>(
        &self,
        mut fill: impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Filled<T>, Fault> {
        let tenant = self
            .disk
            .tenant(&self.job.namespace)
            .revoked_by(&self.job.revoked);
        let Some(beside) = self.beside else {
            let first = self.fill(tenant.share(), &mut fill)?;
            let needed = match first {
                Attempt::Done(filled) => return Ok(filled),
                Attempt::InUse(needed) => needed.min(tenant.most()),
            };
            let mut share = tenant.share();
            self.reserve(&mut share, needed)?;
            return self.last(share, &mut fill);
        };
        let share = beside.space.lock().share.beside();
        self.last(share, &mut fill)
    }

    fn last<T>(
        &self,
        share: Share,
        fill: &mut impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Filled<T>, Fault> {
        match self.fill(share, fill)? {
            Attempt::Done(filled) => Ok(filled),
            Attempt::InUse(_) => Err(self.refusal.fault(ByteBudgetError::InUse)),
        }
    }

    fn fill<T>(
        &self,
        share: Share,
        fill: &mut impl FnMut(&TempFiles) -> Result<T, Fault>,
    ) -> Result<Attempt<T>, Fault> {
        let files = TempFiles::new(share, self.above)?;
        let filled = fill(&files);
        let mut space = files.space.lock();
        match (filled, space.refused) {
            (Ok(content), _) => {
                // Gives unused reserved bytes back.
                space.share.shrink(0);
                drop(space);
                Ok(Attempt::Done(Filled { content, files }))
            }
            (Err(_), Some(ByteBudgetError::InUse)) => Ok(Attempt::InUse(space.expected)),
            (Err(_), Some(why)) => Err(self.refusal.fault(why)),
            (Err(fault), None) => Err(fault),
        }
    }

    fn reserve(&self, share: &mut Share, bytes: u64) -> Result<(), Fault> {
        let reserved = blocking::wait(self.runtime, self.job, share.reserve(bytes));
        reserved.map_or_else(
            |unfinished| match unfinished {
                Unfinished::Timeout(time) => Err(self.refusal.fault(ByteBudgetError::Busy(time))),
                Unfinished::Cancelled => {
                    let message = format!("{}: {}", self.refusal.failed, Ended(unfinished));
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
            ByteBudgetError::Revoked => {
                format!(
                    "{failed}: other work needed the temporary files that it held for long; it will be tried again"
                )
            }
        };
        Fault::retry(self.reason, message)
    }
}

enum Attempt<T> {
    Done(Filled<T>),
    /// Others hold the space; this many bytes were needed.
    InUse(u64),
}

#[cfg(test)]
mod tests;
