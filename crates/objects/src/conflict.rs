//! Conflicts: another manager owns a field that is to be applied.
//!
//! The API server answers 409 with one cause for each field. A field is kept in the patch, and taken over by force, if an
//! annotation or a rule of the project says so, or if one of its managers is always overridden ([`Policy::overridden`]).
//! It is dropped silently if an annotation or a rule says so, and dropped with a note otherwise. The resulting patch is
//! the only one that is ever applied by force.

use std::collections::HashSet;

use regex::Regex;
use yaml::Value;

use crate::{
    Error, ObjectRef,
    jsonpath::{JsonPath, JsonPathError, bounded_regex},
    managed::{self, Field, ManagedFields},
    meta,
    path::{self, Path},
    rules::{ConflictAction, ConflictRule},
    vocabulary::{ConflictNames, Managers, Vocabulary, is_marked},
};

/// One conflicting field, as the API server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Type of the cause: `FieldManagerConflict`.
    pub reason: String,
    pub message: String,
    /// Path of the field, as in `.spec.replicas`.
    pub field: String,
}

/// The patch that may be applied by force.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The object without the fields that are left to others.
    pub patch: Value,
    /// The fields that are left to another manager though the object has another value for them.
    pub left: Vec<LeftField>,
}

/// A field that is left to another manager, in the words of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftField {
    pub message: String,
    /// Path, as in `.spec.replicas`.
    pub field: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Force,
    Ignore,
}

enum Matcher {
    All,
    Paths(HashSet<Path>),
    Pattern(Regex),
    Manager(Regex),
}

struct Rule {
    action: Action,
    matcher: Matcher,
}

#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    pub vocabulary: &'a Vocabulary,
    /// The managers whose fields are always taken over, unless an annotation or a rule says otherwise.
    pub overridden: Managers,
    /// The rules of the project. Annotations of the object come after them; of several rules for a field, the last one
    /// counts.
    pub rules: &'a [ConflictRule],
}

/// Decides about each conflicting field of `local`, whose apply was refused while the object was as in `live`.
///
/// # Errors
/// Fails when a cause is of an unknown type, its field can't be found, or an annotation or a rule does not parse.
pub fn resolve(
    live: &Value,
    local: &Value,
    policy: Policy<'_>,
    causes: &[Cause],
) -> Result<Resolution, Error> {
    let owners = managed::managed_fields(live);
    let rules = all_rules(live, local, policy)?;
    let (mut dropped, mut left) = (Vec::new(), Vec::new());
    for cause in causes {
        if cause.reason != "FieldManagerConflict" {
            return Err(Error::UnknownConflict {
                message: cause.message.clone(),
                reason: cause.reason.clone(),
            });
        }
        let field = matching_field(&owners, cause)?;
        let missing = |side| Error::ConflictFieldMissing {
            message: cause.message.clone(),
            field: cause.field.clone(),
            side,
        };
        let at_live = managed::locate(field, live).ok_or_else(|| missing("remote"))?;
        let at_local = managed::locate(field, local).ok_or_else(|| missing("local"))?;
        let managers: Vec<&str> = owners
            .iter()
            .filter(|owner| owner.fields.contains(field))
            .map(|owner| owner.manager.as_str())
            .collect();
        match decide(&rules, policy.overridden, &managers, &at_live, &at_local) {
            Some(Action::Force) => {}
            Some(Action::Ignore) => dropped.push(at_local),
            None => {
                if path::get(live, &at_live) != path::get(local, &at_local) {
                    left.push(LeftField {
                        message: cause.message.clone(),
                        field: cause.field.clone(),
                    });
                }
                dropped.push(at_local);
            }
        }
    }
    let mut patch = local.clone();
    path::remove_all(&mut patch, dropped);
    Ok(Resolution { patch, left })
}

fn matching_field<'a>(owners: &'a [ManagedFields], cause: &Cause) -> Result<&'a Field, Error> {
    let mut found: Option<&Field> = None;
    for field in owners.iter().flat_map(|owner| &owner.fields) {
        if managed::display(field) != cause.field {
            continue;
        }
        if found.is_some_and(|other| other != field) {
            return Err(Error::ConflictFieldAmbiguous {
                message: cause.message.clone(),
                field: cause.field.clone(),
            });
        }
        found = Some(field);
    }
    found.ok_or_else(|| Error::ConflictFieldUnknown {
        message: cause.message.clone(),
        field: cause.field.clone(),
    })
}

