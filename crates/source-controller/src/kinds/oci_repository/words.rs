//! Words of conditions and events of an OCIRepository. Pure.

use api::{Artifact, Reason, source::OCIRepository};

use super::{OciRepositories, OciResolved, spec};
use crate::source_kind::Words;

const SOURCE: &str = "org.opencontainers.image.source";
const REVISION: &str = "org.opencontainers.image.revision";

impl Words for OciRepositories {
    const LEGACY_READY: Reason = Reason::Succeeded;

    fn ready(_: &OciResolved, revision: &str) -> (Reason, String) {
        (
            Reason::Succeeded,
            format!("stored artifact for digest '{revision}'"),
        )
    }

    fn outdated(object: &OCIRepository, _: &OciResolved, revision: &str) -> (Reason, String) {
        let name = spec::repository(&object.spec).ok().zip(revision.rsplit_once('@'));
        let name = name.map_or_else(
            || object.spec.url.to_string(),
            |(reference, (tag, _))| format!("{}/{}:{tag}", reference.host(), reference.repository()),
        );
        (
            Reason::NewRevision,
            format!("new revision '{revision}' for '{name}'"),
        )
    }

    fn event_message(resolved: &OciResolved, artifact: &Artifact, _: Option<&str>) -> String {
        let noted = |name: &str| artifact.metadata.get(name).filter(|text| !text.is_empty());
        let origin = match (noted(SOURCE), noted(REVISION)) {
            (Some(source), Some(revision)) => {
                let source = api::UrlText::from(source.as_str());
                format!(", origin source '{source}', origin revision '{revision}'")
            }
            _ => String::new(),
        };
        let (revision, url) = (&artifact.revision, &resolved.url);
        format!("stored artifact with revision '{revision}' from '{url}'{origin}")
    }
}
