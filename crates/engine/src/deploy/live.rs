//! The live state of rendered objects.

use std::collections::HashSet;

use apply::{Completeness, LiveObjects, OrphanSearch, Query};
use cluster::{Cluster, Gap, Restriction};
use kluctl::{Inclusion, Rendered, annotations};
use objects::{ObjectRef, meta};
use yaml::Value;

use super::owner::{VOCABULARY, owner};
use crate::Error;
use results::ObjectError;

pub(crate) fn references(rendered: &Rendered) -> Result<Vec<ObjectRef>, Error> {
    rendered
        .objects()
        .map(|object| ObjectRef::of(object).map_err(Error::from))
        .collect()
}

/// Returns the groups and kinds of which some object is compared under another name than its own.
pub(crate) fn renamed_kinds(rendered: &Rendered) -> HashSet<(String, String)> {
    apply::renamed_kinds(&VOCABULARY, rendered.objects())
}

/// Returns the reference under which an object is compared and displayed.
pub(crate) fn display_reference(object: &Value, reference: &ObjectRef) -> ObjectRef {
    apply::display_reference(&VOCABULARY, object, reference)
}

/// Reads the live state of all rendered objects, without a search for orphans.
pub(crate) async fn fetch_all(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: Option<&str>,
) -> Result<LiveObjects, Error> {
    let query = Query {
        refs,
        all: refs,
        orphans: None,
        renamed: &HashSet::new(),
        seen: None,
        assumes: None,
    };
    Ok(apply::fetch(cluster, &owner(discriminator), query).await?)
}

pub(crate) fn unreadable_warning(live: &LiveObjects) -> Option<ObjectError> {
    let count = live.unreadable.len();
    (count > 0).then(|| {
        ObjectError::general(format!(
            "at least one permission error was encountered while reading live objects ({count} objects): what \
             changed about them can't be told"
        ))
    })
}

/// Returns the warnings about the parts of the cluster that could not be listed.
pub(crate) fn listing_warnings(gaps: &[Gap], restriction: Restriction) -> Vec<ObjectError> {
    let mut warnings: Vec<ObjectError> = gaps
        .iter()
        .filter(|gap| !gap.forbidden)
        .map(|gap| ObjectError::general(gap.to_string()))
        .collect();
    if restriction == Restriction::ByNamespace {
        warnings.push(ObjectError::general(
            "listing objects by discriminator on global level failed due to permission errors, so Kluctl reverted to listing on \
             namespace level. Orphan objects in other namespaces are not found",
        ));
    }
    if restriction != Restriction::None {
        warnings.push(ObjectError::general(
            "at least one permission error was encountered while gathering objects by discriminator labels. This might \
             result in orphan object detection to not work properly",
        ));
    }
    warnings
}

/// Returns true if a live object belongs to the chosen part of a deployment, by the labels and the annotation that it was
/// deployed with.
pub(crate) fn includes(inclusion: &Inclusion, object: &Value) -> bool {
    if inclusion.is_empty() {
        return true;
    }
    let labels = meta::metadata(object).and_then(|metadata| metadata.get_map("labels"));
    let tags = labels
        .into_iter()
        .flat_map(yaml::Map::iter)
        .filter_map(|(name, value)| {
            let number = name.strip_prefix(annotations::TAG_PREFIX)?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            value.as_str().filter(|_| is_number).map(str::to_owned)
        });
    let tags: Vec<String> = tags.collect();
    let dir = meta::annotation(object, annotations::ITEM_DIR).and_then(|dir| tree::TreePath::parse(dir).ok());
    inclusion.includes(&tags, dir.as_ref())
}

/// Returns the objects with the discriminator that are not rendered and may be removed, and the completeness of the search.
/// If a part is chosen, only its objects are found. Without a valid discriminator there are none.
pub(crate) async fn orphans(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: Option<&str>,
    part: Option<&Inclusion>,
    search: OrphanSearch<'_>,
    warnings: &mut Vec<ObjectError>,
) -> Result<(Vec<ObjectRef>, Completeness), Error> {
    let is_included = |object: &Value| part.is_none_or(|part| includes(part, object));
    let search = OrphanSearch {
        filter: Some(&is_included),
        ..search
    };
    let found = apply::find_orphans(cluster, &owner(discriminator), refs, search).await?;
    warnings.extend(listing_warnings(&found.gaps, found.restriction));
    let orphans = found.orphans.into_iter().map(|orphan| orphan.reference);
    Ok((orphans.chain(found.used_namespaces).collect(), found.completeness))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn includes_reads_labels_and_annotations() {
        let object = Value::from_json(json!({"metadata": {
            "labels": {"kluctl.io/tag-0": "a", "kluctl.io/tag-1": "b", "kluctl.io/tag-x": "c", "kluctl.io/tag-": "d"},
            "annotations": {"kluctl.io/deployment-item-dir": "x/y"},
        }}));
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        for (tags, not_tags, dirs, not_dirs, expected) in [
            ("", "", "", "", true),
            ("a", "", "", "", true),
            ("c", "", "", "", false),
            ("d", "", "", "", false),
            ("z b", "", "", "", true),
            ("a", "b", "", "", false),
            ("z", "", "x/y", "", true),
            ("", "", "x", "", false),
            ("a", "", "", "x/y", false),
        ] {
            let inclusion = Inclusion {
                include_tags: list(tags),
                exclude_tags: list(not_tags),
                include_dirs: list(dirs),
                exclude_dirs: list(not_dirs),
            };
            assert_eq!(includes(&inclusion, &object), expected, "{inclusion:?}");
        }
    }
}
