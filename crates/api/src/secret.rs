//! A value that cannot be printed by accident.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands in for a secret wherever text is made of it.
const MASK: &str = "***";

/// A value whose `Debug` and `Display` show `***`. It decodes like the value itself, but encodes only where a field asks
/// for it with `#[serde(serialize_with = "Secret::serialize_exposed")]`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Shows the value: for the one place that needs it.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: AsRef<str>> Secret<T> {
    /// Replaces the secret wherever a foreign text (an answer, an error) repeats it. Secrets of fewer than three
    /// bytes are not searched for: they would turn any text into stars.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        let secret = self.0.as_ref().trim();
        if secret.len() < 3 {
            text.to_owned()
        } else {
            text.replace(secret, MASK)
        }
    }
}

impl<T: Serialize> Secret<T> {
    /// Encodes the value as it is: for a field of an object that holds it in clear text anyway.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize_exposed<S: Serializer>(secret: &Option<Self>, serializer: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Self::expose).serialize(serializer)
    }
}

impl<T> From<T> for Secret<T> {
    fn from(value: T) -> Self {
        Self(value)
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<T> fmt::Display for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_display_shows_it() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "*** *** Some(***)"
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn foreign_text_is_masked() {
        let secret = Secret::new("hunter2\n");
        assert_eq!(
            secret.mask("bad password hunter2, hunter2!"),
            "bad password ***, ***!"
        );
        assert_eq!(Secret::new("").mask("text"), "text");
        assert_eq!(Secret::new("e").mask("text"), "text");
    }
}
