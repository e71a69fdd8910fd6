//! The owner of objects.

use std::borrow::Cow;

use objects::{Managers, ObjectRef, Vocabulary, meta, vocabulary::is_marked};
use yaml::Value;

use crate::Error;

/// The way in which an owner finds its objects on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Each object carries a label. Objects with the label that the owner did not apply are never touched.
    Label {
        /// The name of the label.
        name: Cow<'static, str>,
        /// The value, which no other owner on the cluster uses.
        value: String,
    },
    /// The owner keeps a list of the objects that it applied last.
    Inventory(Vec<ObjectRef>),
}

/// Whoever keeps a set of objects on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The field manager of all applies.
    pub manager: Cow<'static, str>,
    /// The way in which its objects are found again.
    pub membership: Membership,
    /// The names of the annotations and labels that it obeys.
    pub vocabulary: Vocabulary,
    /// The managers whose fields are taken over in conflicts, unless an annotation or a rule says otherwise: its own other
    /// names, and tools that people use by hand.
    pub overridden: Managers,
}

impl Owner {
    /// Returns an owner with a field manager and an empty vocabulary, which no manager has to yield to.
    #[must_use]
    pub fn new(manager: impl Into<Cow<'static, str>>, membership: Membership) -> Self {
        Self {
            manager: manager.into(),
            membership,
            vocabulary: Vocabulary::default(),
            overridden: Managers::default(),
        }
    }

    /// Checks that objects of other owners can't be mistaken for those of this one.
    ///
    /// # Errors
    /// If the manager has no name, or the membership label is empty or not a valid label value.
    pub fn check(&self) -> Result<(), Error> {
        if self.manager.is_empty() {
            return Err(Error::NoManager);
        }
        match &self.membership {
            Membership::Label { name, value } if name.is_empty() || !meta::is_label_value(value) => {
                Err(Error::InvalidLabel {
                    name: name.to_string(),
                    value: value.clone(),
                })
            }
            Membership::Label { .. } | Membership::Inventory(_) => Ok(()),
        }
    }

    /// Returns true if the live object is still a member. An inventory lists its members, whatever they look like.
    pub(crate) fn has_member(&self, live: &Value) -> bool {
        match &self.membership {
            Membership::Label { name, value } => meta::label(live, name) == Some(value),
            Membership::Inventory(_) => true,
        }
    }

    /// Returns true if an annotation forbids the deletion of the object.
    #[must_use]
    pub fn skips_delete(&self, object: &Value) -> bool {
        is_marked(object, self.vocabulary.skip_delete)
    }
}
