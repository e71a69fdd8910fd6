//! `helm-chart.yaml`: which Helm chart is rendered in place of manifests, and how.
//!
//! The same type reads the file of an item after its templates ran, and the file as it lies in the project, for those who
//! pull charts before they are deployed.

mod cluster_view;
mod find;
pub(crate) mod location;
mod render;
#[cfg(test)]
mod tests;

use tree::{Budget, TreePath};

use crate::{
    Error, SourceAddress,
    fields::Fields,
    files,
    source::{self, Remote},
};

pub use cluster_view::{Charts, ClusterView, PullChart};
pub(crate) use render::{ChartFile, Renderer, rendered_chart};

/// The directory with the charts that were pulled before they are deployed.
pub const PULLED_CHARTS: &str = ".helm-charts";
/// The file beside a chart that was pulled from a Git repository; it says from where.
pub const GIT_INFO: &str = ".git-info.yaml";
/// Under which name the objects of a chart are written, unless `output` says another one.
const OUTPUT: &str = "helm-rendered.yaml";

/// The decoded fields of a `helm-chart.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmChart {
    /// Source of the chart.
    pub source: ChartSource,
    /// The range of versions that updates stay in.
    pub update_constraints: Option<String>,
    /// The name of the release.
    pub release_name: String,
    /// The namespace of the release, and of its objects that name none.
    pub namespace: Option<String>,
    /// The file that the objects are written to, relative to that of `helm-chart.yaml`.
    pub output: String,
    /// If true, files in `crds` are left out.
    pub skip_crds: bool,
    /// If true, updates keep its version.
    pub skip_update: bool,
    /// If true, the chart is pulled during the deployment instead of before.
    pub skip_pre_pull: bool,
}

/// Source of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChartSource {
    /// The project itself.
    Local {
        /// The directory of the chart, relative to that of `helm-chart.yaml`.
        path: String,
    },
    /// A repository of charts over http or https.
    Repo {
        /// Its address.
        url: String,
        /// The name of the chart.
        chart: String,
        /// The version of the chart.
        version: String,
        /// ID of the credentials to use (`credentialsId`, deprecated); `None` selects them by URL.
        credentials_id: Option<String>,
    },
    /// A registry of images.
    Oci {
        /// The address of the chart, which begins with `oci://`.
        url: String,
        /// The version of the chart.
        version: String,
        /// ID of credentials, which registries don't have: see [`ChartSource::login_problem`].
        credentials_id: Option<String>,
    },
    /// A Git repository.
    Git {
        /// Its address.
        url: String,
        /// Reference of the commit.
        reference: GitReference,
        /// The directory of the chart; empty for the root.
        sub_dir: String,
    },
}

/// A reference to a commit of a Git repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum GitReference {
    /// The default branch.
    #[default]
    Head,
    /// A branch.
    Branch(String),
    /// A tag.
    Tag(String),
    /// This one.
    Commit(String),
    /// That of the branch with this name, or of the tag if there is no such branch.
    Name(String),
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
];

impl HelmChart {
    /// Reads the file, in strict YAML.
    ///
    /// # Errors
    /// Fails when a field is unknown, missing, of the wrong type, or in conflict with another one.
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
        })
    }
}

/// The source of a chart; there is exactly one.
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

/// A repository of charts, or a registry.
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
