//! `helm-chart.yaml`: the Helm chart that is rendered for an item. The same type reads the file of an item after its
//! templates ran, and the source file for callers that pull charts before deployments.

mod cluster_view;
mod find;
pub(crate) mod location;
mod render;
#[cfg(test)]
mod tests;

use helm::{HelmVersion, HelmVersionError};
use tree::{Budget, TreePath};

use crate::{
    Error, GitReference, SourceAddress,
    fields::Fields,
    files,
    source::{self, Remote},
};

pub use cluster_view::{Charts, ClusterView, PullChart};
pub(crate) use render::{ChartFile, Renderer, rendered_chart};

/// The directory with pre-pulled charts.
pub const PULLED_CHARTS: &str = ".helm-charts";
/// The file next to a chart that was pulled from a Git repository, with its source.
pub const GIT_INFO: &str = ".git-info.yaml";
/// Default of `output`.
const OUTPUT: &str = "helm-rendered.yaml";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmChart {
    pub source: ChartSource,
    /// The range of versions that updates stay in.
    pub update_constraints: Option<String>,
    pub release_name: String,
    /// The namespace of the release, and of its objects without one.
    pub namespace: Option<String>,
    /// The file for the objects, relative to the directory of `helm-chart.yaml`.
    pub output: String,
    /// Omits the objects in `crds`.
    pub skip_crds: bool,
    /// Updates keep the version.
    pub skip_update: bool,
    /// The chart is pulled during the deployment instead of before.
    pub skip_pre_pull: bool,
    /// The version of Helm that renders the chart; kluctl has no such field.
    pub helm_version: HelmVersion,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartSource {
    /// A directory of the project, relative to the directory of `helm-chart.yaml`.
    Local { path: String },
    /// A Helm repository over http or https.
    Repo {
        url: String,
        chart: String,
        version: String,
        /// ID of the credentials to use (`credentialsId`, deprecated); `None` selects them by URL.
        credentials_id: Option<String>,
    },
    Oci {
        url: String,
        version: String,
        /// ID of credentials, which registries don't have: see [`ChartSource::login_problem`].
        credentials_id: Option<String>,
    },
    Git {
        url: String,
        reference: GitReference,
        /// Empty for the root.
        sub_dir: String,
    },
}

const FIELDS: &[&str] = &[
    "repo",
    "git",
    "path",
    "chartName",
    "chartVersion",
    "updateConstraints",
    "releaseName",
    "namespace",
    "output",
    "skipCRDs",
    "skipUpdate",
    "skipPrePull",
    "credentialsId",
    "helmVersion",
];

impl HelmChart {
    /// Reads the file in strict YAML. Fails if a field is unknown, missing, of the wrong type, or in conflict with another
    /// one.
    pub fn read(file: &TreePath, text: &[u8], budget: &Budget) -> Result<Self, Error> {
        let value = files::parse(file, text, budget)?;
        let document = Fields::new(file, &value, "", 1)?;
        document.check(&["helmChart"], &[])?;
        let Some(chart) = document.map.get("helmChart") else {
            return Err(document.invalid("helmChart", "helmChart is required"));
        };
        Self::decode(&Fields::new(
            file,
            chart,
            "helmChart",
            document.line_of("helmChart"),
        )?)
    }

    fn decode(fields: &Fields<'_>) -> Result<Self, Error> {
        fields.check(FIELDS, &[])?;
        Ok(Self {
            source: source(fields)?,
            update_constraints: fields.filled_string("updateConstraints")?,
            release_name: fields
                .filled_string("releaseName")?
                .ok_or_else(|| fields.invalid("releaseName", "helmChart.releaseName is required"))?,
            namespace: fields.filled_string("namespace")?,
            output: fields
                .filled_string("output")?
                .unwrap_or_else(|| OUTPUT.to_owned()),
            skip_crds: fields.boolean("skipCRDs")?,
            skip_update: fields.boolean("skipUpdate")?,
            skip_pre_pull: fields.boolean("skipPrePull")?,
            helm_version: helm_version(fields)?,
        })
    }
}

fn helm_version(fields: &Fields<'_>) -> Result<HelmVersion, Error> {
    let Some(given) = fields.filled_string("helmVersion")? else {
        return Ok(HelmVersion::default());
    };
    given.parse().map_err(|error: HelmVersionError| {
        fields.invalid("helmVersion", format!("helmChart.helmVersion: {error}"))
    })
}

/// Decodes the source of a chart, of which there is exactly one.
fn source(fields: &Fields<'_>) -> Result<ChartSource, Error> {
    let repo = fields.filled_string("repo")?;
    let path = fields.filled_string("path")?;
    let git = fields.map.get("git").filter(|git| !git.is_null());
    let forbid = |names: &[&str], of: &str| match names.iter().find(|name| is_set(fields, name)) {
        Some(name) => Err(fields.invalid(name, format!("{name} can not be specified for {of} Helm charts"))),
        None => Ok(()),
    };
    match (repo, path, git) {
        (None, None, None) => Err(fields.invalid("repo", "either repo, path or git must be specified")),
        (Some(url), None, None) => registry(fields, url),
        (None, Some(path), None) => {
            forbid(&["chartName", "chartVersion", "updateConstraints"], "local")?;
            if path.starts_with('/') {
                let problem = "absolute path is not allowed in helm-chart.yaml";
                return Err(fields.invalid("path", problem));
            }
            Ok(ChartSource::Local { path })
        }
        (None, None, Some(_)) => {
            forbid(&["chartName", "chartVersion"], "git")?;
            let remote = source::git(fields, "git")?;
            let Some(Remote {
                address: SourceAddress::Git { url, reference },
                sub_dir,
            }) = remote
            else {
                return Err(fields.invalid("git", "helmChart.git.url is required"));
            };
            source::refuse_name(fields, "git.ref", &reference)?;
            let sub_dir = sub_dir.as_str().to_owned();
            Ok(ChartSource::Git {
                url,
                reference,
                sub_dir,
            })
        }
        _ => Err(fields.invalid("repo", "only one of repo, path and git can be specified")),
    }
}

fn is_set(fields: &Fields<'_>, name: &str) -> bool {
    fields
        .map
        .get(name)
        .is_some_and(|value| !value.is_null() && value.as_str() != Some(""))
}

fn registry(fields: &Fields<'_>, url: String) -> Result<ChartSource, Error> {
    let version = fields.filled_string("chartVersion")?.ok_or_else(|| {
        let problem = "chartVersion must be specified when repo is specified";
        fields.invalid("chartVersion", problem)
    })?;
    let chart = fields.filled_string("chartName")?;
    let credentials_id = fields.filled_string("credentialsId")?;
    match (location::is_oci(&url), chart) {
        (true, None) => Ok(ChartSource::Oci {
            url,
            version,
            credentials_id,
        }),
        (true, Some(_)) => {
            let problem = "chartName can not be specified when repo is a OCI url";
            Err(fields.invalid("chartName", problem))
        }
        (false, Some(chart)) => Ok(ChartSource::Repo {
            url,
            chart,
            version,
            credentials_id,
        }),
        (false, None) => {
            let problem = "chartName must be specified when repo is normal Helm repo";
            Err(fields.invalid("chartName", problem))
        }
    }
}
