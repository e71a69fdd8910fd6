//! Decodes the entries of `vars`.

use yaml::{Map, Value};

use super::external::{HttpRequest, ObjectQuery, ObjectSelection, SecretQuery};
use crate::{Error, SourceAddress, fields::Fields, source};

#[derive(Debug)]
pub(super) enum VarsSource {
    Values(Map),
    File(String),
    Git {
        address: SourceAddress,
        path: String,
    },
    GitFiles(GitFiles),
    ClusterData(ClusterData),
    ClusterObject(ClusterObject),
    Environment(Value),
    Http {
        request: HttpRequest,
        json_path: Option<String>,
    },
    Secret(SecretQuery),
}

#[derive(Debug)]
pub(super) struct GitFiles {
    pub(super) url: String,
    /// Branches and tags are regular expressions.
    pub(super) reference: crate::GitReference,
    pub(super) files: Vec<GitFile>,
}

/// Patterns of file names, and how the files are read.
#[derive(Debug)]
pub(super) struct GitFile {
    pub(super) glob: String,
    pub(super) render: bool,
    pub(super) parse: bool,
    pub(super) multidoc: bool,
    /// As written.
    pub(super) config: Map,
}

#[derive(Debug)]
pub(super) struct ClusterData {
    pub(super) query: ObjectQuery,
    pub(super) key: String,
    pub(super) target_path: Option<String>,
}

#[derive(Debug)]
pub(super) struct ClusterObject {
    pub(super) query: ObjectQuery,
    pub(super) path: String,
    pub(super) list: bool,
    pub(super) render: bool,
    pub(super) parse: bool,
}

/// The fields of which a source has exactly one.
pub(super) const TYPES: &[&str] = &[
    "values",
    "file",
    "git",
    "gitFiles",
    "clusterConfigMap",
    "clusterSecret",
    "clusterObject",
    "systemEnvVars",
    "http",
    "awsSecretsManager",
    "gcpSecretManager",
    "azureKeyVault",
    "vault",
];
const COMMON: &[&str] = &[
    "ignoreMissing",
    "noOverride",
    "sensitive",
    "multidoc",
    "targetPath",
    "when",
];
/// Fields that appear in results only.
const RESULTS: [&str; 2] = ["renderedVars", "renderedSensitive"];

impl VarsSource {
    /// Decodes a source at `path`.
    pub(super) fn decode(fields: &Fields<'_>, path: &str) -> Result<Self, Error> {
        if let Some(field) = RESULTS.iter().find(|field| fields.map.contains_key(field)) {
            return Err(fields.invalid(field, format!("{field} is not allowed here")));
        }
        let known: Vec<&str> = TYPES.iter().chain(COMMON).copied().collect();
        fields.check(&known, &[])?;
        let given = |name: &&&str| fields.map.get(name).is_some_and(|value| !value.is_null());
        let mut types = TYPES.iter().filter(given);
        let kind = match (types.next(), types.next()) {
            (Some(kind), None) => *kind,
            (_, Some(other)) => {
                return Err(fields.invalid(other, format!("{path}: more then one vars source type")));
            }
            (None, None) => return Err(fields.invalid("", format!("{path}: unknown vars source type"))),
        };
        match kind {
            "values" => Ok(Self::Values(fields.map("values")?.cloned().unwrap_or_default())),
            "file" => Ok(Self::File(fields.string("file")?.unwrap_or_default())),
            "systemEnvVars" => Ok(Self::Environment(Value::Map(
                fields.map("systemEnvVars")?.cloned().unwrap_or_default(),
            ))),
            _ => {
                let value = fields.map.get(kind).unwrap_or(&Value::Null);
                let path = format!("{path}.{kind}");
                Self::decode_map(
                    kind,
                    &Fields::new(fields.file, value, &path, fields.line_of(kind))?,
                )
            }
        }
    }

    fn decode_map(kind: &str, fields: &Fields<'_>) -> Result<Self, Error> {
        match kind {
            "git" => {
                fields.check(&["url", "ref", "path"], &[])?;
                let (url, reference) = (fields.required("url")?, source::git_reference(fields)?);
                let path = fields.required("path")?;
                let address = SourceAddress::Git { url, reference };
                Ok(Self::Git { address, path })
            }
            "gitFiles" => git_files(fields).map(Self::GitFiles),
            "clusterConfigMap" => cluster_data(fields, "ConfigMap").map(Self::ClusterData),
            "clusterSecret" => cluster_data(fields, "Secret").map(Self::ClusterData),
            "clusterObject" => cluster_object(fields).map(Self::ClusterObject),
            "http" => http(fields),
            _ => secret(kind, fields).map(Self::Secret),
        }
    }

