//! What a project says about fields of its objects: which differences don't matter, and who wins a conflict.
//!
//! They are rules of `deployment.yaml`, passed down from projects to those that they include; annotations of single objects
//! come on top ([`crate::annotations`]).

/// The objects that a rule is about; what is absent matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectPattern {
    /// The API group.
    pub group: Option<String>,
    /// The kind.
    pub kind: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// The namespace; objects without one match, too.
    pub namespace: Option<String>,
}

/// Differences that don't matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreRule {
    /// In which objects.
    pub objects: ObjectPattern,
    /// The fields, as JSON paths.
    pub paths: Vec<String>,
    /// The fields, as regular expressions on their paths.
    pub path_patterns: Vec<String>,
}

/// What becomes of a field that another manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictAction {
    /// It is left to the other manager, and nobody is told.
    Ignore,
    /// It is taken over.
    ForceApply,
}

/// Who wins conflicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRule {
    /// In which objects.
    pub objects: ObjectPattern,
    /// The fields, as JSON paths.
    pub paths: Vec<String>,
    /// The fields, as regular expressions on their paths.
    pub path_patterns: Vec<String>,
    /// The fields of the managers that these regular expressions match.
    pub managers: Vec<String>,
    /// What becomes of them.
    pub action: ConflictAction,
}

/// The rules that hold for the objects of an item: those of its own project first, then those of the projects around.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// Which differences don't matter.
    pub ignore_for_diff: Vec<IgnoreRule>,
    /// Who wins conflicts; of several rules for a field, the last one counts.
    pub conflict_resolution: Vec<ConflictRule>,
}
