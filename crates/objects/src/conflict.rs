//! Conflicts: another manager owns a field that is to be applied.
//!
//! The API server answers 409 with one cause for each field. A field is kept in the patch, and taken over by force, if an
//! annotation or a rule of the project says so, or if one of its managers is always overridden ([`Policy::overridden`]).
//! It is dropped silently if an annotation or a rule says so, and dropped with a note otherwise. The resulting patch is
//! the only one that is ever applied by force.

use std::collections::{HashMap, HashSet};

use yaml::Value;

use crate::{
    Error, ObjectRef,
    jsonpath::{JsonPath, JsonPathError, Meter, Pattern, Patterns},
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
    Pattern(Pattern),
    Manager(Pattern),
}

struct Rule {
    action: Action,
    matcher: Matcher,
    /// Annotation or field of the project.
    origin: String,
    /// Source of the path or pattern.
    source: String,
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
    let fields = OwnedFields::of(&owners, causes);
    let mut meter = Meter::default();
    let rules = all_rules(live, local, policy, &mut meter)?;
    let (mut dropped, mut left) = (Vec::new(), Vec::new());
    for cause in causes {
        if cause.reason != "FieldManagerConflict" {
            return Err(Error::UnknownConflict {
                message: cause.message.clone(),
                reason: cause.reason.clone(),
            });
        }
        let owned = fields.find(cause)?;
        let field = owned.field;
        let missing = |side| Error::ConflictFieldMissing {
            message: cause.message.clone(),
            field: cause.field.clone(),
            side,
        };
        let at_live = managed::locate(field, live).ok_or_else(|| missing("remote"))?;
        let at_local = managed::locate(field, local).ok_or_else(|| missing("local"))?;
        let contest = Contest {
            managers: &owned.managers,
            at_live: &at_live,
            at_local: &at_local,
        };
        match decide(&rules, policy.overridden, &contest, &mut meter)? {
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

struct OwnedField<'a> {
    field: &'a Field,
    managers: Vec<&'a str>,
    /// Another field has the same form in a cause.
    is_ambiguous: bool,
}

/// The fields of all managers by their form in a cause.
struct OwnedFields<'a>(HashMap<String, OwnedField<'a>>);

impl<'a> OwnedFields<'a> {
    /// Finds the fields of the causes.
    fn of(owners: &'a [ManagedFields], causes: &[Cause]) -> Self {
        let named: HashSet<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        // Most fields need not be formatted: names may be long, and fields many.
        let lengths: HashSet<usize> = named.iter().map(|field| field.len()).collect();
        let mut fields: HashMap<String, OwnedField<'a>> = HashMap::new();
        for owner in owners {
            for field in &owner.fields {
                if !lengths.contains(&managed::display_length(field)) {
                    continue;
                }
                let text = managed::display(field);
                if !named.contains(text.as_str()) {
                    continue;
                }
                let known = fields.entry(text).or_insert_with(|| OwnedField {
                    field,
                    managers: Vec::new(),
                    is_ambiguous: false,
                });
                known.is_ambiguous |= known.field != field;
                if known.managers.last() != Some(&owner.manager.as_str()) {
                    known.managers.push(&owner.manager);
                }
            }
        }
        Self(fields)
    }

    fn find(&self, cause: &Cause) -> Result<&OwnedField<'a>, Error> {
        match self.0.get(&cause.field) {
            Some(owned) if owned.is_ambiguous => Err(Error::ConflictFieldAmbiguous {
                message: cause.message.clone(),
                field: cause.field.clone(),
            }),
            Some(owned) => Ok(owned),
            None => Err(Error::ConflictFieldUnknown {
                message: cause.message.clone(),
                field: cause.field.clone(),
            }),
        }
    }
}

/// A field of the object that other managers own.
struct Contest<'a> {
    managers: &'a [&'a str],
    at_live: &'a Path,
    at_local: &'a Path,
}

/// Returns the action of the last rule for a field. Fails when the patterns of the rules search too much text.
fn decide(
    rules: &[Rule],
    overridden: Managers,
    contest: &Contest<'_>,
    meter: &mut Meter,
) -> Result<Option<Action>, Error> {
    let texts = [
        path::canonical(contest.at_local),
        path::canonical(contest.at_live),
    ];
    let any = |pattern: &Pattern, texts: &[&str], meter: &mut Meter| {
        for text in texts {
            if pattern.is_match(text, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    for rule in rules.iter().rev() {
        let matches = match &rule.matcher {
            Matcher::All => Ok(true),
            Matcher::Paths(paths) => Ok(paths.contains(contest.at_live) || paths.contains(contest.at_local)),
            Matcher::Pattern(pattern) => any(pattern, &texts.each_ref().map(String::as_str), meter),
            Matcher::Manager(pattern) => any(pattern, contest.managers, meter),
        };
        let matches = matches.map_err(|reason: JsonPathError| Error::Pattern {
            origin: rule.origin.clone(),
            pattern: rule.source.clone(),
            reason: reason.to_string(),
        })?;
        if matches {
            return Ok(Some(rule.action));
        }
    }
    let mut managers = contest.managers.iter();
    let is_overridden = managers.any(|manager| overridden.contain(manager));
    Ok(is_overridden.then_some(Action::Force))
}

/// Returns the rules of the project, then of the object's annotations; later ones override earlier ones.
fn all_rules(live: &Value, local: &Value, policy: Policy<'_>, meter: &mut Meter) -> Result<Vec<Rule>, Error> {
    let mut rules = Rules {
        live,
        local,
        meter,
        memory: Patterns::default(),
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
    meter: &'a mut Meter,
    memory: Patterns,
    list: Vec<Rule>,
}

impl Rules<'_> {
    fn push(&mut self, action: Action, matcher: Matcher, origin: &str, source: &str) {
        self.list.push(Rule {
            action,
            matcher,
            origin: origin.to_owned(),
            source: source.to_owned(),
        });
    }

    fn annotations(&mut self, action: Action, names: ConflictNames) -> Result<(), Error> {
        let local = self.local;
        if is_marked(local, names.all) {
            self.push(action, Matcher::All, "", "");
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
        matcher: fn(Pattern) -> Matcher,
        origin: &str,
        text: &str,
    ) -> Result<(), Error> {
        let pattern = self.memory.compile(text).map_err(|reason| Error::Pattern {
            origin: origin.to_owned(),
            pattern: text.to_owned(),
            reason: reason.to_string(),
        })?;
        self.push(action, matcher(pattern), origin, text);
        Ok(())
    }

    fn path(&mut self, action: Action, origin: &str, text: &str) -> Result<(), Error> {
        let invalid = |reason: JsonPathError| Error::JsonPath {
            origin: origin.to_owned(),
            path: text.to_owned(),
            reason: reason.to_string(),
        };
        let parsed = JsonPath::parse(text).map_err(invalid)?;
        let mut paths = HashSet::new();
        for object in [self.local, self.live] {
            paths.extend(parsed.find_within(object, self.meter).map_err(invalid)?);
        }
        self.push(action, Matcher::Paths(paths), origin, text);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
