//! Applies an entry of `images` to the name of an image.

use std::{borrow::Cow, sync::Arc};

use go::regexp::Regexp;

use crate::{Error, error::Step, model::Image, options::Profile, selector::Patterns};

/// An entry of `images`.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    image: Image,
    /// The pattern, or the reason why it is invalid.
    pattern: Result<Arc<Regexp>, Arc<str>>,
    profile: Profile,
}

impl Rule {
    /// Fails if the patterns of the build are too large.
    pub(super) fn new(image: &Image, profile: Profile, patterns: Patterns<'_>) -> Result<Self, Error> {
        let pattern = match patterns.compile(&pattern(&image.name, profile)) {
            Err(error) if error.exceeded().is_some() => return Err(error),
            compiled => compiled.map_err(|error| error.to_string().into()),
        };
        Ok(Self {
            pattern,
            image: image.clone(),
            profile,
        })
    }

    /// Returns the new image, if the entry applies to this one. Fails if the name of the entry is not a pattern; later
    /// versions ignore such an entry.
    pub(super) fn apply(&self, image: &str, patterns: Patterns<'_>) -> Result<Option<String>, Error> {
        match &self.pattern {
            Ok(pattern) if patterns.is_match(pattern, image)? => Ok(Some(self.image_for(image))),
            Err(problem) if self.profile == Profile::V5_8_1 => {
                let problem = format!(
                    "the name of the image {:?} is no pattern: {problem}",
                    self.image.name
                );
                Err(Error::new(Step::Transformer, problem))
            }
            _ => Ok(None),
        }
    }

    /// A new tag or digest replaces both.
    fn image_for(&self, old: &str) -> String {
        let rule = &self.image;
        let parts = ImageReference::of(old);
        let suffixed = format!("{}{}", parts.tag, rule.tag_suffix);
        let (tag, digest) = if !rule.new_tag.is_empty() || !rule.digest.is_empty() {
            (rule.new_tag.as_str(), rule.digest.as_str())
        } else if !rule.tag_suffix.is_empty() {
            (suffixed.as_str(), "")
        } else {
            (parts.tag, parts.digest)
        };
        let name = match rule.new_name.as_str() {
            "" => parts.name,
            new => new,
        };
        let mut image = name.to_owned();
        for (mark, part) in [(':', tag), ('@', digest)] {
            if !part.is_empty() {
                image.push(mark);
                image.push_str(part);
            }
        }
        image
    }
}

/// quirk: the name goes into the pattern unescaped, so that `.` in it is any character, and whole patterns work.
fn pattern(name: &str, profile: Profile) -> String {
    let digest = match profile {
        Profile::V5_8_1 => "sha256",
        Profile::V5_8_3 => "[a-zA-Z0-9]+(?:[.+_-][a-zA-Z0-9]+)*",
    };
    let name = literal_braces(name);
    format!("^{name}(:[a-zA-Z0-9_.{{}}-]*)?(@{digest}:[a-zA-Z0-9_.{{}}-]*)?$")
}

