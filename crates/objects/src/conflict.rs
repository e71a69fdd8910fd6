//! What to do when another manager owns a field that is to be applied.
//!
//! The API server answers 409 with one cause for each field. A field is kept in the patch (and taken over by force) when
//! an annotation or a rule of the project says so, or when one of its managers is a tool that people use by hand; it is dropped silently when one of
//! these says so; otherwise it is dropped with a warning. The patch that comes out is the only thing that is ever
//! applied by force.

use std::collections::HashSet;

use regex::Regex;
use yaml::Value;

use crate::{
    Error, ObjectRef, annotations as names,
    jsonpath::{JsonPath, bounded_regex},
    managed::{self, Field, Owner},
    meta,
    path::{self, Path},
    rules::{ConflictAction, ConflictRule},
};

/// One conflicting field, as the API server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `FieldManagerConflict`.
    pub reason: String,
    /// As in `conflict with "hpa" using apps/v1`.
    pub message: String,
    /// As in `.spec.replicas`.
    pub field: String,
}

/// The patch that may be applied by force.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The object without the fields that are left to others.
    pub patch: Value,
    /// One sentence for each field that is left to another manager though the object has another value for it.
    pub warnings: Vec<String>,
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

/// Decides about each conflicting field of `local`, which was applied while the object was as in `live`.
///
/// # Errors
/// When a cause is of an unknown type or its field can't be found, or an annotation or a rule does not parse.
pub fn resolve(
    live: &Value,
    local: &Value,
    rules: &[ConflictRule],
    causes: &[Cause],
) -> Result<Resolution, Error> {
    let owners = managed::owners(live);
    let rules = all_rules(live, local, rules)?;
    let (mut dropped, mut warnings) = (Vec::new(), Vec::new());
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
        match decide(&rules, &managers, &at_live, &at_local) {
            Some(Action::Force) => {}
            Some(Action::Ignore) => dropped.push(at_local),
            None => {
                if path::get(live, &at_live) != path::get(local, &at_local) {
                    warnings.push(format!(
                        "{}. Not updating field '{}' as we lost field ownership",
                        cause.message, cause.field
                    ));
                }
                dropped.push(at_local);
            }
        }
    }
    let mut patch = local.clone();
    path::remove_all(&mut patch, dropped);
    Ok(Resolution { patch, warnings })
}

/// The one owned field that is written as in the cause.
fn matching_field<'a>(owners: &'a [Owner], cause: &Cause) -> Result<&'a Field, Error> {
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

/// The last rule that matches; without one, fields of tools that people use by hand are taken back.
fn decide(rules: &[Rule], managers: &[&str], at_live: &Path, at_local: &Path) -> Option<Action> {
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
            .any(|manager| is_overwritten(manager))
            .then_some(Action::Force),
    }
}

/// Managers that never hold a field against a deployment: its own, and those of people at a terminal.
fn is_overwritten(manager: &str) -> bool {
    matches!(manager, "kluctl" | "kubectl" | "rancher" | "k9s")
        || manager.starts_with("kluctl-")
        || manager.starts_with("kubectl-")
}

/// The rules of the project, then those of the object's annotations; later ones override earlier ones.
fn all_rules(live: &Value, local: &Value, project: &[ConflictRule]) -> Result<Vec<Rule>, Error> {
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
    for rule in project.iter().filter(is_meant) {
        let action = match rule.action {
            ConflictAction::ForceApply => Action::Force,
            ConflictAction::Ignore => Action::Ignore,
        };
        let place = "conflictResolution";
        for text in &rule.paths {
            rules.path(action, place, text)?;
        }
        for text in &rule.path_patterns {
            rules.pattern(action, Matcher::Pattern, place, text)?;
        }
        for text in &rule.managers {
            rules.pattern(action, Matcher::Manager, place, text)?;
        }
    }
    rules.annotations(
        Action::Force,
        [
            names::FORCE_APPLY,
            names::FORCE_APPLY_MANAGER,
            names::FORCE_APPLY_FIELD,
        ],
    )?;
    rules.annotations(
        Action::Ignore,
        [
            names::IGNORE_CONFLICTS,
            names::IGNORE_CONFLICTS_MANAGER,
            names::IGNORE_CONFLICTS_FIELD,
        ],
    )?;
    Ok(rules.list)
}

/// Rules that are being collected.
struct Rules<'a> {
    live: &'a Value,
    local: &'a Value,
    list: Vec<Rule>,
}

impl Rules<'_> {
    fn push(&mut self, action: Action, matcher: Matcher) {
        self.list.push(Rule { action, matcher });
    }

    fn annotations(&mut self, action: Action, [all, manager, field]: [&str; 3]) -> Result<(), Error> {
        let local = self.local;
        if meta::flag(local, all) {
            self.push(action, Matcher::All);
        }
        for (annotation, text) in meta::numbered(local, manager) {
            self.pattern(
                action,
                Matcher::Manager,
                &format!("annotation {annotation}"),
                text,
            )?;
        }
        for (annotation, text) in meta::numbered(local, field) {
            self.path(action, &format!("annotation {annotation}"), text)?;
        }
        Ok(())
    }

    fn pattern(
        &mut self,
        action: Action,
        matcher: fn(Regex) -> Matcher,
        place: &str,
        text: &str,
    ) -> Result<(), Error> {
        let pattern = bounded_regex(text).map_err(|reason| Error::Pattern {
            place: place.to_owned(),
            pattern: text.to_owned(),
            reason,
        })?;
        self.push(action, matcher(pattern));
        Ok(())
    }

    fn path(&mut self, action: Action, place: &str, text: &str) -> Result<(), Error> {
        let invalid = |reason| Error::JsonPath {
            place: place.to_owned(),
            path: text.to_owned(),
            reason,
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
