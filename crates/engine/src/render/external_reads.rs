//! Records if a render depends on more than its files.

use std::sync::Arc;

use cluster::Cluster;
use kluctl::{ObjectSelector, Rendered, annotations};
use objects::{ObjectRef, meta};
use parking_lot::Mutex;

/// Maximum number of recorded objects: requests for more of them are not cheaper than another render.
const MAX_OBJECTS: usize = 16;

/// Records reads of anything but the project's files and the cluster's kinds and version: other repositories, charts, variables of
/// objects or servers, live objects. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ExternalReads(Arc<Mutex<Reads>>);

#[derive(Debug, Default)]
struct Reads {
    objects: Vec<ReadObject>,
    /// True if anything else was read, or too many objects.
    other: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadObject {
    reference: ObjectRef,
    /// The resourceVersion; `None` if there was no such object.
    version: Option<String>,
}

impl ExternalReads {
    /// Returns the objects that were read by their names on this cluster; `None` if anything else was read. Then the next render of the
    /// same files may have another result, and nothing tells.
    #[must_use]
    pub fn objects_of(&self, cluster: &Cluster) -> Option<ReadObjects> {
        let reads = self.0.lock();
        (!reads.other).then(|| ReadObjects {
            cluster: cluster.clone(),
            objects: reads.objects.clone(),
            absent: Vec::new(),
        })
    }

    pub(crate) fn note(&self) {
        self.0.lock().other = true;
    }

    pub(crate) fn note_object(&self, reference: ObjectRef, version: Option<String>) {
        let mut reads = self.0.lock();
        let object = ReadObject { reference, version };
        if reads.objects.contains(&object) {
            return;
        }
        reads.other |= reads.objects.len() >= MAX_OBJECTS;
        reads.objects.push(object);
    }
}

/// The objects that a render read by their names, in the versions that it saw, and those that its deployment deletes.
#[derive(Debug, Clone)]
pub struct ReadObjects {
    /// The cluster, under the identity that read them.
    cluster: Cluster,
    objects: Vec<ReadObject>,
    /// The objects that delete lists name.
    absent: Vec<ObjectSelector>,
}

impl ReadObjects {
    /// Adds the objects that a deployment deletes, by their marks or by delete lists. They are unchanged while they don't exist.
    #[must_use]
    pub fn with_absent(mut self, rendered: &Rendered) -> Self {
        let marked = rendered
            .objects()
            .filter(|object| meta::flag(object, annotations::DELETE));
        let marked = marked.filter_map(|object| ObjectRef::of(object).ok());
        self.objects.extend(marked.map(|reference| ReadObject {
            reference,
            version: None,
        }));
        let lists = rendered.items.iter().flat_map(|item| &item.delete_objects);
        self.absent.extend(lists.cloned());
        self
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.absent.is_empty()
    }

    /// Returns true if all objects still have the versions that were read, with one request for each. They are read under the same
    /// identity, so that a right which was taken away is a change, and so is any error.
    pub async fn are_unchanged(&self) -> bool {
        for selector in &self.absent {
            if !crate::deploy::existing(&self.cluster, selector)
                .await
                .is_ok_and(|found| found.is_empty())
            {
                return false;
            }
        }
        for ReadObject { reference, version } in &self.objects {
            let read = self.cluster.read_since(reference, version.as_deref()).await;
            let is_same = read.is_ok_and(|found| {
                let found = found.as_ref();
                found.and_then(|(object, _)| objects::meta::resource_version(object)) == version.as_deref()
            });
            if !is_same {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(name: String) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name,
        }
    }

    #[test]
    fn objects_are_noted_once_in_each_version_and_not_without_a_bound() {
        let reads = ExternalReads::default();
        for _ in 0..100 {
            reads.note_object(reference("vars".to_owned()), Some("7".to_owned()));
        }
        assert!(!reads.0.lock().other && reads.0.lock().objects.len() == 1);
        for number in 1..MAX_OBJECTS {
            reads.note_object(reference(format!("vars-{number}")), None);
        }
        assert!(!reads.0.lock().other);
        reads.note_object(reference("one too many".to_owned()), None);
        assert!(reads.0.lock().other);
    }
}
