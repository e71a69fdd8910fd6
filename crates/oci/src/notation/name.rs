//! Distinguished names in policies and certificates.

use std::collections::BTreeMap;

use x509_parser::{
    asn1_rs::Tag,
    x509::{AttributeTypeAndValue, X509Name},
};

const MANDATORY: [&str; 3] = ["C", "ST", "O"];
const ATTRIBUTES: [(u8, &str); 9] = [
    (3, "CN"),
    (5, "SERIALNUMBER"),
    (6, "C"),
    (7, "L"),
    (8, "ST"),
    (9, "STREET"),
    (10, "O"),
    (11, "OU"),
    (17, "POSTALCODE"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(BTreeMap<String, String>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The string does not follow RFC 4514.
    #[error("it is not written as RFC 4514 says, such as 'C=US, ST=WA, O=Example'")]
    Malformed,
    #[error("it has an attribute whose type or value is not supported")]
    Unsupported,
    #[error("it has attributes joined by '+', which are not supported")]
    Joined,
    #[error("it has an attribute twice")]
    Twice,
    #[error("it needs the attributes C, ST (or S) and O")]
    Incomplete,
}

impl Name {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidName> {
        if text.contains("=#") {
            return Err(InvalidName::Unsupported);
        }
        let mut found = BTreeMap::new();
        for attribute in split(text)? {
            let (kind, value) = attribute.split_once('=').ok_or(InvalidName::Malformed)?;
            let is_kind = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            let kind = kind.trim();
            if kind.is_empty() || !kind.chars().all(is_kind) {
                return Err(InvalidName::Malformed);
            }
            let kind = if kind == "S" { "ST" } else { kind };
            insert(&mut found, kind, unescaped(value)?)?;
        }
        Self::complete(found)
    }

    pub(super) fn of_certificate(name: &X509Name<'_>) -> Result<Self, InvalidName> {
        let mut found = BTreeMap::new();
        for attribute in name.iter_attributes() {
            let (kind, value) = attribute_of(attribute).ok_or(InvalidName::Unsupported)?;
            insert(&mut found, kind, value)?;
        }
        Self::complete(found)
    }

    fn complete(found: BTreeMap<String, String>) -> Result<Self, InvalidName> {
        let has = |kind: &&str| found.get(*kind).is_some_and(|value| !value.is_empty());
        match MANDATORY.iter().all(has) {
            true => Ok(Self(found)),
            false => Err(InvalidName::Incomplete),
        }
    }

    /// Returns true if the other name has all attributes of this one, with the same values.
    pub(super) fn is_part_of(&self, other: &Self) -> bool {
        let mut own = self.0.iter();
        own.all(|(kind, value)| other.0.get(kind) == Some(value))
    }
}

fn insert(found: &mut BTreeMap<String, String>, kind: &str, value: String) -> Result<(), InvalidName> {
    match found.insert(kind.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(InvalidName::Twice),
    }
}

fn split(text: &str) -> Result<Vec<&str>, InvalidName> {
    let mut parts = Vec::new();
    let (mut begin, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '+' => return Err(InvalidName::Joined),
            '"' | ';' | '<' | '>' => return Err(InvalidName::Malformed),
            ',' => {
                parts.push(text.get(begin..at).unwrap_or_default());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..).unwrap_or_default());
    Ok(parts)
}

/// Removes escapes, and unescaped white space around the value.
fn unescaped(value: &str) -> Result<String, InvalidName> {
    let mut out = Vec::new();
    // Length that must not be trimmed.
    let mut untrimmed = 0;
    let mut rest = value.trim_start().bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let first = rest.next().ok_or(InvalidName::Malformed)?;
        if first.is_ascii_hexdigit() {
            let pair = [first, rest.next().ok_or(InvalidName::Malformed)?];
            let mut decoded = [0];
            hex::decode_to_slice(pair, &mut decoded).map_err(|_| InvalidName::Malformed)?;
            out.extend(decoded);
        } else {
            out.push(first);
        }
        untrimmed = out.len();
    }
    while out.len() > untrimmed && out.last().is_some_and(u8::is_ascii_whitespace) {
        out.pop();
    }
    String::from_utf8(out).map_err(|_| InvalidName::Malformed)
}

fn attribute_of(attribute: &AttributeTypeAndValue<'_>) -> Option<(&'static str, String)> {
    let [0x55, 0x04, number] = attribute.attr_type().as_bytes() else {
        return None;
    };
    let (_, kind) = ATTRIBUTES.iter().find(|(known, _)| known == number)?;
    let value = attribute.as_slice();
    let is_text = match attribute.attr_value().tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => true,
        Tag::TeletexString => value.is_ascii(),
        _ => false,
    };
    let text = String::from_utf8(value.to_vec()).ok();
    text.filter(|_| is_text).map(|text| (*kind, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_as_rfc_4514_says() {
        let name = |text: &str| Name::parse(text);
        let plain = name("C=US, ST=WA, O=Example").unwrap();
        assert_eq!(name("S=WA,O= Example ,C=US"), Ok(plain.clone()));
        let full = name(r"C=US,ST=WA,O=Example\, Inc.,CN=\20a\C3\A9\ ").unwrap();
        assert_eq!(full.0["O"], "Example, Inc.");
        assert_eq!(full.0["CN"], " aé ");
        assert!(!plain.is_part_of(&full) && !full.is_part_of(&plain));
        assert!(plain.is_part_of(&name("C=US,ST=WA,O=Example,CN=a").unwrap()));
        for (text, expected) in [
            ("", InvalidName::Malformed),
            ("C=US,ST=WA", InvalidName::Incomplete),
            ("C=US,ST=WA,O=", InvalidName::Incomplete),
            ("C=US,ST=WA,O=a,O=b", InvalidName::Twice),
            ("C=US,ST=WA,S=WA,O=b", InvalidName::Twice),
            ("C=US,ST=WA,O=a+CN=b", InvalidName::Joined),
            ("C=US,ST=WA,O=#04", InvalidName::Unsupported),
            ("C=US,ST=WA,O=a\\", InvalidName::Malformed),
            ("C=US,ST=WA,O=\\4", InvalidName::Malformed),
            ("C=US,ST=WA,O=\\ff", InvalidName::Malformed),
            ("C=US,ST=WA,O=\"a\"", InvalidName::Malformed),
            ("C=US,ST=WA,=a", InvalidName::Malformed),
        ] {
            assert_eq!(name(text), Err(expected), "{text}");
        }
    }
}
