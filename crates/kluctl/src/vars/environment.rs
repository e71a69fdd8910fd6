//! Variables of the environment.

use objects::path::{self, Key};
use yaml::{Map, Value};

use super::{external::VarsError, read::Reader};
use crate::Error;

impl Reader<'_> {
    /// Replaces the names in a map by the values of the variables.
    pub(super) fn environment(&mut self, names: &Value) -> Result<Value, Error> {
        let mut found = Map::new();
        for leaf in path::leaves(names) {
            let Some(value) =
                path::get(names, &leaf).filter(|value| !value.as_map().is_some_and(Map::is_empty))
            else {
                continue;
            };
            let path = path::canonical(&leaf);
            let Some(text) = value.as_str() else {
                return Err(self.failed(format!("value at {path} is not a string")));
            };
            let (name, default) = match text.split_once(':') {
                Some((name, default)) => (name, Some(default)),
                None => (text, None),
            };
            let set = self
                .sources()
                .environment(name)
                .map_err(|error| self.failed(error))?;
            let missing = || VarsError::Missing(format!("environment variable {name} not found for {path}"));
            let value = match (set, default) {
                // An empty variable is null, unlike an empty default.
                (None, Some("")) => Value::from(""),
                (set, default) => {
                    let text = set.or_else(|| default.map(str::to_owned)).ok_or_else(missing);
                    let Some(text) = self.unless_missing(text)? else {
                        continue;
                    };
                    self.parse(&format!("the environment variable {name}"), &text)?
                }
            };
            put(&mut found, &leaf, value)
                .ok_or_else(|| self.failed(format!("failed to set value for {path}: key is not a string")))?;
        }
        Ok(Value::Map(found))
    }
}

fn put(map: &mut Map, path: &[Key], value: Value) -> Option<()> {
    let (last, above) = path.split_last()?;
    let mut at = map;
    for key in above {
        let Key::Field(name) = key else { return None };
        at = at.get_or_insert_map(name)?;
    }
    let Key::Field(name) = last else { return None };
    at.insert(&**name, value);
    Some(())
}
