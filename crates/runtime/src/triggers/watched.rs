//! Objects of a watch, of which only the needed fields stay in memory.
//!
//! A status can have hundreds of kilobytes, and a page of a list 500 objects. All other fields are skipped while the answer is
//! parsed, so they take no memory beside the answer itself.

use std::{borrow::Cow, fmt, marker::PhantomData};

use kube::{
    Resource,
    api::ObjectMeta,
    core::{ApiResource, DynamicObject},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// The fields of `spec` and `status` to keep.
pub trait WatchedFields: Send + Sync + 'static {
    const SPEC: &'static [&'static str];
    const STATUS: &'static [&'static str];
}

/// An untyped object with its identity, its generation, and the fields of `F`.
pub struct Watched<F> {
    pub object: DynamicObject,
    fields: PhantomData<fn() -> F>,
}

impl<F> Clone for Watched<F> {
    fn clone(&self) -> Self {
        Self {
            object: self.object.clone(),
            fields: PhantomData,
        }
    }
}

impl<F> fmt::Debug for Watched<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.object).finish()
    }
}

impl<F: 'static> Resource for Watched<F> {
    type DynamicType = ApiResource;
    type Scope = <DynamicObject as Resource>::Scope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.object.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.object.metadata
    }
}

/// The metadata to keep: no annotations, labels and managed fields.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
}

impl<'de, F: WatchedFields> Deserialize<'de> for Watched<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<F>(PhantomData<fn() -> F>);

impl<'de, F: WatchedFields> Visitor<'de> for ObjectVisitor<F> {
    type Value = Watched<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut metadata, mut data) = (Metadata::default(), Map::new());
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "metadata" => metadata = map.next_value()?,
                "spec" => {
                    data.insert("spec".to_owned(), map.next_value_seed(Only(F::SPEC))?);
                }
                "status" => {
                    data.insert("status".to_owned(), map.next_value_seed(Only(F::STATUS))?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let metadata = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            ..ObjectMeta::default()
        };
        Ok(Watched {
            object: DynamicObject {
                types: None,
                metadata,
                data: Value::Object(data),
            },
            fields: PhantomData,
        })
    }
}

/// Reads these fields of a map. Anything but a map is read as null, because one invalid object must not end the watch.
struct Only(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Only {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Only {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if self.0.contains(&key.as_ref()) {
                fields.insert(key.into_owned(), map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug)]
    struct Fields;

    impl WatchedFields for Fields {
        const SPEC: &'static [&'static str] = &["sourceRef"];
        const STATUS: &'static [&'static str] = &["conditions"];
    }

    fn data(object: &Value) -> Value {
        let watched: Watched<Fields> = serde_json::from_str(&object.to_string()).unwrap();
        watched.object.data
    }

    #[test]
    fn watched_objects_keep_their_identity_and_the_wanted_fields() {
        let large = "x".repeat(1 << 20);
        let object = json!({
            "apiVersion": "v1", "kind": "A",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3,
                "annotations": {"a": large}, "managedFields": [{"fieldsV1": {"f:spec": {"f:a": {}}}}]},
            "spec": {"sourceRef": {"name": "s"}, "args": [large]},
            "status": {"lastDeployResult": {"objects": [large]}, "conditions": [{"type": "Ready"}]},
        });
        let watched: Watched<Fields> = serde_json::from_str(&object.to_string()).unwrap();
        let kept = serde_json::to_value(&watched.object).unwrap();
        let expected = json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 3},
            "spec": {"sourceRef": {"name": "s"}},
            "status": {"conditions": [{"type": "Ready"}]},
        });
        assert_eq!(kept, expected);
    }

    #[test]
    fn invalid_sections_do_not_end_a_watch() {
        for section in [
            json!(null),
            json!(true),
            json!(-1),
            json!(1),
            json!(1.5),
            json!("x"),
            json!([1, {"a": 2}]),
        ] {
            let object = json!({"metadata": {"name": "a"}, "spec": section, "status": section});
            assert_eq!(data(&object), json!({"spec": null, "status": null}), "{section}");
        }
        assert_eq!(data(&json!({"metadata": {"name": "a"}})), json!({}));
    }
}
