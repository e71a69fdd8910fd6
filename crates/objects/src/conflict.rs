//! Conflicts: another manager owns a field that is to be applied.
//!
//! The API server answers 409 with one cause for each field. A field is kept in the patch, and taken over by force, if an
//! annotation or a rule of the project says so, or if one of its managers is always overridden ([`Policy::overridden`]).
//! It is dropped silently if an annotation or a rule says so, and dropped with a note otherwise. The resulting patch is
//! the only one that is ever applied by force.

use std::{
    collections::{HashMap, HashSet},
    fmt::Display,
};

use go::regexp::{Pattern, PatternQuota};
use yaml::Value;

use crate::{
    Error, ObjectRef,
    jsonpath::{JsonPath, JsonPathError, Meter},
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

#[derive(Debug)]
enum Matcher {
    All,
    Path(JsonPath),
    Pattern(Pattern),
    Manager(Pattern),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    All,
    Path,
    Pattern,
    Manager,
}

#[derive(Debug, Clone)]
struct RuleText {
    action: Action,
    kind: TextKind,
    /// Annotation or field of the project.
    origin: String,
    /// Source of the path or pattern.
    source: String,
}

#[derive(Debug)]
struct Rule {
    text: RuleText,
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

/// The rules about conflicts of an object, as strings.
#[derive(Debug, Clone)]
pub struct ConflictTexts {
    texts: Vec<RuleText>,
    overridden: Managers,
}

/// The compiled rules about conflicts of an object, and the work that all its resolutions have left.
#[derive(Debug)]
pub struct Resolver {
    rules: Vec<Rule>,
    overridden: Managers,
    meter: Meter,
}

impl ConflictTexts {
    /// Returns the rules of the project, then the rules of the object's annotations; later ones override earlier ones.
    #[must_use]
    pub fn of(local: &Value, policy: Policy<'_>) -> Self {
        let mut all = Self {
            texts: Vec::new(),
            overridden: policy.overridden,
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
            for (kind, texts) in [
                (TextKind::Path, &rule.paths),
                (TextKind::Pattern, &rule.path_patterns),
                (TextKind::Manager, &rule.managers),
            ] {
                for text in texts {
                    all.push(action, kind, policy.vocabulary.conflict_rules, text);
                }
            }
        }
        all.annotations(local, Action::Force, policy.vocabulary.force_apply);
        all.annotations(local, Action::Ignore, policy.vocabulary.ignore_conflicts);
        all
    }

    fn push(&mut self, action: Action, kind: TextKind, origin: &str, source: &str) {
        self.texts.push(RuleText {
            action,
            kind,
            origin: origin.to_owned(),
            source: source.to_owned(),
        });
    }

    fn annotations(&mut self, local: &Value, action: Action, names: ConflictNames) {
        if is_marked(local, names.all) {
            self.push(action, TextKind::All, "", "");
        }
        for (annotation, text) in numbered(local, names.manager) {
            self.push(
                action,
                TextKind::Manager,
                &format!("annotation {annotation}"),
                text,
            );
        }
        for (annotation, text) in numbered(local, names.field) {
            self.push(action, TextKind::Path, &format!("annotation {annotation}"), text);
        }
    }

    /// Returns true if there is nothing to compile and to search for, so that a resolution takes no longer than without rules.
    #[must_use]
    pub fn is_trivial(&self) -> bool {
        self.texts.iter().all(|text| text.kind == TextKind::All)
    }

    /// Compiles the rules. The patterns have 32 MiB together.
    ///
    /// # Errors
    /// Fails when a JSON path or a regular expression does not parse, or is too large.
    pub fn compile(&self) -> Result<Resolver, Error> {
        let mut quota = PatternQuota::default();
        let rules = self.texts.iter().map(|text| {
            let mut pattern = || {
                let compiled = quota.compile(&text.source);
                compiled.map_err(|reason| text.pattern_error(&reason))
            };
            let matcher = match text.kind {
                TextKind::All => Matcher::All,
                TextKind::Path => {
                    let parsed = JsonPath::parse(&text.source);
                    Matcher::Path(parsed.map_err(|reason| text.path_error(&reason))?)
                }
                TextKind::Pattern => Matcher::Pattern(pattern()?),
                TextKind::Manager => Matcher::Manager(pattern()?),
            };
            Ok(Rule {
                text: text.clone(),
                matcher,
            })
        });
        Ok(Resolver {
            rules: rules.collect::<Result<_, Error>>()?,
            overridden: self.overridden,
            meter: Meter::default(),
        })
    }
}

impl RuleText {
    fn path_error(&self, reason: &impl Display) -> Error {
        Error::JsonPath {
            origin: self.origin.clone(),
            path: self.source.clone(),
            reason: reason.to_string(),
        }
    }

    fn pattern_error(&self, reason: &impl Display) -> Error {
        Error::Pattern {
            origin: self.origin.clone(),
            pattern: self.source.clone(),
            reason: reason.to_string(),
        }
    }
}

impl Resolver {
    /// Decides about each conflicting field of `local`, whose apply was refused while the object was as in `live`.
    ///
    /// # Errors
    /// Fails when a cause is of an unknown type, its field can't be found, or the rules take too much work.
    pub fn resolve(&mut self, live: &Value, local: &Value, causes: &[Cause]) -> Result<Resolution, Error> {
        let owners = managed::managed_fields(live);
        let fields = OwnedFields::of(&owners, causes);
        let paths = self.paths(live, local)?;
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
            match self.decide(&paths, &contest)? {
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

    /// Returns for each rule the fields that its path has in the two states.
    fn paths(&mut self, live: &Value, local: &Value) -> Result<Vec<HashSet<Path>>, Error> {
        let meter = &mut self.meter;
        let found = self.rules.iter().map(|rule| {
            let mut paths = HashSet::new();
            if let Matcher::Path(path) = &rule.matcher {
                for object in [local, live] {
                    let found = path.find_within(object, meter);
                    paths.extend(found.map_err(|reason| rule.text.path_error(&reason))?);
                }
            }
            Ok(paths)
        });
        found.collect()
    }

    /// Returns the action of the last rule for a field. Fails when the patterns of the rules search too much text.
    fn decide(&mut self, paths: &[HashSet<Path>], contest: &Contest<'_>) -> Result<Option<Action>, Error> {
        let texts = [
            path::canonical(contest.at_local),
            path::canonical(contest.at_live),
        ];
        let texts = texts.each_ref().map(String::as_str);
        let meter = &mut self.meter;
        let mut any = |pattern: &Pattern, texts: &[&str]| {
            for text in texts {
                if meter.is_match(pattern, text)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        for (rule, paths) in self.rules.iter().zip(paths).rev() {
            let matches = match &rule.matcher {
                Matcher::All => Ok(true),
                Matcher::Path(_) => Ok(paths.contains(contest.at_live) || paths.contains(contest.at_local)),
                Matcher::Pattern(pattern) => any(pattern, &texts),
                Matcher::Manager(pattern) => any(pattern, contest.managers),
            };
            if matches.map_err(|reason: JsonPathError| rule.text.pattern_error(&reason))? {
                return Ok(Some(rule.text.action));
            }
        }
        let mut managers = contest.managers.iter();
        let is_overridden = managers.any(|manager| self.overridden.contain(manager));
        Ok(is_overridden.then_some(Action::Force))
    }
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

fn numbered<'a>(object: &'a Value, name: Option<&str>) -> Vec<(&'a str, &'a str)> {
    name.map(|name| meta::numbered(object, name)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
