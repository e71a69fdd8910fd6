//! Images that replace others, from `--fixed-image` and `images`.

use go::regexp::{Pattern, PatternQuota};
use objects::ObjectRef;
use tree::{Budget, TreePath};
use yaml::{Map, Value};

use crate::{ArgumentError, Error, fields::Fields, files};

/// An image for requests of templates.
#[derive(Debug, Clone, Default)]
pub struct FixedImage {
    pub image: Option<String>,
    /// A regular expression that the requested image contains, instead of [`Self::image`].
    pub image_regex: Option<ImagePattern>,
    pub result_image: String,
    /// Only for objects in this namespace.
    pub namespace: Option<String>,
    /// Only for this object, as `Deployment/name`.
    pub deployment: Option<String>,
    /// Only for the container of this name.
    pub container: Option<String>,
}

/// A regular expression of a project, in Go's syntax.
#[derive(Debug, Clone)]
pub struct ImagePattern {
    text: String,
    compiled: Pattern,
}

/// Steps of a search by a regular expression that count as a step of the budget.
const SEARCHED: u64 = 32;

const FIELDS: &[&str] = &[
    "image",
    "imageRegex",
    "resultImage",
    "deployedImage",
    "namespace",
    "object",
    "deployment",
    "container",
    "deployTags",
    "deploymentDir",
];

impl FixedImage {
    /// Parses an argument of a command line: `image[:namespace[:deployment[:container]]]=result`.
    pub fn parse(text: &str) -> Result<Self, ArgumentError> {
        let wrong =
            || ArgumentError::new("--fixed-image expects 'image<:namespace:deployment:container>=result'");
        let (from, result) = text.split_once('=').ok_or_else(wrong)?;
        let parts: Vec<&str> = from.split(':').collect();
        if result.contains('=') || parts.len() > 4 || from.is_empty() || result.is_empty() {
            return Err(wrong());
        }
        let part = |index: usize| parts.get(index).map(|part| (*part).to_owned());
        Ok(Self {
            image: part(0),
            result_image: result.to_owned(),
            namespace: part(1),
            deployment: part(2),
            container: part(3),
            image_regex: None,
        })
    }

    /// Reads a file with a list `images`, as the listing of images prints it.
    pub fn read_list(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Vec<Self>, Error> {
        let value = files::parse(file, text, budget)?;
        let fields = Fields::new(file, &value, "", 1)?;
        fields.check(&["images"], &[])?;
        list(&fields, "images")
    }

    /// Converts the entry to the form of results and of [`Self::read_list`].
    #[must_use]
    pub fn to_map(&self) -> Map {
        let mut map = Map::new();
        let pattern = self.image_regex.as_ref().map(|pattern| pattern.text.as_str());
        for (name, text) in [
            ("image", self.image.as_deref()),
            ("imageRegex", pattern),
            ("resultImage", Some(self.result_image.as_str())),
            ("namespace", self.namespace.as_deref()),
            ("deployment", self.deployment.as_deref()),
            ("container", self.container.as_deref()),
        ] {
            if let Some(text) = text {
                map.insert(name, text);
            }
        }
        map
    }

    pub(super) fn decode(fields: &Fields<'_>, quota: &mut PatternQuota) -> Result<Self, Error> {
        fields.check(FIELDS, &[])?;
        let image = fields.filled_string("image")?;
        let pattern = fields.filled_string("imageRegex")?;
        match (&image, &pattern) {
            (None, None) => return Err(fields.invalid("image", "one of image or imageRegex must be set")),
            (Some(_), Some(_)) => {
                let problem = "only one of image or imageRegex can be set";
                return Err(fields.invalid("imageRegex", problem));
            }
            _ => {}
        }
        let compile = |pattern: String| -> Result<ImagePattern, Error> {
            let compiled = quota.compile(&pattern).map_err(|why| {
                let field = fields.path_of("imageRegex");
                fields.invalid("imageRegex", format!("{field} {pattern:?}: {why}"))
            })?;
            Ok(ImagePattern {
                text: pattern,
                compiled,
            })
        };
        Ok(Self {
            image,
            image_regex: pattern.map(compile).transpose()?,
            result_image: fields.required("resultImage")?,
            namespace: fields.filled_string("namespace")?,
            deployment: fields.filled_string("deployment")?,
            container: fields.filled_string("container")?,
        })
    }

    /// Returns the steps of the budget that [`Self::matches`] takes.
    pub(super) fn steps(&self, image: &str) -> u64 {
        let searched = self.image_regex.as_ref();
        let searched = searched.map_or(0, |pattern| pattern.compiled.steps(image.len()));
        1 + searched / SEARCHED
    }

    /// Returns true if this entry applies to a request for `image`.
    pub(super) fn matches(&self, image: &str, asks: &Asks<'_>) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
        };
        let named = match (&self.image, &self.image_regex) {
            (Some(wanted), _) => wanted == image,
            (None, Some(pattern)) => pattern.compiled.is_match(image),
            (None, None) => false,
        };
        named
            && same(&self.namespace, asks.reference.namespace.as_deref())
            && same(&self.deployment, Some(&asks.deployment))
            && same(&self.container, asks.container)
    }
}

/// The container that requests an image.
pub(super) struct Asks<'a> {
    pub(super) reference: &'a ObjectRef,
    /// `Kind/name`.
    pub(super) deployment: String,
    pub(super) container: Option<&'a str>,
}

pub(crate) fn list(fields: &Fields<'_>, field: &str) -> Result<Vec<FixedImage>, Error> {
    let (mut images, mut quota) = (Vec::new(), PatternQuota::default());
    for (index, value) in fields.seq(field)?.iter().enumerate() {
        let path = fields.path_of(&format!("{field}[{index}]"));
        let one = Fields::new(fields.file, value, &path, fields.line_of(field))?;
        images.push(FixedImage::decode(&one, &mut quota)?);
    }
    Ok(images)
}

/// Formats an object reference as results print it.
pub(crate) fn reference_map(reference: &ObjectRef) -> Map {
    let mut map = Map::new();
    let mut set = |key: &str, text: &str| {
        if !text.is_empty() {
            map.insert(key, text);
        }
    };
    set("group", &reference.group);
    set("version", &reference.version);
    set("kind", &reference.kind);
    set("name", &reference.name);
    set("namespace", reference.namespace.as_deref().unwrap_or_default());
    map
}

/// Decodes the images of a value that comes from variables.
pub(super) fn of_variables(images: Option<&Value>) -> Result<Vec<FixedImage>, Error> {
    let file = TreePath::root().child("vars");
    let mut map = Map::new();
    if let Some(images) = images {
        map.insert("images", images.clone());
    }
    let value = Value::Map(map);
    list(&Fields::new(&file, &value, "", 1)?, "images")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_image_flag_parses_its_scopes() {
        let full = FixedImage::parse("reg.io/x/app:ns:Deployment/d:main=spec:2").unwrap();
        assert_eq!(full.image.as_deref(), Some("reg.io/x/app"));
        assert_eq!(full.namespace.as_deref(), Some("ns"));
        assert_eq!(full.deployment.as_deref(), Some("Deployment/d"));
        assert_eq!(full.container.as_deref(), Some("main"));
        assert_eq!(full.result_image, "spec:2");
        for wrong in ["foo", "a=b=c", "a:b:c:d:e=f", "=a", "a="] {
            assert!(FixedImage::parse(wrong).is_err(), "{wrong}");
        }
    }
}
