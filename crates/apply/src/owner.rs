//! The owner of objects.

use std::{borrow::Cow, collections::BTreeMap};

use objects::{Managers, Marker, ObjectRef, Vocabulary, meta, vocabulary::is_marked};
use yaml::Value;

use crate::Error;

/// The rule by which an owner finds its objects on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Each object carries a label. Objects with the label that the owner did not apply are never touched.
    Label {
        name: Cow<'static, str>,
        /// The value, which no other owner on the cluster uses.
        value: String,
    },
    /// Each object carries several labels, of which others may carry some. As above, the owner must have applied it.
    Labels {
        /// The names and values of all of them; at least one.
        all: BTreeMap<String, String>,
        /// The name of a label that marks objects of other owners, whatever its value.
        without: Cow<'static, str>,
    },
    /// The owner keeps a list of the objects that it applied last.
    Inventory(Vec<ObjectRef>),
}

/// A deployer of a set of objects on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub manager: Cow<'static, str>,
    /// The rule by which its objects are found again.
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

    /// Returns an owner whose objects carry a label with a value that no other owner on the cluster uses.
    ///
    /// The label must be in the manifests: an object without it is applied, but never found again.
    #[must_use]
    pub fn labelled(
        manager: impl Into<Cow<'static, str>>,
        label: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
    ) -> Self {
        let (name, value) = (label.into(), value.into());
        Self::new(manager, Membership::Label { name, value })
    }

    /// Returns an owner that keeps a list of the objects that it applied last.
    #[must_use]
    pub fn with_inventory(manager: impl Into<Cow<'static, str>>, inventory: Vec<ObjectRef>) -> Self {
        Self::new(manager, Membership::Inventory(inventory))
    }

    #[must_use]
    pub fn skip_delete(mut self, markers: &'static [Marker]) -> Self {
        self.vocabulary.skip_delete = markers;
        self
    }

    /// Sets the prefixes of the managers whose fields are taken over in conflicts.
    #[must_use]
    pub fn overriding(mut self, prefixes: &'static [&'static str]) -> Self {
        self.overridden.prefixes = prefixes;
        self
    }

    /// Checks that the membership can't match objects of other owners.
    ///
    /// # Errors
    /// If the manager has no name, or the membership label is empty or not a valid label value.
    pub fn check(&self) -> Result<(), Error> {
        if self.manager.is_empty() {
            return Err(Error::NoManager);
        }
        match &self.membership {
            Membership::Label { name, value } => check_label(name, value),
            // Without any label, each object would be a member.
            Membership::Labels { all, .. } if all.is_empty() => check_label("", ""),
            Membership::Labels { all, .. } => {
                all.iter().try_for_each(|(name, value)| check_label(name, value))
            }
            Membership::Inventory(_) => Ok(()),
        }
    }

    /// Returns true if the live object is still a member. An inventory lists its members, whatever they look like.
    pub(crate) fn has_member(&self, live: &Value) -> bool {
        match &self.membership {
            Membership::Label { name, value } => meta::label(live, name) == Some(value),
            Membership::Labels { all, without } => {
                let carries = |(name, value): (&String, &String)| meta::label(live, name) == Some(value);
                all.iter().all(carries) && meta::label(live, without).is_none()
            }
            Membership::Inventory(_) => true,
        }
    }

    /// Returns true if an annotation forbids the deletion of the object.
    #[must_use]
    pub fn skips_delete(&self, object: &Value) -> bool {
        is_marked(object, self.vocabulary.skip_delete)
    }
}

fn check_label(name: &str, value: &str) -> Result<(), Error> {
    if name.is_empty() || !meta::is_label_value(value) {
        return Err(Error::InvalidLabel {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }
    Ok(())
}
