//! The owner of objects.

use std::{borrow::Cow, collections::BTreeMap};

use objects::{
    Managers, Marker, ObjectRef, Vocabulary, fixup::RepairedKinds, managed, meta, takeover::Takeover,
    vocabulary::is_marked,
};
use yaml::Value;

use crate::{Error, HealthRules};

pub type Labels = BTreeMap<String, String>;

/// The rule by which an owner finds its objects on a cluster. A live object is a member only if it carries the labels now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Objects are found by their labels, in every kind.
    Labels {
        /// All labels of a member; at least one. No other owner on the cluster uses this combination.
        all: Labels,
        /// A label that marks objects of other owners, whatever its value.
        without: Option<Cow<'static, str>>,
    },
    /// Objects are found in a list that the owner stored, and carry its labels. Another owner that takes an object over changes them.
    Inventory {
        objects: Vec<ObjectRef>,
        /// All labels of a member; at least one.
        labels: Labels,
    },
    /// The owner never finds its objects again.
    None,
}

/// The evidence that an owner needs to delete a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proof {
    /// The owner's field manager applied it, and no other object owns it: labels are copied to pods and by people.
    #[default]
    Applied,
    Labels,
}

/// A deployer of a set of objects on a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub manager: Cow<'static, str>,
    pub membership: Membership,
    pub proof: Proof,
    pub vocabulary: Vocabulary,
    /// The managers whose fields are taken over in conflicts, unless an annotation or a rule says otherwise: its own other
    /// names, and tools that people use by hand.
    pub overridden: Managers,
    /// The managers whose fields are taken over before an apply, whether they conflict or not, and metadata to remove.
    pub takeover: Takeover,
    pub health: HealthRules,
    /// The kinds whose manifests are repaired before an apply.
    pub repaired: RepairedKinds,
    /// True if [`Vocabulary::skip_delete`] is about pruning and removal alone: an object with it may be deleted to be created again.
    pub recreates_undeleted: bool,
}

impl Owner {
    /// Returns an owner with a field manager and an empty vocabulary, which no manager has to yield to.
    #[must_use]
    pub fn new(manager: impl Into<Cow<'static, str>>, membership: Membership) -> Self {
        Self {
            manager: manager.into(),
            membership,
            proof: Proof::default(),
            vocabulary: Vocabulary::default(),
            overridden: Managers::default(),
            takeover: Takeover::default(),
            health: HealthRules::default(),
            repaired: RepairedKinds::default(),
            recreates_undeleted: false,
        }
    }

    /// Returns an owner whose objects carry a label with a value that no other owner on the cluster uses.
    #[must_use]
    pub fn labelled(
        manager: impl Into<Cow<'static, str>>,
        label: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self::new(
            manager,
            Membership::Labels {
                all: Labels::from([(label.into(), value.into())]),
                without: None,
            },
        )
    }

    #[must_use]
    pub fn with_inventory(
        manager: impl Into<Cow<'static, str>>,
        objects: Vec<ObjectRef>,
        labels: Labels,
    ) -> Self {
        Self::new(manager, Membership::Inventory { objects, labels })
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
    /// If the manager has no name, or a membership label is missing, empty or not a valid label value.
    pub fn check(&self) -> Result<(), Error> {
        if self.manager.is_empty() {
            return Err(Error::NoManager);
        }
        match self.labels() {
            // Without any label, each object would be a member.
            Some(labels) if labels.is_empty() => check_label("", ""),
            Some(labels) => labels
                .iter()
                .try_for_each(|(name, value)| check_label(name, value)),
            None => Ok(()),
        }
    }

    #[must_use]
    pub fn labels(&self) -> Option<&Labels> {
        match &self.membership {
            Membership::Labels { all, .. } => Some(all),
            Membership::Inventory { labels, .. } => Some(labels),
            Membership::None => None,
        }
    }

    pub fn mark(&self, manifest: &mut Value) {
        for (name, value) in self.labels().into_iter().flatten() {
            meta::set_label(manifest, name, value);
        }
    }

    /// Checks that a manifest carries the labels: otherwise its object would never be found again.
    pub(crate) fn check_marked(&self, manifest: &Value, reference: &ObjectRef) -> Result<(), Error> {
        let missing = self.labels().into_iter().flatten();
        let missing = missing.filter(|(name, value)| meta::label(manifest, name) != Some(value));
        match missing.map(|(name, value)| format!("{name}={value}")).next() {
            Some(label) => Err(Error::NotMarked {
                object: reference.to_string(),
                label,
            }),
            None => Ok(()),
        }
    }

    pub(crate) fn has_member(&self, live: &Value) -> bool {
        let carries = |labels: &Labels| {
            let mut labels = labels.iter();
            labels.all(|(name, value)| meta::label(live, name) == Some(value))
        };
        match &self.membership {
            Membership::Labels { all, without } => {
                let is_foreign = without
                    .as_ref()
                    .is_some_and(|name| meta::label(live, name).is_some());
                carries(all) && !is_foreign
            }
            Membership::Inventory { labels, .. } => carries(labels),
            Membership::None => false,
        }
    }

    /// Returns true if there is enough evidence that the member may be deleted, or an annotation says so.
    pub(crate) fn proves(&self, live: &Value) -> bool {
        is_marked(live, self.vocabulary.force_managed)
            || match self.proof {
                Proof::Applied => !meta::is_owned(live) && managed::has_manager(live, &self.manager),
                Proof::Labels => true,
            }
    }

    /// Returns true if an annotation or a label forbids the deletion of the object.
    #[must_use]
    pub fn skips_delete(&self, object: &Value) -> bool {
        is_marked(object, self.vocabulary.skip_delete) || is_marked(object, self.vocabulary.ignore)
    }

    /// Returns true if the manifest or the live object forbids that the object is deleted and created again.
    pub(crate) fn forbids_recreation(&self, manifest: &Value, live: &Value) -> bool {
        let forbids = |object| match self.recreates_undeleted {
            true => is_marked(object, self.vocabulary.ignore),
            false => self.skips_delete(object),
        };
        forbids(manifest) || forbids(live)
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
