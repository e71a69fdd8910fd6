//! Fields that an owner leaves to others once an object exists, named by JSON pointers.
//!
//! A manifest is adapted to the live object before it is applied, so that comparing and applying it touch no ignored field that differs.

use std::fmt;

use yaml::Value;

use crate::{
    managed::{Element, ManagedFields, managed_fields},
    path::{self, Key, Path},
    takeover::{Operation, Takeover},
};

/// A JSON pointer (RFC 6901) to a field, as in `/spec/replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer(Vec<String>);

/// A pointer that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPointer {
    #[error("{0:?} is not a JSON pointer: it has to begin with '/', as in '/spec/replicas'")]
    Syntax(String),
    #[error("{0:?} is not a JSON pointer: '~' is written as '~0', and '/' in a name as '~1'")]
    Escape(String),
    #[error("{0:?} covers the identity of objects: name fields below it")]
    Identity(String),
}

/// Fields without which an object would be another one, or none.
const IDENTITY: [&[&str]; 5] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
];

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// If it is invalid, or names the whole object or its identity.
    pub fn parse(text: &str) -> Result<Self, InvalidPointer> {
        if text.is_empty() {
            return Err(InvalidPointer::Identity(String::new()));
        }
        let rest = text.strip_prefix('/');
        let rest = rest.ok_or_else(|| InvalidPointer::Syntax(text.to_owned()))?;
        let names = rest.split('/').map(unescaped).collect::<Option<Vec<_>>>();
        let names = names.ok_or_else(|| InvalidPointer::Escape(text.to_owned()))?;
        match IDENTITY.iter().any(|identity| names == *identity) {
            true => Err(InvalidPointer::Identity(text.to_owned())),
            false => Ok(Self(names)),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|name| write!(f, "/{}", name.replace('~', "~0").replace('/', "~1")))
    }
}

