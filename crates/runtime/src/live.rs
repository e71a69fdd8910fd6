//! Objects as passes read them: without `managedFields`.

use std::{borrow::Cow, fmt};

use kube::{
    Resource,
    api::{ApiResource, DynamicObject, ObjectMeta, TypeMeta},
};
use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor, value::MapAccessDeserializer,
    },
};
use serde_json::{Map, Value};

const MANAGED_FIELDS: &str = "managedFields";

/// An untyped object without `metadata.managedFields`, which are half of a small object. It is parsed without the buffer of
/// [`DynamicObject`].
#[derive(Debug, Clone)]
pub(crate) struct Live(pub(crate) DynamicObject);

impl Resource for Live {
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
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

impl<'de> Deserialize<'de> for Live {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LiveVisitor)
    }
}

struct LiveVisitor;

impl<'de> Visitor<'de> for LiveVisitor {
    type Value = Live;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kubernetes object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Live, A::Error> {
        let (mut api_version, mut kind) = (None, None);
        let (mut metadata, mut data) = (ObjectMeta::default(), Map::new());
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "apiVersion" => api_version = Some(map.next_value()?),
                "kind" => kind = Some(map.next_value()?),
                "metadata" => Metadata(metadata) = map.next_value()?,
                _ => {
                    data.insert(key.into_owned(), map.next_value()?);
                }
            }
        }
        let types = api_version.zip(kind);
        Ok(Live(DynamicObject {
            types: types.map(|(api_version, kind)| TypeMeta { api_version, kind }),
            metadata,
            data: Value::Object(data),
        }))
    }
}

#[derive(Default)]
pub(crate) struct Metadata(pub(crate) ObjectMeta);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetadataVisitor)
    }
}

struct MetadataVisitor;

impl<'de> Visitor<'de> for MetadataVisitor {
    type Value = Metadata;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata of an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Metadata, A::Error> {
        ObjectMeta::deserialize(MapAccessDeserializer::new(WithoutManagedFields(map))).map(Metadata)
    }
}

struct WithoutManagedFields<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WithoutManagedFields<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.0.next_key::<Cow<'de, str>>()? {
            if key != MANAGED_FIELDS {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.0.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn object_is_read_like_an_untyped_one_but_for_its_managed_fields() {
        let entry = json!({"manager": "m", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}});
        let object = json!({
            "apiVersion": "g/v1", "kind": "K",
            "metadata": {
                "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7", "generation": 2,
                "annotations": {"a\"": "1"}, "labels": {"l": "2"}, "finalizers": ["f"],
                "creationTimestamp": "2026-01-02T03:04:05Z", "managedFields": [entry],
            },
            "spec": {"a": [1, null, {"b": "ä"}]},
            "status": {"conditions": []},
        });
        let text = object.to_string();
        let mut expected: DynamicObject = serde_json::from_str(&text).unwrap();
        expected.metadata.managed_fields = None;
        let Live(read) = serde_json::from_str(&text).unwrap();
        assert_eq!(json!(read), json!(expected));
        let Live(read) = serde_json::from_value(object).unwrap();
        assert_eq!(json!(read), json!(expected));
    }

    #[test]
    fn answer_that_is_no_object_is_an_error() {
        for text in [
            "[]",
            "1",
            "null",
            r#"{"metadata": []}"#,
            r#"{"metadata": {"name": 1}}"#,
        ] {
            assert!(serde_json::from_str::<Live>(text).is_err(), "{text}");
        }
    }
}
