//! Sources of projects, and the credentials to read them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{LocalObjectReference, UrlText, schema};

/// The source of a project: one of `git`, `oci` and the deprecated `url`. If several are set, the first of these is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectSource {
    /// Git repository with the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitProject>,
    /// OCI artifact with the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciProject>,
    /// URL of a Git repository. Deprecated: use `git.url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlText>,
    /// Reference of the Git repository. Deprecated: use `git.ref`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitReference>,
    /// Path of the project directory in the Git repository. Deprecated: use `git.path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Not supported any more: use `spec.credentials.git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub secret_ref: Option<Value>,
    /// Not supported any more: use `spec.credentials.git`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_list")]
    pub credentials: Option<Value>,
}

/// A Git repository with a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitProject {
    /// URL of the repository.
    pub url: UrlText,
    /// Reference to deploy from. Default: the default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitReference>,
    /// Path of the project directory. It may not lead out of the repository. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A reference of a Git repository: exactly one of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitReference {
    /// Name of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Full hash of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// An OCI artifact with a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OciProject {
    /// Repository of the artifact, as in `oci://registry.example.com/project`.
    pub url: UrlText,
    /// Reference to deploy from. Default: the tag `latest`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<OciReference>,
    /// Path of the project directory. It may not lead out of the artifact. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A reference of an OCI repository. With a digest, the tag is not looked up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OciReference {
    /// Tag of the artifact. Default: `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Digest of the artifact, as in `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A source that replaces another one. Meant for one-time patches of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceOverride {
    /// Key of the repository to replace, as in `git://example.com/project`.
    pub repo_key: String,
    /// URL of the server that has the replacement, with the scheme `grpc+source-override`.
    pub url: UrlText,
    /// Replaces all repositories below `repoKey`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_group: Option<bool>,
}

/// Credentials of the project and of everything that it reads. In each list, the first match is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credentials {
    /// Credentials of Git repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<GitCredentials>,
    /// Credentials of OCI registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oci: Vec<OciCredentials>,
    /// Credentials of Helm repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HelmRepositoryCredentials>,
}

/// Credentials of Git repositories of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitCredentials {
    /// Host of the repositories, with its port if the URL has one. `*` is any host, but not for http and https.
    pub host: String,
    /// Pattern of the paths of the repositories, without a leading slash; `*` matches no slash. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret with `username`, `password`, `caFile`, `known_hosts` and `identity`, as needed.
    pub secret_ref: LocalObjectReference,
}

/// Credentials of an OCI registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OciCredentials {
    /// Host of the registry, with its port if the URL has one.
    pub registry: String,
    /// Pattern of the repositories; `*` matches no slash. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Secret with `username`, `password`, `identityToken`, `token`, `plainHttp`, `certFile`, `keyFile`, `caFile` and
    /// `insecureSkipTlsVerify`, as needed.
    pub secret_ref: LocalObjectReference,
}

/// Credentials of Helm repositories of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositoryCredentials {
    /// Host of the repositories, with its port if the URL has one.
    pub host: String,
    /// Pattern of the paths of the repositories, without a leading slash; `*` matches no slash. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret with `username`, `password`, `certFile`, `keyFile`, `caFile`, `insecureSkipTlsVerify` and
    /// `passCredentialsAll`, as needed.
    pub secret_ref: LocalObjectReference,
}
