//! Finds the image requests of templates in objects, and replaces them by images.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jinja::{IMAGE_BEGIN as BEGIN, IMAGE_END as END};
use objects::{
    ObjectRef,
    path::{self, Key, Path},
};
use tree::Budget;
use yaml::{Map, Value};

use super::{
    FixedImage,
    fixed::{Asks, of_variables, reference_map},
};
use crate::{
    Error,
    error::{MAX_ERRORS, many},
    repeated,
};

/// An image that an object requested, and the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedImage {
    pub image: String,
    pub result_image: String,
    /// With its namespace as it was written.
    pub object: ObjectRef,
    pub container: Option<String>,
    pub tags: Vec<String>,
    pub dir: String,
    /// Index of the item in [`crate::Rendered::items`], and of the object in the item.
    pub position: (usize, usize),
    /// The field, if it is an image and nothing else.
    pub field: Option<Path>,
}

impl RequestedImage {
    /// Converts the image to the form of results and listings; `deployed` is the image in the cluster.
    #[must_use]
    pub fn to_map(&self, deployed: Option<&str>) -> Map {
        let mut map = Map::new();
        map.insert("image", self.image.as_str());
        map.insert("resultImage", self.result_image.as_str());
        if let Some(deployed) = deployed {
            map.insert("deployedImage", deployed);
        }
        if let Some(namespace) = &self.object.namespace {
            map.insert("namespace", namespace.as_str());
        }
        map.insert("object", reference_map(&self.object));
        map.insert("deployment", format!("{}/{}", self.object.kind, self.object.name));
        if let Some(container) = &self.container {
            map.insert("container", container.as_str());
        }
        if !self.tags.is_empty() {
            let tags: Vec<Value> = self.tags.iter().map(|tag| tag.as_str().into()).collect();
            map.insert("deployTags", tags);
        }
        map.insert("deploymentDir", self.dir.as_str());
        map
    }
}

/// The item that requests images.
pub(crate) struct ImageContext<'a> {
    pub(crate) item: usize,
    pub(crate) tags: &'a [String],
    pub(crate) dir: &'a str,
    /// Of the target and of the request; the last match wins.
    pub(crate) fixed: &'a [FixedImage],
    /// `images` of the variables.
    pub(crate) variables: Option<&'a Value>,
    pub(crate) budget: &'a Budget,
}

impl ImageContext<'_> {
    /// Counts the compared images of one request.
    fn count(&self, of_vars: &[FixedImage], text: &str, reference: &ObjectRef) -> Result<(), Error> {
        let operation = || format!("images of {reference}");
        let images = self.fixed.iter().chain(of_vars);
        let steps = images.map(|fixed| fixed.steps(text));
        let counted = self.budget.step(steps.fold(0, u64::saturating_add));
        counted.map_err(|source| Error::Budget {
            operation: operation(),
            source,
        })?;
        // Each request keeps the tags of its item.
        repeated::count(self.budget, self.tags.iter().map(String::len), operation)
    }

    /// Counts the strings that one request adds: the image in the object and in the list of images, and the names beside it.
    fn count_result(&self, after: &str, container: Option<&str>, reference: &ObjectRef) -> Result<(), Error> {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let names = [
            container.unwrap_or_default(),
            &reference.name,
            namespace,
            self.dir,
        ];
        let lens = names
            .iter()
            .map(|name| name.len())
            .chain([after.len(), after.len()]);
        repeated::count(self.budget, lens, || format!("images of {reference}"))
    }

    /// Returns the image that was set last for a request.
    fn result_image(&self, of_vars: &[FixedImage], image: &str, asks: &Asks<'_>) -> Option<String> {
        let images = self.fixed.iter().rev().chain(of_vars.iter().rev());
        let mut images = images.filter(|fixed| fixed.matches(image, asks));
        images.next().map(|fixed| fixed.result_image.clone())
    }
}

