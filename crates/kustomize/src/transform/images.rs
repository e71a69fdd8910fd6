//! Sets names, tags and digests of images.

mod name;

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use yaml::{Node, node::Content};

use self::name::Rule;
use super::{decode, set};
use crate::{
    Error,
    fieldspec::{Create, FieldSpec},
    model::{Field, Image, configs},
    options::Profile,
    resmap::ResMap,
    resource::Resource,
    selector::Patterns,
    transform::{PluginContext, Transformer},
};

#[derive(Debug, Clone)]
pub(crate) struct Images {
    rules: Vec<Rule>,
    specs: Vec<FieldSpec>,
}

impl Images {
    /// Makes the transformer of `images`, or of one entry of it.
    pub(crate) fn new(
        images: &[Image],
        specs: &[FieldSpec],
        profile: Profile,
        patterns: Patterns<'_>,
    ) -> Result<Self, Error> {
        let rules = images.iter().map(|image| Rule::new(image, profile, patterns));
        Ok(Self {
            rules: rules.collect::<Result<_, Error>>()?,
            specs: specs.to_vec(),
        })
    }

    /// Reads an `ImageTagTransformer`.
    pub(crate) fn from_config(config: &yaml::Value, ctx: &PluginContext<'_>) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Settings {
            image_tag: Image,
            field_specs: Vec<Field>,
        }
        let settings: Settings = decode::config(config, &configs::IMAGES)?;
        let specs: Vec<_> = settings.field_specs.into_iter().map(FieldSpec::from).collect();
        let patterns = Patterns::new(ctx.run, ctx.loader.root());
        Self::new(&[settings.image_tag], &specs, ctx.run.options.profile, patterns)
    }

    /// The original walks an object twice for each rule: by the names of lists, then by the fields of the tables. Here the
    /// second walk is first, only to count the visits of each field there; the first walk, or else the second, then sets the
    /// image.
    fn apply(&self, resource: &mut Resource, ctx: &PluginContext<'_>) -> Result<(), Error> {
        let mut listed = HashMap::new();
        self.visit_fields(resource, &mut |image| {
            *listed.entry(address(image)).or_insert(0) += 1;
            Ok(())
        })?;
        let mut pass = Pass { listed, ctx };
        self.walk(resource.node_mut(), &mut pass)?;
        if pass.listed.is_empty() {
            return Ok(());
        }
        self.visit_fields(resource, &mut |image| match pass.listed.remove(&address(image)) {
            Some(times) => self.set(image, times, ctx),
            None => Ok(()),
        })
    }

    fn visit_fields(
        &self,
        resource: &mut Resource,
        set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.specs
            .iter()
            .try_for_each(|spec| set::visit(resource, spec, Create::Nothing, set))
    }

    /// Sets the images of all lists of containers, at any depth.
    ///
    /// quirk: fields of the tables are set once more for each visit, which is visible if a suffix is added to their tags.
    fn walk(&self, node: &mut Node, pass: &mut Pass<'_>) -> Result<(), Error> {
        match &mut node.content {
            Content::Map(map) => map.iter_mut().try_for_each(|(key, value)| {
                self.walk(value, pass)?;
                match (&mut value.content, key) {
                    (Content::Seq(containers), "containers" | "initContainers") => containers
                        .iter_mut()
                        .try_for_each(|container| self.set_container(container, pass)),
                    _ => Ok(()),
                }
            }),
            Content::Seq(items) => items.iter_mut().try_for_each(|item| self.walk(item, pass)),
            Content::Scalar(_) => Ok(()),
        }
    }

    fn set_container(&self, container: &mut Node, pass: &mut Pass<'_>) -> Result<(), Error> {
        if container.is_null() {
            return Ok(());
        }
        if container.as_map().is_none() {
            return Err(set::wrong_kind("MappingNode", container));
        }
        match container.get_mut("image") {
            Some(image) => {
                let times = pass.listed.remove(&address(image)).unwrap_or_default();
                self.set(image, times + 1, pass.ctx)
            }
            None => Ok(()),
        }
    }

    /// Applies each rule once per visit of the image. For a null, the characters in the source count.
    fn set(&self, image: &mut Node, times: usize, ctx: &PluginContext<'_>) -> Result<(), Error> {
        ctx.step(self.rules.len())?;
        let patterns = Patterns::new(ctx.run, ctx.loader.root());
        let Content::Scalar(scalar) = &image.content else {
            return Err(set::wrong_kind("ScalarNode", image));
        };
        let mut text = Cow::Borrowed(&*scalar.text);
        for rule in &self.rules {
            for _ in 0..times {
                match rule.apply(&text, patterns)? {
                    Some(new) => text = Cow::Owned(new),
                    None => break,
                }
            }
        }
        if let Cow::Owned(text) = text {
            ctx.grow(&text)?;
            set::scalar(image, &text, None)?;
        }
        Ok(())
    }
}

