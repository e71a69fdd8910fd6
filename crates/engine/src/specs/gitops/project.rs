//! The project that the spec of a KluctlDeployment of `gitops.kluctl.io` names, and the refusal of invalid specs, in the words of the original.

use api::{
    check_object_name,
    kluctl::gitops::{KluctlDeploymentSpec, ProjectKey, SourceOverride},
};
use kluctl::{GitReference, SourceAddress};
use remote::ServerAddress;
use tree::TreePath;

use super::InvalidImages;
use crate::specs::{FULL_DEPLOY, POKE_IMAGES};

/// Scheme of sources that a command line serves.
const OVERRIDE_SCHEME: &str = "grpc+source-override://";
const MOST_OVERRIDES: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    #[error("{field} is not supported anymore, use 'spec.credentials.git' instead")]
    Removed { field: &'static str },
    #[error("spec.helmCredentials can not be used anymore, please switch to spec.credentials.helm")]
    HelmCredentials,
    #[error("missing source spec")]
    NoSource,
    #[error("spec.source: the URL '{0}' is invalid: write for example https://example.com/project.git")]
    InvalidUrl(String),
    #[error("unsupported scheme {0}, must be oci://")]
    Scheme(String),
    #[error("unsupported source override url scheme: {0}")]
    OverrideScheme(String),
    #[error("spec.sourceOverrides: {0}")]
    Override(&'static str),
    #[error("either branch, tag or commit must be set")]
    EmptyReference,
    #[error("only one of the ref fields can be set")]
    AmbiguousReference,
    #[error("spec.source: the path is invalid: {0}")]
    InvalidPath(String),
    #[error("not supported decryption provider {0}")]
    DecryptionProvider(String),
    #[error("{0}")]
    Name(String),
    #[error(transparent)]
    Images(#[from] InvalidImages),
    #[error("deployMode '{0}' not supported")]
    DeployMode(String),
}

/// The project of a spec.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub address: SourceAddress,
    pub dir: TreePath,
    /// The directory as it was written.
    pub path: String,
    pub key: ProjectKey,
}

impl Source {
    /// Returns the URL without credentials, and the reference, as the metric of the source has them.
    #[must_use]
    pub fn labels(&self) -> (String, String) {
        let reference = match &self.address {
            SourceAddress::Git { reference, .. } => match reference {
                GitReference::Branch(name) => format!("refs/heads/{name}"),
                GitReference::Tag(name) => format!("refs/tags/{name}"),
                _ => String::new(),
            },
            SourceAddress::Oci { tag, digest, .. } => {
                tag.clone().or_else(|| digest.clone()).unwrap_or_default()
            }
        };
        (api::UrlText::from(self.address.url()).to_string(), reference)
    }
}

/// Checks a spec, and returns its project.
///
/// # Errors
/// If a field is invalid, or isn't supported any more.
pub fn source(spec: &KluctlDeploymentSpec) -> Result<Source, InvalidSpec> {
    refuse(spec)?;
    let source = &spec.source;
    let (git, oci) = (source.git.as_ref(), source.oci.as_ref());
    match (git, oci, source.url.as_ref()) {
        (Some(git), ..) => of_git(git.url.expose(), git.reference.as_ref(), git.path.as_deref()),
        (None, Some(oci), _) => of_oci(oci),
        (None, None, Some(url)) if !url.expose().is_empty() => {
            of_git(url.expose(), source.reference.as_ref(), source.path.as_deref())
        }
        _ => Err(InvalidSpec::NoSource),
    }
}

fn refuse(spec: &KluctlDeploymentSpec) -> Result<(), InvalidSpec> {
    if spec.source.secret_ref.is_some() {
        return Err(InvalidSpec::Removed {
            field: "spec.source.secretRef",
        });
    }
    if spec.source.credentials.is_some() {
        return Err(InvalidSpec::Removed {
            field: "spec.source.credentials",
        });
    }
    let lists_credentials = |value: &serde_json::Value| value.as_array().is_none_or(|list| !list.is_empty());
    if spec.helm_credentials.as_ref().is_some_and(lists_credentials) {
        return Err(InvalidSpec::HelmCredentials);
    }
    if let Some(one) = spec
        .source_overrides
        .iter()
        .find(|one| !one.url.expose().starts_with(OVERRIDE_SCHEME))
    {
        let scheme = one.url.expose().split("://").next().unwrap_or_default();
        return Err(InvalidSpec::OverrideScheme(scheme.chars().take(32).collect()));
    }
    check_overrides(&spec.source_overrides)?;
    let decryption = spec.decryption.as_ref();
    if let Some(other) = decryption.filter(|decryption| decryption.provider != "sops") {
        return Err(InvalidSpec::DecryptionProvider(other.provider.clone()));
    }
    check_names(spec)?;
    match deploy_mode(spec) {
        FULL_DEPLOY | POKE_IMAGES => Ok(()),
        other => Err(InvalidSpec::DeployMode(other.to_owned())),
    }
}

/// Checks the names of Secrets and ServiceAccounts, which become parts of URLs.
fn check_names(spec: &KluctlDeploymentSpec) -> Result<(), InvalidSpec> {
    let lists = || spec.credentials.iter();
    let git = lists()
        .flat_map(|all| &all.git)
        .map(|one| ("git", &one.secret_ref));
    let oci = lists()
        .flat_map(|all| &all.oci)
        .map(|one| ("oci", &one.secret_ref));
    let helm = lists()
        .flat_map(|all| &all.helm)
        .map(|one| ("helm", &one.secret_ref));
    let credentials = git.chain(oci).chain(helm);
    let credentials =
        credentials.map(|(list, secret)| (format!("spec.credentials.{list}"), Some(secret.name.as_str())));
    let decryption = spec.decryption.as_ref();
    let secret = decryption.and_then(|decryption| decryption.secret_ref.as_ref());
    let others = [
        (
            "spec.decryption.secretRef.name",
            secret.map(|secret| secret.name.as_str()),
        ),
        (
            "spec.decryption.serviceAccount",
            decryption.and_then(|decryption| decryption.service_account.as_deref()),
        ),
        (
            "spec.kubeConfig.secretRef.name",
            spec.kube_config
                .as_ref()
                .map(|config| config.secret_ref.name.as_str()),
        ),
        ("spec.serviceAccountName", spec.service_account_name.as_deref()),
    ];
    let others = others.map(|(path, name)| (path.to_owned(), name));
    for (path, name) in credentials.chain(others) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            check_object_name(&path, name).map_err(|fault| InvalidSpec::Name(fault.message))?;
        }
    }
    Ok(())
}

