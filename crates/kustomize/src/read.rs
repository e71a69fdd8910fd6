//! Files of objects.

use std::sync::Arc;

use tree::TreePath;

use crate::{Error, options::Run, resource::Resource};

/// Reads the objects of a text. What lists hold comes after the other documents, as in the original.
pub(crate) fn resources(_text: &[u8], _file: &Arc<TreePath>, _run: &Run<'_>) -> Result<Vec<Resource>, Error> {
    Err(Error::new(crate::Step::Resource, "stub"))
}
