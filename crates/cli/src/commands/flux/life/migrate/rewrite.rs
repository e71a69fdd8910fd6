//! Rewriting the versions in a manifest, without changing anything else.

use fleet::{Kind, kind};

/// A line that has a new version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// Number of the line, from 1 on.
    pub(super) line: usize,
    pub(super) kind: &'static str,
    pub(super) from: String,
    pub(super) to: String,
}

/// Releases of Flux with versions of their own.
pub(super) const RELEASES: &[&str] = &["2.6", "2.7", "2.8", "2.9"];

/// Returns the newest version of a kind in a release.
fn newest(known: &Kind, release: &str) -> Option<&'static str> {
    // The image kinds became v1 in 2.7.
    let is_before = release == "2.6" && known.group == kind::IMAGE_GROUP;
    let mut versions = known.versions.iter();
    versions.find(|version| !is_before || **version != "v1").copied()
}

/// Rewrites older versions: of objects, and of the references to objects that have `apiVersion` beside `kind`.
pub(super) fn rewrite(text: &str, release: &str) -> (String, Vec<Change>) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut changes = Vec::new();
    let mut out = String::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        match changed(&lines, at, release) {
            Some((new, change)) => {
                out.push_str(&new);
                changes.push(change);
            }
            None => out.push_str(line),
        }
    }
    (out, changes)
}

fn changed(lines: &[&str], at: usize, release: &str) -> Option<(String, Change)> {
    let line = *lines.get(at)?;
    let field = Field::parse(line).filter(|field| field.name == "apiVersion")?;
    let (group, version) = field.value.split_once('/')?;
    let kind = kind_beside(lines, at, field.column)?;
    let known = Kind::find(group, kind)?;
    let to = newest(known, release)?;
    let place = |wanted: &str| known.versions.iter().position(|one| *one == wanted);
    if place(version)? <= place(to)? {
        return None;
    }
    let new = line.replacen(&format!("{group}/{version}"), &format!("{group}/{to}"), 1);
    let change = Change {
        line: at + 1,
        kind: known.kind,
        from: format!("{group}/{version}"),
        to: format!("{group}/{to}"),
    };
    Some((new, change))
}

/// Returns the kind in the same map as the field in a line: at the same column, without a line of a lower column between.
fn kind_beside<'a>(lines: &[&'a str], at: usize, column: usize) -> Option<&'a str> {
    let below = lines.get(at + 1..)?.iter();
    let above = lines.get(..at)?.iter().rev();
    let starts_item = lines.get(at).is_some_and(|line| is_item(line));
    find_kind(below, column, false).or_else(|| match starts_item {
        true => None,
        false => find_kind(above, column, true),
    })
}

fn find_kind<'a, 'l>(
    lines: impl Iterator<Item = &'l &'a str>,
    column: usize,
    upwards: bool,
) -> Option<&'a str>
where
    'a: 'l,
{
    for line in lines {
        if line.starts_with("---") {
            return None;
        }
        let text = line.trim_start();
        if text.trim_end().is_empty() || text.starts_with('#') {
            continue;
        }
        let field = Field::parse(line);
        let own = match &field {
            Some(field) => field.column,
            None => line.len() - text.len(),
        };
        if own < column || (!upwards && is_item(line) && own <= column) {
            return None;
        }
        if let Some(field) = field.filter(|field| field.column == column && field.name == "kind") {
            return Some(field.value);
        }
        // The first field of an item of a list is the first of its map.
        if upwards && is_item(line) && own == column {
            return None;
        }
    }
    None
}

fn is_item(line: &str) -> bool {
    line.trim_start().starts_with("- ")
}

/// A line `name: value`, which may begin an item of a list.
struct Field<'a> {
    column: usize,
    name: &'a str,
    value: &'a str,
}

impl<'a> Field<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let text = line.trim_start();
        let text = match text.strip_prefix("- ") {
            Some(item) => item.trim_start(),
            None => text,
        };
        let column = line.len() - text.len();
        let (name, value) = text.split_once(':')?;
        let value = value.split(" #").next().unwrap_or_default().trim();
        let value = value.trim_matches(['"', '\'']);
        let is_word = |c: char| c.is_ascii_alphanumeric();
        (!name.is_empty() && name.chars().all(is_word)).then_some(Self { column, name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_versions_of_known_kinds_change() {
        let text = "\
# A fleet
apiVersion: source.toolkit.fluxcd.io/v1beta2  # old
kind: GitRepository
metadata: {name: a}
---
kind: \"Alert\"
metadata:
  name: b
apiVersion: 'notification.toolkit.fluxcd.io/v1beta1'
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec:
  healthChecks:
  - apiVersion: helm.toolkit.fluxcd.io/v2beta1
    kind: HelmRelease
    name: c
  - kind: ImagePolicy
    apiVersion: image.toolkit.fluxcd.io/v1beta1
  - name: d
    apiVersion: source.toolkit.fluxcd.io/v1beta2
  - kind: GitRepository
---
apiVersion: example.com/v1beta1
kind: GitRepository
";
        let (new, changes) = rewrite(text, "2.9");
        let expected = text
            .replacen(
                "source.toolkit.fluxcd.io/v1beta2",
                "source.toolkit.fluxcd.io/v1",
                1,
            )
            .replace(
                "notification.toolkit.fluxcd.io/v1beta1",
                "notification.toolkit.fluxcd.io/v1beta3",
            )
            .replace("helm.toolkit.fluxcd.io/v2beta1", "helm.toolkit.fluxcd.io/v2")
            .replace("image.toolkit.fluxcd.io/v1beta1", "image.toolkit.fluxcd.io/v1");
        assert_eq!(new, expected);
        let lines: Vec<_> = changes.iter().map(|change| (change.line, change.kind)).collect();
        assert_eq!(
            lines,
            [
                (2, "GitRepository"),
                (9, "Alert"),
                (15, "HelmRelease"),
                (19, "ImagePolicy")
            ]
        );
        assert_eq!(rewrite(&new, "2.9").1, []);
        assert!(rewrite(text, "2.6").0.contains("image.toolkit.fluxcd.io/v1beta2"));
    }

    #[test]
    fn line_ends_and_the_last_line_stay() {
        let text = "apiVersion: source.toolkit.fluxcd.io/v1beta1\r\nkind: Bucket";
        let (new, _) = rewrite(text, "2.9");
        assert_eq!(new, "apiVersion: source.toolkit.fluxcd.io/v1\r\nkind: Bucket");
    }
}