fn check_overrides(all: &[SourceOverride]) -> Result<(), InvalidSpec> {
    if all.len() > MOST_OVERRIDES {
        return Err(InvalidSpec::Override("there are more than 100"));
    }
    let has_kind = |key: &str| ["git://", "oci://"].iter().any(|kind| key.starts_with(kind));
    if all.iter().any(|one| !has_kind(&one.repo_key)) {
        return Err(InvalidSpec::Override("repoKey must begin with git:// or oci://"));
    }
    match all
        .iter()
        .any(|one| overrides::OverrideUrl::parse(one.url.expose()).is_err())
    {
        true => Err(InvalidSpec::Override(
            "url must be grpc+source-override://HOST:PORT/ID, as command lines write it",
        )),
        false => Ok(()),
    }
}

fn of_git(
    url: &str,
    reference: Option<&api::kluctl::gitops::GitReference>,
    path: Option<&str>,
) -> Result<Source, InvalidSpec> {
    let repo_key = kluctl::repo_key(url).ok_or_else(|| InvalidSpec::InvalidUrl(api::redact(url)))?;
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let reference = match reference {
        None => GitReference::Head,
        Some(one) => match (filled(&one.branch), filled(&one.tag), filled(&one.commit)) {
            (Some(branch), None, None) => GitReference::Branch(branch),
            (None, Some(tag), None) => GitReference::Tag(tag),
            (None, None, Some(commit)) => GitReference::Commit(commit),
            (None, None, None) => return Err(InvalidSpec::EmptyReference),
            _ => return Err(InvalidSpec::AmbiguousReference),
        },
    };
    let address = SourceAddress::Git {
        url: url.to_owned(),
        reference,
    };
    in_dir(address, repo_key, path)
}

fn of_oci(oci: &api::kluctl::gitops::OciProject) -> Result<Source, InvalidSpec> {
    let url = oci.url.expose();
    if !url.starts_with("oci://") {
        let scheme = url
            .split("://")
            .next()
            .filter(|_| url.contains("://"))
            .unwrap_or_default();
        return Err(InvalidSpec::Scheme(scheme.chars().take(32).collect()));
    }
    let server = ServerAddress::parse(url).ok_or_else(|| InvalidSpec::InvalidUrl(api::redact(url)))?;
    let reference = oci.reference.clone().unwrap_or_default();
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let digest = filled(reference.digest);
    let tag = filled(reference.tag).or_else(|| digest.is_none().then(|| "latest".to_owned()));
    let address = SourceAddress::Oci {
        url: url.to_owned(),
        tag,
        digest,
    };
    in_dir(
        address,
        format!("oci://{}/{}", server.host, server.path),
        oci.path.as_deref(),
    )
}

fn in_dir(address: SourceAddress, repo_key: String, path: Option<&str>) -> Result<Source, InvalidSpec> {
    let path = path.unwrap_or_default();
    let dir = TreePath::parse(path.trim_start_matches('/'))
        .map_err(|error| InvalidSpec::InvalidPath(error.to_string()))?;
    let sub_dir = Some(dir.as_str().to_owned()).filter(|dir| !dir.is_empty() && dir != ".");
    Ok(Source {
        address,
        dir,
        path: path.to_owned(),
        key: ProjectKey {
            repo_key: Some(repo_key),
            sub_dir,
        },
    })
}

