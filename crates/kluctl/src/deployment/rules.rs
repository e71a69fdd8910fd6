//! Rules of projects for fields of objects: ignored differences and conflict resolution.

use go::regexp::Pattern;
use objects::{
    jsonpath::JsonPath,
    rules::{ConflictAction, ConflictRule, IgnoreRule, ObjectPattern, Rules},
};
use tree::Budget;

use crate::{Error, fields::Fields};

/// Steps of the budget to compile a regular expression.
pub(crate) const STEPS_OF_A_PATTERN: u64 = 20_000;

const OBJECT: [&str; 4] = ["group", "kind", "namespace", "name"];

/// Decodes `ignoreForDiff` and `conflictResolution`.
pub(super) fn decode(fields: &Fields<'_>, budget: &Budget) -> Result<Rules, Error> {
    Ok(Rules {
        ignore_for_diff: each(fields, "ignoreForDiff", |fields| ignore(fields, budget))?,
        conflict_resolution: each(fields, "conflictResolution", |fields| conflict(fields, budget))?,
    })
}

pub(super) fn each<T>(
    fields: &Fields<'_>,
    field: &str,
    decode: impl Fn(&Fields<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for (index, value) in fields.seq(field)?.iter().enumerate() {
        let path = fields.path_of(&format!("{field}[{index}]"));
        let one = Fields::new(fields.file, value, &path, fields.line_of(field))?;
        all.push(decode(&one)?);
    }
    Ok(all)
}

fn ignore(fields: &Fields<'_>, budget: &Budget) -> Result<IgnoreRule, Error> {
    check(fields, &["fieldPath", "fieldPathRegex"])?;
    let rule = IgnoreRule {
        objects: objects(fields)?,
        paths: paths(fields, "fieldPath")?,
        path_patterns: patterns(fields, "fieldPathRegex", budget)?,
    };
    if rule.paths.is_empty() && rule.path_patterns.is_empty() {
        let problem = "at least one of fieldPath or fieldPathRegex must be set";
        return Err(fields.invalid("", problem));
    }
    Ok(rule)
}

fn conflict(fields: &Fields<'_>, budget: &Budget) -> Result<ConflictRule, Error> {
    check(fields, &["fieldPath", "fieldPathRegex", "manager", "action"])?;
    let action = fields.filled_string("action")?;
    let rule = ConflictRule {
        objects: objects(fields)?,
        paths: paths(fields, "fieldPath")?,
        path_patterns: patterns(fields, "fieldPathRegex", budget)?,
        managers: patterns(fields, "manager", budget)?,
        action: match action.as_deref() {
            Some("ignore") => ConflictAction::Ignore,
            Some("force-apply") => ConflictAction::ForceApply,
            _ => {
                let path = fields.path_of("action");
                return Err(fields.invalid("action", format!("{path} is either ignore or force-apply")));
            }
        },
    };
    if rule.paths.is_empty() && rule.path_patterns.is_empty() && rule.managers.is_empty() {
        let problem = "at least one of fieldPath, fieldPathRegex or manager must be set";
        return Err(fields.invalid("", problem));
    }
    Ok(rule)
}

fn check(fields: &Fields<'_>, own: &[&str]) -> Result<(), Error> {
    let obeyed: Vec<&str> = own.iter().copied().chain(OBJECT).collect();
    fields.check(&obeyed, &[])
}

fn objects(fields: &Fields<'_>) -> Result<ObjectPattern, Error> {
    Ok(ObjectPattern {
        group: fields.filled_string("group")?,
        kind: fields.filled_string("kind")?,
        name: fields.filled_string("name")?,
        namespace: fields.filled_string("namespace")?,
    })
}

fn paths(fields: &Fields<'_>, field: &str) -> Result<Vec<String>, Error> {
    let paths = fields.string_or_strings(field)?;
    for path in &paths {
        JsonPath::parse(path).map_err(|why| wrong(fields, field, path, &why.to_string()))?;
    }
    Ok(paths)
}

fn patterns(fields: &Fields<'_>, field: &str, budget: &Budget) -> Result<Vec<String>, Error> {
    let patterns = fields.string_or_strings(field)?;
    for pattern in &patterns {
        budget
            .step(STEPS_OF_A_PATTERN)
            .map_err(|source| fields.exceeded(field, source))?;
        Pattern::compile(pattern).map_err(|why| wrong(fields, field, pattern, &why.to_string()))?;
    }
    Ok(patterns)
}

fn wrong(fields: &Fields<'_>, field: &str, text: &str, why: &str) -> Error {
    fields.invalid(field, format!("{} {text:?}: {why}", fields.path_of(field)))
}