    pub(super) fn is_sensitive(&self) -> bool {
        match self {
            Self::ClusterData(data) => data.query.kind == "Secret",
            Self::ClusterObject(_) | Self::Environment(_) | Self::Secret(_) => true,
            Self::Values(_) | Self::File(_) | Self::Git { .. } | Self::GitFiles(_) | Self::Http { .. } => {
                false
            }
        }
    }
}

fn git_files(fields: &Fields<'_>) -> Result<GitFiles, Error> {
    fields.check(&["url", "ref", "files"], &[])?;
    let mut files = Vec::new();
    for (index, value) in fields.seq("files")?.iter().enumerate() {
        let path = fields.path_of(&format!("files[{index}]"));
        let file = Fields::new(fields.file, value, &path, fields.line_of("files"))?;
        file.check(&["glob", "render", "parseYaml", "yamlMultiDoc"], &[])?;
        files.push(GitFile {
            glob: file.required("glob")?,
            render: file.boolean("render")?,
            parse: file.boolean("parseYaml")?,
            multidoc: file.boolean("yamlMultiDoc")?,
            config: file.map.clone(),
        });
    }
    let reference = source::git_reference(fields)?;
    source::refuse_name(fields, "ref", &reference)?;
    Ok(GitFiles {
        url: fields.required("url")?,
        reference,
        files,
    })
}

fn cluster_data(fields: &Fields<'_>, kind: &str) -> Result<ClusterData, Error> {
    fields.check(&["name", "labels", "namespace", "key", "targetPath"], &[])?;
    Ok(ClusterData {
        query: ObjectQuery {
            api_version: Some("v1".to_owned()),
            kind: kind.to_owned(),
            which: which(fields)?,
            namespace: Some(fields.required("namespace")?),
        },
        key: fields.required("key")?,
        target_path: fields.filled_string("targetPath")?,
    })
}

fn cluster_object(fields: &Fields<'_>) -> Result<ClusterObject, Error> {
    let known = [
        "kind",
        "apiVersion",
        "namespace",
        "name",
        "labels",
        "list",
        "path",
        "render",
        "parseYaml",
    ];
    fields.check(&known, &[])?;
    Ok(ClusterObject {
        query: ObjectQuery {
            api_version: fields.filled_string("apiVersion")?,
            which: which(fields)?,
            kind: fields.required("kind")?,
            namespace: fields.filled_string("namespace")?,
        },
        path: fields.required("path")?,
        list: fields.boolean("list")?,
        render: fields.boolean("render")?,
        parse: fields.boolean("parseYaml")?,
    })
}

fn which(fields: &Fields<'_>) -> Result<ObjectSelection, Error> {
    let labels = fields.string_map("labels")?;
    match (fields.filled_string("name")?, labels.is_empty()) {
        (Some(name), true) => Ok(ObjectSelection::Name(name)),
        (None, false) => Ok(ObjectSelection::Labels(labels)),
        (Some(_), false) => Err(fields.invalid("labels", "only one of name or labels can be set")),
        (None, true) => Err(fields.invalid("name", "either name or labels must be set")),
    }
}

fn http(fields: &Fields<'_>) -> Result<VarsSource, Error> {
    fields.check(&["url", "method", "body", "headers", "jsonPath"], &[])?;
    let method = fields.filled_string("method")?;
    Ok(VarsSource::Http {
        request: HttpRequest {
            method: method.unwrap_or_else(|| "GET".to_owned()),
            url: fields.required("url")?,
            headers: fields.string_map("headers")?,
            body: fields.string("body")?,
        },
        json_path: fields.filled_string("jsonPath")?,
    })
}

fn secret(kind: &str, fields: &Fields<'_>) -> Result<SecretQuery, Error> {
    match kind {
        "awsSecretsManager" => {
            fields.check(&["secretName", "region", "profile"], &[])?;
            let name = fields.required("secretName")?;
            let region = fields.filled_string("region")?;
            // Templates may still make an ARN of it.
            if region.is_none() && !name.starts_with("arn:") && !name.contains('{') {
                let problem = "when omitting the AWS region, the secret name must be a valid ARN";
                return Err(fields.invalid("secretName", problem));
            }
            Ok(SecretQuery::Aws {
                name,
                region,
                profile: fields.filled_string("profile")?,
                service_account: None,
            })
        }
        "gcpSecretManager" => {
            fields.check(&["secretName"], &[])?;
            let name = fields.required("secretName")?;
            Ok(SecretQuery::Gcp { name })
        }
        "azureKeyVault" => {
            fields.check(&["vaultUri", "secretName"], &[])?;
            let (vault, name) = (fields.required("vaultUri")?, fields.required("secretName")?);
            Ok(SecretQuery::Azure { vault, name })
        }
        _ => {
            fields.check(&["address", "path"], &[])?;
            let (address, path) = (fields.required("address")?, fields.required("path")?);
            Ok(SecretQuery::Vault { address, path })
        }
    }
}