fn unescaped(name: &str) -> Option<String> {
    let mut parts = name.split('~');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (escape, rest) = part.split_at_checked(1)?;
        text.push(match escape {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}

/// The same field in a manifest and in its live object.
#[derive(Debug, PartialEq)]
enum Field {
    Both(Path, Path),
    /// The live object has the parent only.
    Manifest(Path),
    /// The manifest lacks the field, or its parents, too.
    Live(Path),
    /// Neither has it, or the manifest brings its parent as something new.
    New,
}

/// Returns the manifest to apply onto a live object: an ignored field that differs has the live value, or is left out if the manager of
/// another apply owns it. `None` if none differs. `takeover` has the managers that count as `manager` itself.
#[must_use]
pub fn adapted(
    manifest: &Value,
    live: &Value,
    pointers: &[Pointer],
    (manager, takeover): (&str, Option<&Takeover>),
) -> Option<Value> {
    let mut owners: Option<Vec<ManagedFields>> = None;
    let mut adapted: Option<Value> = None;
    let mut removed = Vec::new();
    for pointer in pointers {
        let field = find(manifest, live, pointer);
        let at = match &field {
            Field::Both(own, at) if path::get(manifest, own) != path::get(live, at) => at,
            Field::Live(at) => at,
            Field::Manifest(own) => {
                removed.push(own.clone());
                continue;
            }
            Field::Both(..) | Field::New => continue,
        };
        let owners = owners.get_or_insert_with(|| managed_fields(live));
        let applied = owners.iter().filter(|entry| {
            entry.operation == "Apply" && entry.subresource.is_empty() && covers(entry, at, live)
        });
        let is_taken = |name: &str| takeover.is_some_and(|takeover| takeover.takes(name, Operation::Apply));
        let (own, others): (Vec<_>, Vec<_>) =
            applied.partition(|entry| entry.manager == manager || is_taken(&entry.manager));
        match field {
            Field::Both(own, _) if !others.is_empty() => removed.push(own),
            Field::Both(own, at) => {
                let value = path::get(live, &at).cloned().unwrap_or(Value::Null);
                path::set(adapted.get_or_insert_with(|| manifest.clone()), &own, value);
            }
            // An apply without the field would remove it.
            Field::Live(at) if others.is_empty() && !own.is_empty() => {
                insert(adapted.get_or_insert_with(|| manifest.clone()), &at, live);
            }
            _ => {}
        }
    }
    if !removed.is_empty() {
        path::remove_all(adapted.get_or_insert_with(|| manifest.clone()), removed);
    }
    adapted.filter(|adapted| adapted != manifest)
}

/// Sets a field of a map that the manifest has.
fn insert(manifest: &mut Value, at: &Path, live: &Value) {
    let Some((Key::Field(name), parent)) = at.split_last() else {
        return;
    };
    let parent = parent.iter().try_fold(manifest, |value, key| match key {
        Key::Field(name) => value.get_mut(name),
        // Positions differ between the two.
        Key::Index(_) => None,
    });
    if let (Some(Value::Map(map)), Some(value)) = (parent, path::get(live, at)) {
        map.insert(name.to_string(), value.clone());
    }
}

fn find(manifest: &Value, live: &Value, pointer: &Pointer) -> Field {
    let (mut own, mut other) = ((Path::new(), Some(manifest)), (Path::new(), Some(live)));
    let last = pointer.0.len().saturating_sub(1);
    for (depth, name) in pointer.0.iter().enumerate() {
        let (own_item, other_item) = match (own.1, other.1) {
            (Some(Value::Seq(items)), Some(Value::Seq(live))) => match name.parse::<usize>() {
                Ok(index) => (
                    items.get(index).map(|item| (Key::Index(index), item)),
                    counterpart(items.get(index), live, index),
                ),
                Err(_) => return Field::New,
            },
            (own, other) => (
                own.and_then(|value| step(value, name)),
                other.and_then(|value| step(value, name)),
            ),
        };
        let is_new = own_item.is_some() && other_item.is_none() && depth < last;
        if is_new {
            return Field::New;
        }
        advance(&mut own, own_item);
        advance(&mut other, other_item);
    }
    match (own.1.is_some(), other.1.is_some()) {
        (true, true) => Field::Both(own.0, other.0),
        // A new item of a list.
        (true, false) if matches!(own.0.last(), Some(Key::Index(_))) => Field::New,
        (true, false) => Field::Manifest(own.0),
        (false, true) => Field::Live(other.0),
        (false, false) => Field::New,
    }
}

fn advance<'a>(at: &mut (Path, Option<&'a Value>), next: Option<(Key, &'a Value)>) {
    at.1 = next.map(|(key, value)| {
        at.0.push(key);
        value
    });
}

fn step<'a>(value: &'a Value, name: &str) -> Option<(Key, &'a Value)> {
    match value {
        Value::Seq(items) => {
            let index = name.parse().ok()?;
            Some((Key::Index(index), items.get(index)?))
        }
        value => Some((Key::from(name), value.get(name)?)),
    }
}

/// Returns the live item for an item of a manifest: one of the same name, or the one at its position if items have no names.
fn counterpart<'a>(item: Option<&Value>, live: &'a [Value], index: usize) -> Option<(Key, &'a Value)> {
    let name = item.and_then(|item| item.get("name"));
    let index = match name {
        Some(name) => live.iter().position(|item| item.get("name") == Some(name))?,
        None => index,
    };
    Some((Key::Index(index), live.get(index)?))
}

/// Returns true if a manager owns a field of the live object, or something below it.
fn covers(entry: &ManagedFields, path: &[Key], live: &Value) -> bool {
    entry.fields.iter().any(|field| {
        let mut value = Some(live);
        let mut steps = field.iter().zip(path);
        field.len() >= path.len()
            && steps.all(|(element, key)| {
                let Some(next) = value.and_then(|value| path::get(value, std::slice::from_ref(key))) else {
                    return false;
                };
                value = Some(next);
                match (element, key) {
                    (Element::Name(name), Key::Field(field)) => name == field,
                    (Element::Index(one), Key::Index(other)) => one == other,
                    (Element::Member(member), Key::Index(_)) => **member == *next,
                    (Element::Keyed(keys), Key::Index(_)) => {
                        keys.iter().all(|(name, value)| next.get(name) == Some(value))
                    }
                    _ => false,
                }
            })
    })
}

#[cfg(test)]
mod tests;
