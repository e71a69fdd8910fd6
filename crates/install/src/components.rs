//! The controllers that can be installed.

use crate::{Error, files::FILES};

const BASE: &str = "deploy/base/";

/// Returns the names of all controllers, sorted.
#[must_use]
pub fn available() -> Vec<&'static str> {
    let folders = FILES.iter().filter_map(|(path, _)| {
        let (folder, file) = path.strip_prefix(BASE)?.split_once('/')?;
        (file == "deployment.yaml").then_some(folder)
    });
    folders.collect()
}

/// Returns the name of the controller of an API group, such as `source-controller` of `source.toolkit.fluxcd.io`.
#[must_use]
pub fn component_of_group(group: &str) -> Option<String> {
    if group == "kluctl.io" || group.ends_with(".kluctl.io") {
        return Some("kluctl-controller".to_owned());
    }
    let name = group.strip_suffix(".toolkit.fluxcd.io")?;
    Some(format!("{name}-controller"))
}

/// Checks a list of controllers.
pub(crate) fn check(components: &[String]) -> Result<(), Error> {
    let available = available();
    if components.is_empty() {
        return Err(Error::NoComponents(available.join(", ")));
    }
    match components.iter().find(|name| !available.contains(&name.as_str())) {
        Some(name) => Err(Error::UnknownComponent {
            name: name.clone(),
            available: available.join(", "),
        }),
        None => Ok(()),
    }
}