fn decide(
    rules: &[Rule],
    overridden: Managers,
    managers: &[&str],
    at_live: &Path,
    at_local: &Path,
) -> Option<Action> {
    let matches = |rule: &&Rule| match &rule.matcher {
        Matcher::All => true,
        Matcher::Paths(paths) => paths.contains(at_live) || paths.contains(at_local),
        Matcher::Pattern(pattern) => {
            pattern.is_match(&path::canonical(at_local)) || pattern.is_match(&path::canonical(at_live))
        }
        Matcher::Manager(pattern) => managers.iter().any(|manager| pattern.is_match(manager)),
    };
    match rules.iter().rev().find(matches) {
        Some(rule) => Some(rule.action),
        None => managers
            .iter()
            .any(|manager| overridden.contain(manager))
            .then_some(Action::Force),
    }
}

/// Returns the rules of the project, then of the object's annotations; later ones override earlier ones.
fn all_rules(live: &Value, local: &Value, policy: Policy<'_>) -> Result<Vec<Rule>, Error> {
    let mut rules = Rules {
        live,
        local,
        list: Vec::new(),
    };
    let reference = ObjectRef::of(local).ok();
    let is_meant = |rule: &&ConflictRule| {
        reference
            .as_ref()
            .is_some_and(|object| rule.objects.matches(object))
    };
    for rule in policy.rules.iter().filter(is_meant) {
        let action = match rule.action {
            ConflictAction::ForceApply => Action::Force,
            ConflictAction::Ignore => Action::Ignore,
        };
        let origin = policy.vocabulary.conflict_rules;
        for text in &rule.paths {
            rules.path(action, origin, text)?;
        }
        for text in &rule.path_patterns {
            rules.pattern(action, Matcher::Pattern, origin, text)?;
        }
        for text in &rule.managers {
            rules.pattern(action, Matcher::Manager, origin, text)?;
        }
    }
    rules.annotations(Action::Force, policy.vocabulary.force_apply)?;
    rules.annotations(Action::Ignore, policy.vocabulary.ignore_conflicts)?;
    Ok(rules.list)
}

fn numbered<'a>(object: &'a Value, name: Option<&str>) -> Vec<(&'a str, &'a str)> {
    name.map(|name| meta::numbered(object, name)).unwrap_or_default()
}

struct Rules<'a> {
    live: &'a Value,
    local: &'a Value,
    list: Vec<Rule>,
}

impl Rules<'_> {
    fn push(&mut self, action: Action, matcher: Matcher) {
        self.list.push(Rule { action, matcher });
    }

    fn annotations(&mut self, action: Action, names: ConflictNames) -> Result<(), Error> {
        let local = self.local;
        if is_marked(local, names.all) {
            self.push(action, Matcher::All);
        }
        for (annotation, text) in numbered(local, names.manager) {
            let origin = format!("annotation {annotation}");
            self.pattern(action, Matcher::Manager, &origin, text)?;
        }
        for (annotation, text) in numbered(local, names.field) {
            self.path(action, &format!("annotation {annotation}"), text)?;
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        action: Action,
        matcher: fn(Regex) -> Matcher,
        origin: &str,
        text: &str,
    ) -> Result<(), Error> {
        let pattern = bounded_regex(text).map_err(|reason| Error::Pattern {
            origin: origin.to_owned(),
            pattern: text.to_owned(),
            reason: reason.to_string(),
        })?;
        self.push(action, matcher(pattern));
        Ok(())
    }

    fn path(&mut self, action: Action, origin: &str, text: &str) -> Result<(), Error> {
        let invalid = |reason: JsonPathError| Error::JsonPath {
            origin: origin.to_owned(),
            path: text.to_owned(),
            reason: reason.to_string(),
        };
        let parsed = JsonPath::parse(text).map_err(invalid)?;
        let mut paths: HashSet<Path> = parsed.find(self.local).map_err(invalid)?.into_iter().collect();
        paths.extend(parsed.find(self.live).map_err(invalid)?);
        self.push(action, Matcher::Paths(paths));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
