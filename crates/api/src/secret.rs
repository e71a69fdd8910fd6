//! Secret values that are not printed by accident.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MASK: &str = "***";

/// A value whose `Debug` and `Display` print `***`. It deserializes like the value itself, and serializes only with
/// `#[serde(serialize_with = "Secret::serialize_exposed")]`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value, for the code that needs it.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Returns the value, and drops the protection.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T: AsRef<str>> Secret<T> {
    /// Replaces the secret in a string of another program (a response, an error). Secrets of fewer than three bytes are
    /// not replaced: they would occur anywhere.
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
    /// Serializes the value itself, for a field of an object that has it in clear text.
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
    fn debug_and_display_print_stars() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(
            format!("{secret} {secret:?} {:?}", Some(&secret)),
            "*** *** Some(***)"
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn mask_replaces_the_secret() {
        let secret = Secret::new("hunter2\n");
        assert_eq!(
            secret.mask("bad password hunter2, hunter2!"),
            "bad password ***, ***!"
        );
        assert_eq!(Secret::new("").mask("text"), "text");
        assert_eq!(Secret::new("e").mask("text"), "text");
    }
}
