//! Knows if a render depends on more than its files.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Tells if a render read anything but the files of its project and the kinds and the version of the cluster: other repositories, charts,
/// variables of objects or servers, live objects. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct OutsideReads(Arc<AtomicBool>);

impl OutsideReads {
    /// Returns true if there was such a read. The next render of the same files may have another result then.
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
