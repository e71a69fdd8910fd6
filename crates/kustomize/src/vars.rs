//! `vars`: fields whose `$(NAME)` is replaced by a value of another object.

use crate::{Error, fieldspec::FieldSpec, model::Var, options::Run, resmap::ResMap};

/// The vars of a kustomization and of those below it, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct VarSet {
    #[expect(dead_code, reason = "stub")]
    vars: Vec<Var>,
}

impl VarSet {
    /// Adds the vars of a kustomization, and notes on the objects which of them take their values there.
    pub(crate) fn declare(&mut self, _vars: &[Var], _resources: &mut ResMap) -> Result<(), Error> {
        Ok(())
    }

    /// Adds the vars of a kustomization below; the same var may come from several.
    pub(crate) fn absorb(&mut self, _other: Self) -> Result<(), Error> {
        Ok(())
    }

    /// Replaces the vars in the fields of a table.
    pub(crate) fn resolve(
        &self,
        _resources: &mut ResMap,
        _fields: &[FieldSpec],
        _run: &Run<'_>,
    ) -> Result<(), Error> {
        Ok(())
    }
}