/// Replaces the requests in the objects of an item by images, and returns both.
pub(crate) fn resolve(
    objects: &mut [Value],
    context: &ImageContext<'_>,
) -> Result<Vec<RequestedImage>, Error> {
    let mut seen = Vec::new();
    let (mut missing, mut misplaced, mut of_vars) = (Vec::new(), Vec::new(), None);
    let mut known = HashSet::new();
    for (index, object) in objects.iter_mut().enumerate() {
        let asking: Vec<Path> = path::leaves(object)
            .into_iter()
            .filter(|leaf| text(object, leaf).is_some_and(|text| text.contains(BEGIN)))
            .collect();
        if asking.is_empty() {
            continue;
        }
        if of_vars.is_none() {
            of_vars = Some(of_variables(context.variables)?);
        }
        let reference = ObjectRef::of(object).map_err(|error| Error::Object(error.to_string()))?;
        for leaf in asking {
            let asked = text(object, &leaf).unwrap_or_default();
            context.count(of_vars.as_deref().unwrap_or_default(), asked, &reference)?;
            let container = container(object, &leaf);
            let asks = Asks {
                reference: &reference,
                deployment: format!("{}/{}", reference.kind, reference.name),
                container: container.as_deref(),
            };
            let before = text(object, &leaf).unwrap_or_default().to_owned();
            if !is_one_at_the_start(&before) {
                // A path may be long, and they may be many.
                if misplaced.len() == MAX_ERRORS {
                    return many(misplaced).map(|()| seen);
                }
                misplaced.push(Error::MisplacedImage {
                    dir: context.dir.to_owned(),
                    object: reference.to_string(),
                    field: path::canonical(&leaf),
                });
                continue;
            }
            let mut found = Vec::new();
            let after = replace(&before, |image| {
                let result = context.result_image(of_vars.as_deref().unwrap_or_default(), image, &asks);
                match &result {
                    Some(result) => found.push((image.to_owned(), result.clone())),
                    None if known.insert(image.to_owned()) => missing.push(image.to_owned()),
                    None => {}
                }
                result
            });
            let whole =
                before.matches(BEGIN).count() == 1 && before.starts_with(BEGIN) && before.ends_with(END);
            seen.extend(found.into_iter().map(|(image, result_image)| RequestedImage {
                image,
                result_image,
                object: reference.clone(),
                container: container.clone(),
                tags: context.tags.to_vec(),
                dir: context.dir.to_owned(),
                position: (context.item, index),
                field: whole.then(|| leaf.clone()),
            }));
            context.count_result(&after, container.as_deref(), &reference)?;
            path::set(object, &leaf, Value::String(after));
        }
    }
    misplaced.extend(missing.into_iter().map(Error::NoImage));
    many(misplaced).map(|()| seen)
}

fn text<'a>(object: &'a Value, leaf: &[Key]) -> Option<&'a str> {
    path::get(object, leaf).and_then(Value::as_str)
}

/// Returns true for a string with one placeholder, at its start. Kluctl can't replace others: it fails, or never ends.
fn is_one_at_the_start(text: &str) -> bool {
    text.strip_prefix(BEGIN)
        .and_then(|after| after.split_once(END))
        .is_some_and(|(_, behind)| !behind.contains(BEGIN))
}

/// Returns the `name` next to a field.
fn container(object: &Value, leaf: &[Key]) -> Option<String> {
    let (_, parent) = leaf.split_last()?;
    let name = path::get(object, parent)?.get("name")?.as_str()?;
    Some(name.to_owned())
}

