//! Completeness of a search for objects.

use std::collections::HashSet;

use cluster::Gap;
use objects::ObjectRef;

/// The result of a search for the objects of an owner: with gaps, objects may be left that were not found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use = "an incomplete search must not be reported as a success"]
pub enum Completeness {
    #[default]
    Complete,
    Incomplete {
        /// One gap for each kind, or each kind and namespace, in the order of their descriptions.
        gaps: Vec<Gap>,
    },
}

impl Completeness {
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::Complete
    }

    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        match self {
            Self::Complete => &[],
            Self::Incomplete { gaps } => gaps,
        }
    }

    /// Returns one sentence about the first gaps; `None` if everything was searched.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        const MAX_LISTED: usize = 3;
        let gaps = self.gaps();
        let listed: Vec<String> = gaps.iter().take(MAX_LISTED).map(ToString::to_string).collect();
        let more = match gaps.len().saturating_sub(MAX_LISTED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        (!self.is_complete()).then(|| {
            format!(
                "not all objects could be searched, so some may be left: {}{more}",
                listed.join("; ")
            )
        })
    }

    /// Returns the completeness of a search with these gaps. If the objects that the owner applied before are known, gaps
    /// that concern none of their kinds don't count: an identity without rights for a kind never applied one.
    pub(crate) fn of(gaps: &[Gap], known: Option<&[ObjectRef]>) -> Self {
        let kinds: Option<HashSet<(&str, &str)>> = known.map(|known| {
            let kinds = known.iter().map(|one| (one.group.as_str(), one.kind.as_str()));
            kinds.collect()
        });
        let counts = |gap: &&Gap| {
            kinds
                .as_ref()
                .is_none_or(|kinds| kinds.iter().any(|(group, kind)| gap.concerns(group, kind)))
        };
        let mut gaps: Vec<Gap> = gaps.iter().filter(counts).cloned().collect();
        if gaps.is_empty() {
            return Self::Complete;
        }
        gaps.sort_by_cached_key(ToString::to_string);
        Self::Incomplete { gaps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(group: &str, kind: Option<&str>) -> Gap {
        Gap {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.map(str::to_owned),
            namespace: None,
            forbidden: true,
            reason: "refused".to_owned(),
        }
    }

    fn reference(group: &str, kind: &str) -> ObjectRef {
        ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: "a".to_owned(),
        }
    }

    #[test]
    fn gaps_count_for_the_kinds_that_were_applied() {
        let gaps = [gap("", Some("Secret")), gap("x.io", None)];
        assert!(Completeness::of(&[], None).is_complete());
        assert_eq!(Completeness::of(&gaps, None).gaps().len(), 2);
        assert!(Completeness::of(&gaps, Some(&[])).is_complete());
        assert!(Completeness::of(&gaps, Some(&[reference("", "ConfigMap")])).is_complete());
        let secret = Completeness::of(&gaps, Some(&[reference("", "Secret")]));
        assert_eq!(secret.gaps(), [gap("", Some("Secret"))]);
        let group = Completeness::of(&gaps, Some(&[reference("x.io", "Thing")]));
        assert_eq!(group.gaps(), [gap("x.io", None)]);
    }

    #[test]
    fn the_message_names_the_first_reasons() {
        assert_eq!(Completeness::Complete.message(), None);
        let gaps = ["a", "b", "c", "d"].map(|kind| gap("", Some(kind))).to_vec();
        assert_eq!(
            Completeness::Incomplete { gaps }.message().as_deref(),
            Some(
                "not all objects could be searched, so some may be left: can't list v1, Kind=a: refused; can't list v1, \
                 Kind=b: refused; can't list v1, Kind=c: refused; and 1 more"
            )
        );
    }
}
