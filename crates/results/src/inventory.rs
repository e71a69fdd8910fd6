//! The kinds and namespaces of deployed objects, in a result of a status that may be too large to list the objects.
//!
//! A search that may not list a kind is incomplete only if the owner deployed that kind before. So a result that lists only its
//! first objects must still name all kinds and namespaces.

use std::collections::BTreeSet;

use objects::ObjectRef;
use yaml::{Map, Value};

const FIELD: &str = "inventory";
const MAX_PAIRS: usize = 256;
const MAX_BYTES: usize = 16 << 10;

type Pair = (String, String, Option<String>);

/// The kinds and namespaces of all objects that may have been deployed, never their names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// `None` if they are unknown: then any object may have been deployed.
    pairs: Option<BTreeSet<Pair>>,
}

impl Inventory {
    /// Returns the inventory of these objects; objects of any kind if they are unknown.
    #[must_use]
    pub fn of(objects: Option<&[ObjectRef]>) -> Self {
        let pair = |one: &ObjectRef| (one.group.clone(), one.kind.clone(), one.namespace.clone());
        Self {
            pairs: objects.map(|objects| objects.iter().map(pair).collect()),
        }
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let pairs = self.pairs.zip(other.pairs);
        Self {
            pairs: pairs.map(|(mut pairs, others)| {
                pairs.extend(others);
                pairs
            }),
        }
    }

    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (&self.pairs, &other.pairs) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(others)) => others.is_subset(own),
        }
    }

    /// Returns one reference without a name for each kind and namespace; `None` if they are unknown.
    #[must_use]
    pub fn objects(&self) -> Option<Vec<ObjectRef>> {
        let reference = |(group, kind, namespace): &Pair| ObjectRef {
            group: group.clone(),
            version: String::new(),
            kind: kind.clone(),
            namespace: namespace.clone(),
            name: String::new(),
        };
        Some(self.pairs.as_ref()?.iter().map(reference).collect())
    }

    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        let objects = value.as_seq();
        let objects = objects.map(|list| list.iter().filter_map(reference).collect::<Vec<_>>());
        Self::of(objects.as_deref())
    }

    /// Returns the form in a status: a list of maps, or null if there are more than 256 pairs, more than 16 KiB, or they are
    /// unknown.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let Some(pairs) = &self.pairs else {
            return Value::Null;
        };
        let size: usize = pairs
            .iter()
            .map(|(group, kind, namespace)| {
                32 + group.len() + kind.len() + namespace.as_ref().map_or(0, String::len)
            })
            .sum();
        if pairs.len() > MAX_PAIRS || size > MAX_BYTES {
            return Value::Null;
        }
        let entry = |(group, kind, namespace): &Pair| {
            let mut entry = Map::new();
            super::entry::put(&mut entry, "group", group);
            entry.insert("kind", kind.as_str());
            super::entry::put(&mut entry, "namespace", namespace.as_deref().unwrap_or_default());
            Value::Map(entry)
        };
        Value::from(pairs.iter().map(entry).collect::<Vec<_>>())
    }
}

/// Returns the objects that a result in a status lists, and one reference without a name for each kind and namespace of its
/// inventory. Returns `None` if the result does not parse, or not all kinds are known.
#[must_use]
pub fn status_objects(raw: &str) -> Option<Vec<ObjectRef>> {
    let result = parse(raw)?;
    let mut objects = listed(&result)?;
    match result.get(FIELD) {
        None => {
            // Results of earlier releases have no inventory.
            result.get("truncatedObjects").is_none().then_some(objects)
        }
        Some(inventory) => {
            objects.extend(inventory.as_seq()?.iter().filter_map(reference));
            Some(objects)
        }
    }
}

/// Returns a result of a status with this inventory, which is left out if it names nothing besides the listed objects.
#[must_use]
pub fn with_inventory(raw: &str, inventory: &Inventory) -> String {
    let Some(mut result) = parse(raw) else {
        return raw.to_owned();
    };
    let objects = listed(&result).unwrap_or_default();
    let truncated = result.get("truncatedObjects").is_some();
    let is_listed = Inventory::of(Some(&objects)).with(inventory.clone()) == Inventory::of(Some(&objects));
    let before = result.remove(FIELD);
    if is_listed && !truncated {
        return match before {
            None => raw.to_owned(),
            Some(_) => yaml::print::goyaml(&Value::Map(result)),
        };
    }
    let inventory = inventory.to_value();
    if before.as_ref() == Some(&inventory) {
        return raw.to_owned();
    }
    result.insert(FIELD, inventory);
    yaml::print::goyaml(&Value::Map(result))
}

