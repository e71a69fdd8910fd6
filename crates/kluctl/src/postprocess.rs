//! Labels and annotations of the objects of an item.

use kustomize::Built;
use objects::{annotations as names, meta};
use tree::TreePath;
use yaml::{Map, Value};

use crate::{Error, annotations, plan::PlanItem};

/// Labels the objects of an item, leaves out the ignored ones, and refuses what would not be obeyed.
pub(crate) fn finish(
    item: &PlanItem,
    dir: &TreePath,
    discriminator: Option<&str>,
    built: Vec<Built>,
) -> Result<Vec<Value>, Error> {
    let mut labels: Vec<(String, Value)> = item
        .labels
        .iter()
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect();
    if let Some(discriminator) = discriminator {
        labels.push((names::DISCRIMINATOR.to_owned(), Value::from(discriminator)));
    }
    for (index, tag) in item.tags.iter().enumerate() {
        labels.push((format!("kluctl.io/tag-{index}"), Value::from(tag.as_str())));
    }
    let dir = Value::from(dir.to_string());
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
        let invalid = |what: &str| Error::Invalid {
            file: file.as_ref().clone(),
            line,
            problem: format!("{what} of an object must be a map"),
        };
        let metadata = object
            .as_map_mut()
            .and_then(|object| object.get_or_insert_map("metadata"));
        let metadata = metadata.ok_or_else(|| invalid("metadata"))?;
        insert_all(metadata, "labels", labels.iter().cloned()).ok_or_else(|| invalid("metadata.labels"))?;
        let item_dir = std::iter::once((names::ITEM_DIR.to_owned(), dir.clone()));
        insert_all(metadata, "annotations", item_dir).ok_or_else(|| invalid("metadata.annotations"))?;
        objects.push(object);
    }
    Ok(objects)
}

fn insert_all(metadata: &mut Map, field: &str, entries: impl Iterator<Item = (String, Value)>) -> Option<()> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Some(());
    }
    let map = metadata.get_or_insert_map(field)?;
    for (key, value) in entries {
        map.insert(key, value);
    }
    Some(())
}
