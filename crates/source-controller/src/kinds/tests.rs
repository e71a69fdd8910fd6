//! The test that each kind of source runs over its schema.

use std::{
    collections::BTreeSet,
    fmt::{self, Debug},
};

use api::{Fault, Reason};
use kube::CustomResourceExt;

pub(super) struct Field<S> {
    /// Its path, as in `include[].fromPath`.
    pub(super) path: &'static str,
    pub(super) set: fn(&mut S),
    /// False if it is refused by name.
    pub(super) is_obeyed: bool,
}

impl<S> Debug for Field<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

pub(super) const fn field<S>(path: &'static str, set: fn(&mut S), is_obeyed: bool) -> Field<S> {
    Field { path, set, is_obeyed }
}

/// Checks that `fields` are all properties of the schema of `K`, and that each is obeyed or refused by name.
pub(super) fn check_schema<K: CustomResourceExt, S>(
    fields: &[Field<S>],
    validate: impl Fn(fn(&mut S)) -> Result<(), Fault>,
) {
    for field in fields {
        match (validate(field.set), field.is_obeyed) {
            (Ok(()), true) => {}
            (Err(fault), false) => {
                let top = field.path.split(['.', '[']).next().unwrap_or_default();
                assert_eq!(fault.reason, Reason::UnsupportedField, "{field:?}: {fault}");
                assert!(
                    fault.message.starts_with(&format!("spec.{top}")),
                    "{field:?}: {fault}"
                );
            }
            (found, _) => panic!("{field:?}: {found:?}"),
        }
    }
    let crd = serde_json::to_value(K::crd()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut leaves = BTreeSet::new();
    walk(spec, "", &mut leaves);
    let listed = fields.iter().map(|field| field.path.to_owned());
    assert_eq!(leaves, listed.collect());
}

fn walk(schema: &serde_json::Value, path: &str, leaves: &mut BTreeSet<String>) {
    let items = &schema["items"];
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            let separator = if path.is_empty() { "" } else { "." };
            walk(property, &format!("{path}{separator}{name}"), leaves);
        }
    } else if items["properties"].is_object() {
        walk(items, &format!("{path}[]"), leaves);
    } else {
        leaves.insert(path.to_owned());
    }
}
