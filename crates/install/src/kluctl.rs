//! The installation of the kluctl-controller alone, as kluctl has it: a kluctl project that deploys it to `kluctl-system`.

use tree::{Mem, TreePath};

use crate::{Error, files};

/// The files that the project alone has.
const OWN: &[(&str, &str)] = &[
    (".kluctl.yaml", include_str!("../kluctl/.kluctl.yaml")),
    (".templateignore", include_str!("../kluctl/.templateignore")),
    ("deployment.yaml", include_str!("../kluctl/deployment.yaml")),
    (
        "crds/kustomization.yaml",
        include_str!("../kluctl/crds/kustomization.yaml"),
    ),
    (
        "namespace/namespace.yaml",
        include_str!("../kluctl/namespace/namespace.yaml"),
    ),
    (
        "controller/kustomization.yaml",
        include_str!("../kluctl/controller/kustomization.yaml"),
    ),
    (
        "controller/rights.yaml",
        include_str!("../kluctl/controller/rights.yaml"),
    ),
];

/// The files of the installation of all controllers that the project has, too, by their paths in it.
const SHARED: &[(&str, &str)] = &[
    (
        "crds/flux.kluctl.io_kluctldeployments.yaml",
        "crds/flux.kluctl.io_kluctldeployments.yaml",
    ),
    (
        "crds/gitops.kluctl.io_kluctldeployments.yaml",
        "crds/gitops.kluctl.io_kluctldeployments.yaml",
    ),
    (
        "controller/account.yaml",
        "deploy/base/kluctl-controller/serviceaccount.yaml",
    ),
    (
        "controller/controller.yaml",
        "deploy/base/kluctl-controller/deployment.yaml",
    ),
];

/// Returns the files of the project. Its arguments are the ones of kluctl's own.
///
/// # Errors
/// If a file is missing in this program.
pub fn kluctl_project() -> Result<Mem, Error> {
    let failed = |why: String| Error::Embedded(why);
    let mut project = Mem::from_files(OWN.iter().copied()).map_err(|error| failed(error.to_string()))?;
    for (path, source) in SHARED {
        let text = files::text(source).ok_or_else(|| failed(format!("{source} is missing")))?;
        let path = TreePath::parse(path).map_err(|error| failed(error.to_string()))?;
        project.insert(path, text, false);
    }
    Ok(project)
}

#[cfg(test)]
mod tests {
    use tree::Tree as _;

    use super::*;

    #[test]
    fn project_has_the_files_that_its_kustomizations_list() {
        let project = kluctl_project().unwrap();
        for dir in ["crds", "controller"] {
            let dir = TreePath::parse(dir).unwrap();
            let text = project.read(&dir.child("kustomization.yaml")).unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            let listed = text.lines().filter_map(|line| line.strip_prefix("- "));
            let listed: Vec<&str> = listed.filter(|entry| entry.ends_with(".yaml")).collect();
            assert!(!listed.is_empty(), "{dir}");
            for file in listed {
                assert!(project.is_file(&dir.child(file)), "{dir}/{file}");
            }
        }
    }
}
