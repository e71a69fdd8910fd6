//! The sources in a cluster that have the content of a repository. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use anyhow::{Result, ensure};
use fleet::kind::GIT_REPOSITORY;
use objects::meta;
use yaml::Value;

/// The branch of a GitRepository without a reference.
const DEFAULT_BRANCH: &str = "master";

/// Sources by `KIND/NAMESPACE/NAME`.
#[derive(Debug)]
pub(super) struct RepositorySources {
    /// Key of the remote repository, which its URLs share.
    repository: Option<String>,
    branch: Option<String>,
    named: BTreeSet<String>,
    /// The named sources that exist, or that something is deployed from.
    known: BTreeSet<String>,
    /// The ignore rules of GitRepositories with the URL of the repository.
    found: BTreeMap<String, Option<String>>,
}

impl RepositorySources {
    /// # Errors
    /// If there is neither a remote repository nor a named source, or a name is malformed.
    pub(super) fn new(origin: Option<&str>, named: Vec<String>, branch: Option<String>) -> Result<Self> {
        for source in &named {
            let parts: Vec<&str> = source.split('/').collect();
            ensure!(
                parts.len() == 3 && parts.iter().all(|part| !part.is_empty()),
                "--source: {source:?} must be formatted as KIND/NAMESPACE/NAME"
            );
        }
        let repository = origin.and_then(kluctl::repo_key);
        ensure!(
            repository.is_some() || !named.is_empty(),
            "the work tree has no remote origin on a server: name the sources of the repository by --source"
        );
        Ok(Self {
            repository,
            branch,
            named: named.into_iter().collect(),
            known: BTreeSet::new(),
            found: BTreeMap::new(),
        })
    }

    /// Notes an object if it is a source with the content of the repository.
    pub(super) fn note(&mut self, object: &Value, namespace: &str) {
        let text = |path: &[&str]| object.pointer(path).and_then(Value::as_str);
        let (group, _) = objects::split_api_version(text(&["apiVersion"]).unwrap_or_default());
        if group != GIT_REPOSITORY.group || text(&["kind"]) != Some(GIT_REPOSITORY.kind) {
            return;
        }
        let own = meta::text(object, "namespace").filter(|own| !own.is_empty());
        let (namespace, name) = (
            own.unwrap_or(namespace),
            meta::text(object, "name").unwrap_or_default(),
        );
        let id = format!("{}/{namespace}/{name}", GIT_REPOSITORY.kind);
        let url = text(&["spec", "url"]).unwrap_or_default();
        self.note_use(&id);
        if self.named.contains(&id) || self.is_url(url) && self.follows(object) {
            let ignore = text(&["spec", "ignore"]).map(str::to_owned);
            self.found.insert(id, ignore);
        }
    }

    /// Returns true for the URL of the repository with a branch that is wanted: an empty one is the default branch, and none something
    /// other than a branch.
    pub(super) fn is_followed(&self, url: &str, branch: Option<&str>) -> bool {
        let is_wanted = match (&self.branch, branch) {
            (None, _) | (Some(_), Some("")) => true,
            (Some(wanted), branch) => branch == Some(wanted),
        };
        is_wanted && self.is_url(url)
    }

    fn is_url(&self, url: &str) -> bool {
        self.repository.is_some() && kluctl::repo_key(url) == self.repository
    }

    /// Returns true if a GitRepository follows the wanted branch, or any is wanted.
    fn follows(&self, object: &Value) -> bool {
        let Some(branch) = &self.branch else {
            return true;
        };
        let field = |name: &str| {
            let field = object.pointer(&["spec", "ref", name]).and_then(Value::as_str);
            field.filter(|text| !text.is_empty())
        };
        if let Some(name) = field("name") {
            return field("commit").is_none() && name == format!("refs/heads/{branch}");
        }
        let is_fixed = ["commit", "semver", "tag"]
            .iter()
            .any(|other| field(other).is_some());
        !is_fixed && field("branch").unwrap_or(DEFAULT_BRANCH) == branch
    }

    pub(super) fn contains(&self, source: &str) -> bool {
        self.named.contains(source) || self.found.contains_key(source)
    }

    /// Notes that something is deployed from a source.
    pub(super) fn note_use(&mut self, source: &str) {
        if self.named.contains(source) {
            self.known.insert(source.to_owned());
        }
    }

    /// Checks the named sources.
    ///
    /// # Errors
    /// Names those that don't exist, and that nothing is deployed from.
    pub(super) fn check_named(&self) -> Result<()> {
        let unknown: Vec<&str> = self.named.difference(&self.known).map(String::as_str).collect();
        ensure!(
            unknown.is_empty(),
            "--source {}: nothing in the cluster or the repository is deployed from it: see weir get sources all -A",
            unknown.join(", ")
        );
        Ok(())
    }