fn parse(raw: &str) -> Option<Map> {
    match yaml::read::goyaml(raw, &tree::Budget::default()).ok()?.value {
        Value::Map(map) => Some(map),
        _ => None,
    }
}

fn listed(result: &Map) -> Option<Vec<ObjectRef>> {
    let objects = result.get("objects")?.as_seq()?;
    Some(
        objects
            .iter()
            .filter_map(|object| reference(object.get("ref")?))
            .collect(),
    )
}

fn reference(value: &Value) -> Option<ObjectRef> {
    let map = value.as_map()?;
    let text = |field: &str| map.get_str(field).unwrap_or_default().to_owned();
    Some(ObjectRef {
        group: text("group"),
        version: text("version"),
        kind: text("kind"),
        namespace: Some(text("namespace")).filter(|namespace| !namespace.is_empty()),
        name: text("name"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, CommandResult, ResultObject};

    fn object(kind: &str, namespace: &str, name: &str) -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    fn raw(objects: &[ObjectRef], limit: usize) -> String {
        let mut result = CommandResult::new(Command::Deploy, false, Some("d"));
        result
            .objects
            .extend(objects.iter().cloned().map(ResultObject::new));
        yaml::print::goyaml(&result.to_status(limit))
    }

    #[test]
    fn inventory_names_the_kinds_that_a_truncated_result_does_not_list() {
        let mut objects: Vec<ObjectRef> = (0..2000)
            .map(|i| object("ConfigMap", "n", &format!("c{i}")))
            .collect();
        objects.push(object("Secret", "other", "last"));
        let cut = raw(&objects, 20_000);
        assert!(!cut.contains("Secret"), "the result is not cut");
        assert_eq!(status_objects(&cut), None, "nobody knows what was cut");
        let whole = with_inventory(&cut, &Inventory::of(Some(&objects)));
        let known = status_objects(&whole).unwrap();
        let secret = known.iter().find(|one| one.kind == "Secret").unwrap();
        assert_eq!(
            (secret.namespace.as_deref(), secret.name.as_str()),
            (Some("other"), "")
        );
        assert_eq!(with_inventory(&whole, &Inventory::of(Some(&objects))), whole);
        assert!(whole.len() < cut.len() + MAX_BYTES);
    }

    #[test]
    fn inventory_keeps_objects_of_earlier_deployments_until_it_is_replaced() {
        let (now, before) = ([object("ConfigMap", "n", "a")], [object("Secret", "other", "b")]);
        let small = raw(&now, 20_000);
        let current = Inventory::of(Some(&now));
        assert_eq!(with_inventory(&small, &current), small, "everything is listed");
        let both = current.clone().with(Inventory::of(Some(&before)));
        let kept = with_inventory(&small, &both);
        assert!(
            status_objects(&kept)
                .unwrap()
                .iter()
                .any(|one| one.kind == "Secret")
        );
        assert_eq!(with_inventory(&kept, &current), small);
    }

    #[test]
    fn inventory_covers_what_it_names_and_survives_a_status() {
        let of = |objects: &[ObjectRef]| Inventory::of(Some(objects));
        let small = of(&[object("ConfigMap", "n", "a")]);
        let large = of(&[object("ConfigMap", "n", "b"), object("Secret", "n", "c")]);
        let unknown = Inventory::of(None);
        assert!(large.covers(&small) && !small.covers(&large) && small.covers(&small));
        assert!(unknown.covers(&large) && unknown.covers(&unknown) && !large.covers(&unknown));
        for inventory in [&small, &large, &unknown, &Inventory::default()] {
            assert_eq!(&Inventory::from_value(&inventory.to_value()), inventory);
        }
        assert_eq!(of(&large.objects().unwrap()), large);
        assert_eq!(unknown.objects(), None);
    }

    #[test]
    fn inventory_without_bounds_is_unknown() {
        let many: Vec<ObjectRef> = (0..=MAX_PAIRS)
            .map(|i| object("ConfigMap", &format!("n{i}"), "c"))
            .collect();
        let raw = with_inventory(
            &raw(&[object("ConfigMap", "n", "a")], 20_000),
            &Inventory::of(Some(&many)),
        );
        assert_eq!(status_objects(&raw), None);
        assert_eq!(
            Inventory::of(Some(&many)).with(Inventory::of(None)),
            Inventory::of(None)
        );
    }
}