/// Braces that don't count repetitions stand for themselves in Go: `{BUILD_TAG}` is a name that build tools write.
fn literal_braces(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('{') {
        return Cow::Borrowed(pattern);
    }
    let mut escaped = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        escaped.push_str(before);
        // A preceding backslash has escaped it already.
        if !before.ends_with('\\') && (escaped.is_empty() || !is_count(after)) {
            escaped.push('\\');
        }
        escaped.push('{');
        rest = after;
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

fn is_count(text: &str) -> bool {
    let Some((count, _)) = text.split_once('}') else {
        return false;
    };
    let (least, most) = count.split_once(',').unwrap_or((count, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

/// A parsed image.
#[derive(Debug, PartialEq, Eq)]
struct ImageReference<'a> {
    name: &'a str,
    tag: &'a str,
    digest: &'a str,
}

impl<'a> ImageReference<'a> {
    /// Separators count after the first slash: before it they belong to the host.
    fn of(image: &'a str) -> Self {
        let host = image.find('/').unwrap_or_default();
        let mark = |mark: char| image.get(host..)?.find(mark).map(|at| host + at);
        let cut = |at: usize| {
            (
                image.get(..at).unwrap_or_default(),
                image.get(at + 1..).unwrap_or_default(),
            )
        };
        match (mark(':'), mark('@')) {
            (None, None) => Self {
                name: image,
                tag: "",
                digest: "",
            },
            (Some(tag), Some(digest)) if tag < digest => {
                let (name, _) = cut(tag);
                Self {
                    name,
                    tag: image.get(tag + 1..digest).unwrap_or_default(),
                    digest: cut(digest).1,
                }
            }
            (_, Some(digest)) => {
                let (name, digest) = cut(digest);
                Self {
                    name,
                    tag: "",
                    digest,
                }
            }
            (Some(tag), None) => {
                let (name, tag) = cut(tag);
                Self {
                    name,
                    tag,
                    digest: "",
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(image: &str, rule: &Image, profile: Profile) -> String {
        let budget = tree::Budget::default();
        let run = crate::testing::run(&budget);
        let dir = tree::TreePath::root();
        let patterns = Patterns::new(&run, &dir);
        match Rule::new(rule, profile, patterns).and_then(|rule| rule.apply(image, patterns)) {
            Ok(image) => image.unwrap_or_else(|| "-".to_owned()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn images_split_into_name_tag_and_digest() {
        let cases = [
            ("a", ("a", "", "")),
            ("a:1", ("a", "1", "")),
            ("h:5000/a", ("h:5000/a", "", "")),
            ("h:5000/b/a:1@sha256:f", ("h:5000/b/a", "1", "sha256:f")),
            ("a@sha256:f", ("a", "", "sha256:f")),
            ("/a:1", ("/a", "1", "")),
        ];
        for (image, (name, tag, digest)) in cases {
            assert_eq!(
                ImageReference::of(image),
                ImageReference { name, tag, digest },
                "{image}"
            );
        }
    }

    #[test]
    fn image_entries_change_matching_images() {
        // name, newName, newTag, tagSuffix, digest; image; result
        let cases: &[([&str; 5], &str, &str)] = &[
            (["a", "", "2", "", ""], "a:1@sha256:f", "a:2"),
            (["a", "", "2", "", "sha256:e"], "a:1", "a:2@sha256:e"),
            (["a", "", "", "", "sha256:e"], "a:1@sha256:f", "a@sha256:e"),
            (["a", "h:1/b", "", "", ""], "a:1@sha256:f", "h:1/b:1@sha256:f"),
            (["a", "", "", "-x", ""], "a:1@sha256:f", "a:1-x"),
            (["a", "", "2", "-x", ""], "a:1", "a:2"),
            (["a", "", "2", "", ""], "b/a:1", "-"),
            (["a", "", "2", "", ""], "ab", "-"),
            ([".*/a", "", "2", "", ""], "h:5/b/a:1", "h:5/b/a:2"),
            (["a.c", "", "2", "", ""], "abc", "abc:2"),
            (["a", "", "2", "", ""], "a:{TAG}", "a:2"),
            (["{A}/b{2}", "", "2", "", ""], "{A}/bb", "{A}/bb:2"),
            (["a", "", "2", "", ""], "a@sha512:f", "-"),
        ];
        for ([name, new_name, new_tag, tag_suffix, digest], image, expected) in cases {
            let rule = Image {
                name: (*name).into(),
                new_name: (*new_name).into(),
                new_tag: (*new_tag).into(),
                tag_suffix: (*tag_suffix).into(),
                digest: (*digest).into(),
            };
            assert_eq!(set(image, &rule, Profile::V5_8_1), *expected, "{rule:?} {image}");
        }
    }

    #[test]
    fn later_profiles_accept_more_digests() {
        let rule = |name: &str| Image {
            name: name.into(),
            new_tag: "2".into(),
            ..Image::default()
        };
        assert_eq!(set("a@sha512:f", &rule("a"), Profile::V5_8_3), "a:2");
        assert_eq!(set("a", &rule("a("), Profile::V5_8_3), "-");
        for name in ["a(", "(a{1000}){1000}"] {
            let error = set("a", &rule(name), Profile::V5_8_1);
            let expected = format!("the name of the image {name:?} is no pattern: error parsing regexp: ");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