#[must_use]
pub fn deploy_mode(spec: &KluctlDeploymentSpec) -> &str {
    spec.deploy_mode
        .as_deref()
        .filter(|mode| !mode.is_empty())
        .unwrap_or(FULL_DEPLOY)
}

#[must_use]
pub fn pokes_images(spec: &KluctlDeploymentSpec) -> bool {
    deploy_mode(spec) == POKE_IMAGES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(change: &serde_json::Value) -> KluctlDeploymentSpec {
        let mut spec =
            json!({ "interval": "5m", "source": { "git": { "url": "https://h.io/Org/Shop.git" } } });
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn source_has_address_and_key() {
        let source = source(&spec(&json!({}))).unwrap();
        assert_eq!(source.key.repo_key.as_deref(), Some("git://h.io/org/shop"));
        assert_eq!(source.key.sub_dir, None);
        let git = json!({ "url": "git@h.io:org/shop.git", "ref": { "tag": "v1" }, "path": "./a/b/" });
        let source = super::source(&spec(&json!({ "source": { "git": git } }))).unwrap();
        assert_eq!(source.key.sub_dir.as_deref(), Some("a/b"));
        assert_eq!(source.labels().1, "refs/tags/v1");
        let oci = json!({ "url": "oci://h.io:5000/org/shop" });
        let source = super::source(&spec(&json!({ "source": { "oci": oci } }))).unwrap();
        assert_eq!(source.key.repo_key.as_deref(), Some("oci://h.io:5000/org/shop"));
        assert_eq!(source.labels().1, "latest");
    }

    #[test]
    fn labels_of_a_source_have_no_credentials() {
        for (url, expected) in [
            (
                "https://user:secret@h.io/org/shop.git",
                "https://h.io/org/shop.git",
            ),
            (
                "https://user:se\"cret@h.io/org/shop.git",
                "https://h.io/org/shop.git",
            ),
            (
                "https://h.io/org/shop.git?token=secret",
                "https://h.io/org/shop.git",
            ),
            ("ssh://git:secret@h.io/org/shop.git", "ssh://h.io/org/shop.git"),
        ] {
            let git = json!({ "url": url });
            let source = super::source(&spec(&json!({ "source": { "git": git } }))).unwrap();
            assert_eq!(source.labels().0, expected);
        }
    }

    #[test]
    fn invalid_specs_are_refused_in_the_words_of_the_original() {
        let git = |git: serde_json::Value| json!({ "source": { "git": git } });
        for (change, expected) in [
            (json!({ "source": {} }), "missing source spec"),
            (
                json!({ "credentials": { "git": [{ "host": "h", "secretRef": { "name": "../../a/secrets/b" } }] } }),
                "spec.credentials.git: \"../../a/secrets/b\": is not a valid object name",
            ),
            (
                json!({ "serviceAccountName": "a:b" }),
                "spec.serviceAccountName: \"a:b\": is not a valid object name",
            ),
            (
                git(json!({ "url": "/srv/shop" })),
                "the URL '/srv/shop' is invalid",
            ),
            (
                git(json!({ "url": "https://h.io/a", "ref": {} })),
                "either branch, tag or commit must be set",
            ),
            (
                git(json!({ "url": "https://h.io/a", "ref": { "tag": "a", "branch": "b" } })),
                "only one of the ref fields can be set",
            ),
            (
                git(json!({ "url": "https://h.io/a", "path": "../x" })),
                "the path is invalid",
            ),
            (
                json!({ "source": { "oci": { "url": "https://h.io/a" } } }),
                "unsupported scheme https, must be oci://",
            ),
            (
                json!({ "source": { "url": "https://h.io/a", "secretRef": { "name": "x" } } }),
                "spec.source.secretRef is not supported anymore, use 'spec.credentials.git' instead",
            ),
            (
                json!({ "source": { "url": "https://h.io/a", "credentials": [{ "host": "h.io" }] } }),
                "spec.source.credentials is not supported anymore, use 'spec.credentials.git' instead",
            ),
            (
                json!({ "helmCredentials": [{}] }),
                "spec.helmCredentials can not be used anymore",
            ),
            (
                json!({ "sourceOverrides": [{ "repoKey": "git://h.io/a", "url": "https://x" }] }),
                "unsupported source override url scheme: https",
            ),
            (
                json!({ "sourceOverrides": [{ "repoKey": "git://h.io/a", "url": "grpc+source-override://x" }] }),
                "spec.sourceOverrides: url must be grpc+source-override://HOST:PORT/ID",
            ),
            (
                json!({ "decryption": { "provider": "pgp" } }),
                "not supported decryption provider pgp",
            ),
            (
                json!({ "decryption": { "provider": "sops", "serviceAccount": "../x" } }),
                "spec.decryption.serviceAccount",
            ),
            (
                json!({ "deployMode": "other" }),
                "deployMode 'other' not supported",
            ),
        ] {
            let error = source(&spec(&change)).unwrap_err().to_string();
            assert!(error.contains(expected), "{change}: {error}");
        }
    }
}
