//! Named values for an evaluation.

use crate::Value;

/// Named values for an evaluation; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Variables(Vec<(String, Value)>);

impl Variables {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a variable.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => self.0.push((name, value)),
        }
        self
    }

    /// Makes a variable of each field of an object, as health checks name them.
    #[must_use]
    pub fn from_fields(object: &yaml::Map) -> Self {
        let fields = object.iter();
        Self(
            fields
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known == name).map(|(_, value)| value)
    }
}