/// Replaces every placeholder of a string; those without an image stay.
fn replace(text: &str, mut image_of: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        out.push_str(before);
        let Some((encoded, behind)) = after.split_once(END) else {
            out.push_str(BEGIN);
            rest = after;
            continue;
        };
        match decode(encoded).as_deref().and_then(&mut image_of) {
            Some(image) => out.push_str(&image),
            None => out.push_str(&format!("{BEGIN}{encoded}{END}")),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Decodes a placeholder: `{"image": "repo/name"}` in base64.
fn decode(encoded: &str) -> Option<String> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let value = yaml::read::goyaml(bytes, &tree::Budget::default()).ok()?.value;
    value.get("image")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholder(image: &str) -> String {
        let json = format!("{{\"image\": \"{image}\"}}");
        format!("{BEGIN}{}{END}", STANDARD.encode(json))
    }

    fn object(image: &str) -> Value {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d, namespace: ns}}\nspec:\n  - {{name: main, image: '{image}'}}\n"
        );
        yaml::read::goyaml(text, &tree::Budget::default()).unwrap().value
    }

    static BUDGET: std::sync::LazyLock<Budget> = std::sync::LazyLock::new(Budget::default);

    fn context<'a>(fixed: &'a [FixedImage], variables: Option<&'a Value>) -> ImageContext<'a> {
        ImageContext {
            item: 0,
            tags: &[],
            dir: "app",
            fixed,
            variables,
            budget: &BUDGET,
        }
    }

    #[test]
    fn fixed_images_last_match_wins() {
        let fixed = |text: &str| FixedImage::parse(text).unwrap();
        let variables = yaml::read::goyaml(
            "- {imageRegex: '^a', resultImage: 'v:1'}",
            &tree::Budget::default(),
        );
        let variables = variables.unwrap().value;
        for (list, expected) in [
            (vec![], "v:1"),
            (vec![fixed("a=b:1"), fixed("a=b:2")], "b:2"),
            (vec![fixed("a=b:1"), fixed("a:other=b:2")], "b:1"),
            (vec![fixed("a=b:1"), fixed("a:ns:Deployment/d:main=b:2")], "b:2"),
            (vec![fixed("a=b:1"), fixed("a:ns:Deployment/d:init=b:2")], "b:1"),
        ] {
            let mut objects = [object(&placeholder("a"))];
            let seen = resolve(&mut objects, &context(&list, Some(&variables))).unwrap();
            assert_eq!(seen.len(), 1);
            assert_eq!(seen[0].result_image, expected);
            assert_eq!(seen[0].container.as_deref(), Some("main"));
            assert!(seen[0].field.is_some());
            let image = path::get(&objects[0], seen[0].field.as_ref().unwrap());
            assert_eq!(image.and_then(Value::as_str), Some(expected));
        }
    }

    #[test]
    fn text_may_follow_an_image_placeholder() {
        let fixed = [FixedImage::parse("a=1").unwrap()];
        let mut objects = [object(&format!("{}-x", placeholder("a")))];
        let seen = resolve(&mut objects, &context(&fixed, None)).unwrap();
        assert_eq!((seen.len(), seen[0].field.is_none()), (1, true));
        let replaced = objects[0].pointer(&["spec"]).unwrap().as_seq().unwrap()[0].get("image");
        assert_eq!(replaced.unwrap().as_str(), Some("1-x"));
    }

    #[test]
    fn all_missing_images_are_named() {
        let mut objects = [object(&placeholder("a")), object(&placeholder("b"))];
        let error = resolve(&mut objects, &context(&[], None)).unwrap_err();
        let expected = "2 errors: failed to find fixed image for a; failed to find fixed image for b";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn image_placeholder_behind_text_is_refused() {
        let fixed = [FixedImage::parse("a=1").unwrap()];
        for text in [
            format!("x{}", placeholder("a")),
            format!("{}-{}", placeholder("a"), placeholder("a")),
            format!("{}{}", placeholder("a"), placeholder("a")),
        ] {
            let error = resolve(&mut [object(&text)], &context(&fixed, None)).unwrap_err();
            let expected = "postprocessing kustomize objects for app failed: ns/Deployment/d: spec[0].image:";
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn long_path_of_many_misplaced_placeholders_is_repeated_in_few_errors() {
        let fields: Map = (0..1000)
            .map(|index| (format!("a{index}"), Value::from(format!("x{BEGIN}"))))
            .collect();
        let mut object = object("a");
        object
            .as_map_mut()
            .unwrap()
            .insert("k".repeat(10_000), Value::Map(fields));
        let error = resolve(&mut [object], &context(&[], None)).unwrap_err();
        assert!(
            matches!(&error, Error::Many(errors) if errors.len() == MAX_ERRORS),
            "{error}"
        );
    }

    #[test]
    fn long_image_of_many_requests_ends_with_the_limit_of_output() {
        let image = "i".repeat(1 << 20);
        let fixed = [FixedImage::parse(&format!("a={image}")).unwrap()];
        let mut objects = vec![object(&placeholder("a")); 100];
        let budget = Budget::default();
        let context = ImageContext {
            budget: &budget,
            ..context(&fixed, None)
        };
        let error = resolve(&mut objects, &context).unwrap_err();
        assert!(matches!(error, Error::Budget { .. }), "{error}");
    }
}