struct Pass<'s> {
    /// The number of times that a field is in the tables, by its address.
    listed: HashMap<usize, usize>,
    ctx: &'s PluginContext<'s>,
}

/// Returns the address of a node, which identifies it as long as the object isn't changed.
fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

impl Transformer for Images {
    fn transform(&self, resources: &mut ResMap, ctx: &PluginContext<'_>) -> Result<(), Error> {
        if self.rules.is_empty() {
            return Ok(());
        }
        for resource in resources.iter_mut() {
            ctx.step(self.specs.len())?;
            // A definition describes containers, it has none.
            if resource.gvk().kind != "CustomResourceDefinition" {
                self.apply(resource, ctx)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::shapes,
        transform::testing::{self, transformed},
    };

    fn images(entries: &str) -> Images {
        let list = testing::config(entries);
        let entries = list.as_seq().unwrap().iter();
        let entries: Vec<Image> = entries
            .map(|entry| decode::config(entry, &shapes::IMAGE).unwrap())
            .collect();
        let rows = ["spec/containers[]/image", "spec/volumes[]/image/reference"]
            .map(|path| testing::row(path, true));
        testing::ctx(&[], Profile::V5_8_1, |ctx| {
            let patterns = Patterns::new(ctx.run, ctx.loader.root());
            Images::new(&entries, &rows, Profile::V5_8_1, patterns).unwrap()
        })
    }

    fn pod(spec: &str, entries: &str) -> String {
        let object = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: x}}, spec: {spec}}}");
        let text = transformed(&object, &images(entries));
        match text.split_once("spec:\n") {
            Some((_, spec)) => spec.to_owned(),
            None => text,
        }
    }

    #[test]
    fn images_of_containers_and_of_the_table_are_set() {
        let spec = "{containers: [{image: a:1}, {image: b}, {name: c}, {image: null}], \
                     volumes: [{image: {reference: a}}], deep: [{initContainers: [{image: a}]}], other: [{image: a}]}";
        assert_eq!(
            pod(spec, "[{name: a, newTag: '2'}]"),
            "  containers:\n  - image: a:2\n  - image: b\n  - name: c\n  - image: null\n  deep:\n  - initContainers:\n    \
             - image: a:2\n  other:\n  - image: a\n  volumes:\n  - image:\n      reference: a:2\n"
        );
    }

    #[test]
    fn image_entries_apply_in_order() {
        let entries = "[{name: a, newName: b}, {name: b, newTag: '3'}, {name: z}]";
        assert_eq!(
            pod("{containers: [{image: a}]}", entries),
            "  containers:\n  - image: b:3\n"
        );
        // A rule runs for all visits before the next rule.
        let entries = "[{name: a, newName: b}, {name: b, newName: a, tagSuffix: -x}]";
        let expected = "  containers:\n  - image: a:-x\n";
        assert_eq!(pod("{containers: [{image: a}]}", entries), expected);
    }

    #[test]
    fn a_suffix_is_added_once_for_each_path_to_the_image() {
        let spec = "{containers: [{image: a:1}], deep: {containers: [{image: a:1}]}, volumes: [{image: {reference: a:1}}]}";
        assert_eq!(
            pod(spec, "[{name: a, tagSuffix: -x}]"),
            "  containers:\n  - image: a:1-x-x\n  deep:\n    containers:\n    - image: a:1-x\n  volumes:\n  - image:\n      \
             reference: a:1-x\n"
        );
    }

    #[test]
    fn null_container_list_becomes_empty() {
        assert_eq!(
            pod("{containers: null}", "[{name: a, newTag: b}]"),
            "  containers: []\n"
        );
    }

    #[test]
    fn images_that_are_not_strings_are_refused() {
        let entry = "[{name: a, newTag: b}]";
        let error = pod("{initContainers: [{image: [a]}]}", entry);
        assert_eq!(error, "wrong node kind: expected ScalarNode but got SequenceNode");
        let error = pod("{initContainers: [a]}", entry);
        assert_eq!(error, "wrong node kind: expected MappingNode but got ScalarNode");
    }

    #[test]
    fn custom_resource_definitions_are_unchanged() {
        let object = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, \
                       spec: {containers: [{image: a}]}}";
        assert!(transformed(object, &images("[{name: a, newTag: b}]")).ends_with("- image: a\n"));
    }

    #[test]
    fn a_configuration_is_one_entry_with_its_fields() {
        let config = testing::config("{imageTag: {name: a, newTag: 2}, fieldSpecs: [{path: spec/image}]}");
        let images = testing::ctx(&[], Profile::V5_8_1, |ctx| {
            Images::from_config(&config, ctx).unwrap()
        });
        let object = "{apiVersion: v1, kind: A, metadata: {name: x}, spec: {image: a}}";
        assert!(transformed(object, &images).ends_with("spec:\n  image: a:2\n"));
    }
}
