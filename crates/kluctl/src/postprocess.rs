//! Labels and annotations of the objects of an item.

use kustomize::Built;
use objects::meta;
use tree::{Budget, TreePath};
use yaml::{Map, Value};

use crate::{Error, annotations, plan::PlanItem, repeated};

/// Labels the objects of an item, omits the ignored ones, and refuses unsupported annotations.
pub(crate) fn finish(
    item: &PlanItem,
    dir: &TreePath,
    discriminator: Option<&str>,
    built: Vec<Built>,
    budget: &Budget,
) -> Result<Vec<Value>, Error> {
    let marks = Marks::new(item, dir, discriminator);
    let mut objects = Vec::with_capacity(built.len());
    for Built {
        mut object,
        file,
        line,
    } in built
    {
        if meta::flag(&object, annotations::IGNORE) {
            continue;
        }
        if let Some(name) = annotations::refused(&object) {
            let field = format!("the annotation {name}");
            return Err(Error::Unsupported {
                file: file.as_ref().clone(),
                line,
                field,
            });
        }
        repeated::count(budget, marks.lens(), || {
            format!("labels and annotations of objects in {dir}")
        })?;
        if is_list(&object) {
            marks.count_items(&object, dir, budget)?;
        }
        let marked = marks.set(&mut object).and_then(|()| match is_list(&object) {
            true => marks.set_items(&mut object),
            false => Ok(()),
        });
        marked.map_err(|what| Error::Invalid {
            file: file.as_ref().clone(),
            line,
            problem: format!("{what} of an object must be a map"),
        })?;
        objects.push(object);
    }
    Ok(objects)
}

/// Labels and annotations of every object of an item.
struct Marks {
    labels: Vec<(String, Value)>,
    annotations: Vec<(String, Value)>,
}

impl Marks {
    fn new(item: &PlanItem, dir: &TreePath, discriminator: Option<&str>) -> Self {
        let entries = |map: &Map| -> Vec<(String, Value)> {
            map.iter()
                .map(|(key, value)| (key.to_owned(), value.clone()))
                .collect()
        };
        let mut labels = entries(&item.labels);
        if let Some(discriminator) = discriminator {
            labels.push((annotations::DISCRIMINATOR.to_owned(), Value::from(discriminator)));
        }
        for (index, tag) in item.tags.iter().enumerate() {
            labels.push((
                format!("{}{index}", annotations::TAG_PREFIX),
                Value::from(tag.as_str()),
            ));
        }
        let mut annotations = entries(&item.annotations);
        annotations.push((annotations::ITEM_DIR.to_owned(), Value::from(dir.to_string())));
        if item.skip_delete_if_tags {
            annotations.push((annotations::SKIP_DELETE_IF_TAGS.to_owned(), Value::from("true")));
        }
        Self { labels, annotations }
    }

    fn lens(&self) -> impl Iterator<Item = usize> {
        let entries = self.labels.iter().chain(&self.annotations);
        entries.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
    }

    /// Adds labels and annotations to an object. Fails with the field that is not a map.
    fn set(&self, object: &mut Value) -> Result<(), &'static str> {
        let metadata = object
            .as_map_mut()
            .and_then(|object| object.get_or_insert_map("metadata"));
        let metadata = metadata.ok_or("metadata")?;
        insert_all(metadata, "labels", &self.labels).ok_or("metadata.labels")?;
        insert_all(metadata, "annotations", &self.annotations).ok_or("metadata.annotations")
    }

    /// Counts the items of a list as objects, and their labels and annotations.
    fn count_items(&self, list: &Value, dir: &TreePath, budget: &Budget) -> Result<(), Error> {
        let operation = || format!("labels and annotations of the items of a list in {dir}");
        let items = list
            .get("items")
            .and_then(Value::as_seq)
            .map_or(0, <[Value]>::len);
        let counted = budget.objects(items as u64);
        counted.map_err(|source| Error::Budget {
            operation: operation(),
            source,
        })?;
        for _ in 0..items {
            repeated::count(budget, self.lens(), operation)?;
        }
        Ok(())
    }

    /// Marks the items of a list, and removes the ignored ones.
    fn set_items(&self, list: &mut Value) -> Result<(), &'static str> {
        let Some(Value::Seq(items)) = list.get_mut("items") else {
            return Ok(());
        };
        items.retain(|item| !meta::flag(item, annotations::IGNORE));
        items.iter_mut().try_for_each(|item| self.set(item))
    }
}

fn is_list(object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    text("apiVersion") == Some("v1") && text("kind") == Some("List")
}

fn insert_all(metadata: &mut Map, field: &str, entries: &[(String, Value)]) -> Option<()> {
    if entries.is_empty() {
        return Some(());
    }
    let map = metadata.get_or_insert_map(field)?;
    for (key, value) in entries {
        map.insert(key.as_str(), value.clone());
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use tree::Limits;

    use super::*;

    #[test]
    fn items_of_a_list_are_counted_as_objects_with_their_labels() {
        let list = |items: usize| {
            let text = format!("apiVersion: v1\nkind: List\nitems:\n{}", "- {}\n".repeat(items));
            yaml::read::goyaml(text, &Budget::default()).unwrap().value
        };
        let marks = |bytes: usize| Marks {
            labels: vec![("a".to_owned(), Value::from("v".repeat(bytes)))],
            annotations: Vec::new(),
        };
        let count = |marks: Marks, items| {
            let budget = Budget::new(Limits {
                objects: 1000,
                bytes: 1 << 20,
                ..Limits::default()
            });
            marks
                .count_items(&list(items), &TreePath::root(), &budget)
                .is_ok()
        };
        assert!(count(marks(10), 1000) && !count(marks(10), 1001));
        assert!(count(marks(20_000), 50) && !count(marks(20_000), 200));
    }
}
