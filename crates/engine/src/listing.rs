//! The objects of a result, from a render and the live state.

use apply::LiveObjects;
use kluctl::Rendered;
use objects::ObjectRef;
use results::{CommandResult, ResultObject};

use crate::{DeployOptions, deploy::live::display_reference};

/// Lists all rendered objects, with their content if the result should have it.
pub(crate) fn list_rendered(
    result: &mut CommandResult,
    rendered: &Rendered,
    live: &LiveObjects,
    options: &DeployOptions,
) {
    for (position, manifest) in rendered.objects().enumerate() {
        let Ok(reference) = ObjectRef::of(manifest) else {
            continue;
        };
        let mut object = ResultObject::new(display_reference(manifest, &reference));
        object.listed = Some(position);
        if options.contents {
            object.rendered = Some(manifest.clone());
            object.remote = live.before(manifest, &reference);
        }
        result.objects.push(object);
    }
}

pub(crate) fn list_orphans(result: &mut CommandResult, live: &LiveObjects) {
    let orphans = live.orphans.iter().map(|reference| ResultObject {
        orphan: true,
        ..ResultObject::new(reference.clone())
    });
    result.objects.extend(orphans);
}