    /// Returns the ignore rules of a source.
    pub(super) fn ignore(&self, source: &str) -> Option<&str> {
        self.found.get(source)?.as_deref()
    }
}

impl fmt::Display for RepositorySources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.named.iter().map(String::as_str);
        let all: Vec<&str> = self.repository.as_deref().into_iter().chain(named).collect();
        f.write_str(&all.join(", "))?;
        match &self.branch {
            Some(branch) => write!(f, " (branch {branch})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn repository(name: &str, spec: &Json) -> Value {
        Value::from_json(json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": { "name": name, "namespace": "flux-system" }, "spec": spec,
        }))
    }

    #[test]
    fn git_repositories_are_found_by_all_forms_of_their_url() {
        let origin = Some("https://ci:token@example.com/team/Fleet.git");
        let mut sources = RepositorySources::new(origin, Vec::new(), None).unwrap();
        for (name, url) in [
            ("ssh", "ssh://git@example.com/team/fleet"),
            ("https", "https://example.com/team/fleet.git"),
            ("other", "https://example.com/team/other"),
        ] {
            sources.note(&repository(name, &json!({ "url": url, "ignore": "/docs" })), "n");
        }
        assert!(sources.contains("GitRepository/flux-system/ssh"));
        assert!(sources.contains("GitRepository/flux-system/https"));
        assert!(!sources.contains("GitRepository/flux-system/other"));
        assert_eq!(sources.ignore("GitRepository/flux-system/ssh"), Some("/docs"));
        assert!(!sources.to_string().contains("token"), "{sources}");
    }

    #[test]
    fn a_branch_leaves_out_everything_else() {
        for (reference, expected) in [
            (json!({ "branch": "main" }), true),
            (json!({ "branch": "dev" }), false),
            (json!({ "name": "refs/heads/main" }), true),
            (json!({ "name": "refs/heads/dev" }), false),
            (json!({ "branch": "main", "tag": "v1" }), false),
            (json!({ "branch": "main", "commit": "abc" }), false),
            (json!(null), false),
        ] {
            let origin = Some("https://example.com/fleet");
            let mut sources = RepositorySources::new(origin, Vec::new(), Some("main".to_owned())).unwrap();
            let spec = json!({ "url": "https://example.com/fleet", "ref": reference });
            sources.note(&repository("fleet", &spec), "n");
            assert_eq!(
                sources.contains("GitRepository/flux-system/fleet"),
                expected,
                "{spec}"
            );
        }
    }

    #[test]
    fn own_sources_are_found_by_url_and_branch() {
        let origin = Some("https://example.com/fleet");
        let all = RepositorySources::new(origin, Vec::new(), None).unwrap();
        assert!(all.is_followed("ssh://git@example.com/fleet.git", None));
        assert!(!all.is_followed("https://example.com/other", None));
        let main = RepositorySources::new(origin, Vec::new(), Some("main".to_owned())).unwrap();
        for (branch, expected) in [
            (Some("main"), true),
            (Some(""), true),
            (Some("dev"), false),
            (None, false),
        ] {
            let found = main.is_followed("https://example.com/fleet", branch);
            assert_eq!(found, expected, "{branch:?}");
        }
    }

    #[test]
    fn sources_without_a_remote_have_to_be_named() {
        let error = RepositorySources::new(None, Vec::new(), None).unwrap_err();
        assert!(error.to_string().contains("--source"), "{error}");
        let error = RepositorySources::new(None, vec!["fleet".to_owned()], None).unwrap_err();
        assert!(error.to_string().contains("KIND/NAMESPACE/NAME"), "{error}");
        let named = vec!["OCIRepository/a/b".to_owned()];
        let sources = RepositorySources::new(Some("/srv/git/fleet"), named, None).unwrap();
        assert!(sources.contains("OCIRepository/a/b"));
        assert_eq!(sources.to_string(), "OCIRepository/a/b");
    }

    #[test]
    fn named_sources_have_to_be_known() {
        let named = ["OCIRepository/a/b", "GitRepository/flux-system/c", "Bucket/a/d"];
        let named = named.map(str::to_owned).to_vec();
        let mut sources = RepositorySources::new(None, named, None).unwrap();
        sources.note_use("OCIRepository/a/b");
        sources.note(&repository("c", &json!({ "url": "https://example.com/c" })), "n");
        let error = sources.check_named().unwrap_err().to_string();
        assert!(error.starts_with("--source Bucket/a/d: "), "{error}");
        sources.note_use("Bucket/a/d");
        assert!(sources.check_named().is_ok());
    }
}
