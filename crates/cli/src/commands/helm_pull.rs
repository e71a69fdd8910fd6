//! `weir helm-pull`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use kluctl::{ChartSource, GIT_INFO, GitReference};
use kustomize::remote::Repository;
use oci::Archive;
use remote::{ChartDownloader, ChartVersion, RemoteFetcher};
use tree::{Budget, Limits, Tree, TreePath};
use versions::Version;

use super::project_charts::{ChartFile, ProjectCharts};
use crate::{
    flags::{TerminalFlags, path::existing_dir},
    logins::{LoginFlags, Logins},
    usage::boolean_flag,
};

/// Timeout for fetching a Git repository, in seconds.
const GIT_TIMEOUT_SECONDS: u64 = 300;

const EXAMPLES: &str = "Examples:
  # Pull the charts of the project in the current directory
  weir helm-pull";

/// Pull the Helm charts of a project into .helm-charts
///
/// Downloads the chart of each helm-chart.yaml, and removes pulled versions that are no longer referenced. Charts with skipPrePull
/// are not pulled.
#[derive(Args)]
#[command(mut_args = boolean_flag, after_help = EXAMPLES)]
pub(crate) struct PullArgs {
    /// Project directory
    #[arg(short, long, value_name = "DIR", default_value = ".", value_parser = existing_dir)]
    project_dir: PathBuf,
    #[command(flatten)]
    logins: LoginFlags,
    #[command(flatten)]
    terminal: TerminalFlags,
}

pub(crate) fn run(args: &PullArgs) -> Result<()> {
    let _ = args.terminal.terminal();
    let fetcher = RemoteFetcher::new(Logins::new(&args.logins)?.servers());
    let charts = ChartDownloader::new(&fetcher);
    let budget = Budget::new(Limits::default());
    pull(
        &ProjectCharts::open(&args.project_dir, "helm-pull", &budget)?,
        Pulls::All,
        &charts,
        &budget,
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulls {
    /// All charts of the project, also if they are pulled already.
    All,
    /// Missing and outdated charts.
    Outdated,
}

/// A chart, and its versions that the project uses.
#[derive(Debug, Default)]
struct UsedChart<'a> {
    name: &'a str,
    versions: BTreeMap<String, &'a ChartFile>,
}

/// Returns true if all used versions are pulled, and no others. Branches are not compared with their repository.
pub(crate) fn is_up_to_date(project: &ProjectCharts) -> Result<bool> {
    for (dir, used) in &used_charts(project)? {
        if !unused(project, dir, used)?.is_empty() {
            return Ok(false);
        }
        for release in used.versions.values() {
            let target_dir = project.pulled(&release.chart.source.versioned_dir()?.unwrap_or_default())?;
            if !target_dir.join("Chart.yaml").is_file() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns the charts of a project by their directory in `.helm-charts`.
fn used_charts(project: &ProjectCharts) -> Result<BTreeMap<TreePath, UsedChart<'_>>> {
    let mut used_charts = BTreeMap::<TreePath, UsedChart<'_>>::new();
    for release in &project.charts {
        let source = &release.chart.source;
        let Some((dir, version)) = source.dir()?.zip(source.version()) else {
            continue;
        };
        let used = used_charts.entry(dir).or_default();
        used.name = source.name().unwrap_or_default();
        if !release.chart.skip_pre_pull {
            used.versions.insert(version, release);
        }
    }
    Ok(used_charts)
}

/// Pulls used versions, and removes unused ones.
pub(crate) fn pull(
    project: &ProjectCharts,
    pulls: Pulls,
    charts: &ChartDownloader<'_>,
    budget: &Budget,
) -> Result<()> {
    let mut missing = Vec::new();
    let used_charts = used_charts(project)?;
    for (dir, used) in &used_charts {
        remove_unused(project, dir, used)?;
        for (version, release) in &used.versions {
            let source = &release.chart.source;
            let target_dir = source.versioned_dir()?.unwrap_or_default();
            let target_dir = project.pulled(&target_dir)?;
            if pulls == Pulls::All || is_outdated(source, &target_dir, budget) {
                print_status(format_args!(
                    "{}: Pulling Chart with version {version}",
                    used.name
                ));
                refuse_login(release)?;
                missing.push((*release, target_dir));
            }
        }
    }
    let (git, others): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|(release, _)| matches!(release.chart.source, ChartSource::Git { .. }));
    let wanted = others
        .iter()
        .filter_map(|(release, _)| wanted(&release.chart.source));
    charts.pull_all(
        &wanted.collect::<Vec<ChartVersion>>(),
        |at, archive| match others.get(at) {
            Some((release, target_dir)) => archive
                .map_err(anyhow::Error::from)
                .and_then(|archive| write_chart(release, &archive, target_dir, budget))
                .context(release.file.clone()),
            None => Ok(()),
        },
    )?;
    git.iter().try_for_each(|(release, target_dir)| {
        pull_git(&release.chart.source, target_dir, charts.fetcher(), budget).context(release.file.clone())
    })
}

/// Writes a downloaded chart to disk. Fails if `chartVersion` is a range, or otherwise not the version of the chart.
fn write_chart(release: &ChartFile, archive: &Archive, target_dir: &Path, budget: &Budget) -> Result<()> {
    let tree = archive.tree(budget)?;
    let metadata = tree.read(&TreePath::root().child("Chart.yaml"))?;
    let found = version_in(&metadata, budget).with_context(|| format!("{}: Chart.yaml", archive.url()))?;
    let wanted = release.chart.source.version().unwrap_or_default();
    ensure!(
        found == wanted,
        "chartVersion {wanted} is not an exact version: {} has version {found}; use that instead",
        archive.url()
    );
    if target_dir.join("Chart.yaml").exists() {
        fs::remove_dir_all(target_dir).with_context(|| format!("remove {}", target_dir.display()))?;
    }
    Ok(archive.write(target_dir, budget)?)
}

/// Returns the version in a `Chart.yaml`.
fn version_in(metadata: &[u8], budget: &Budget) -> Result<String> {
    let metadata = yaml::read::goyaml_lenient(metadata, budget)?.value;
    let version = metadata.get("version").and_then(yaml::Value::as_str);
    Ok(version.unwrap_or_default().to_owned())
}

/// Refuses a chart with credentials that can't be used.
pub(super) fn refuse_login(release: &ChartFile) -> Result<()> {
    match release.chart.source.login_problem() {
        Some(problem) => bail!("{}: {problem}", release.file),
        None => Ok(()),
    }
}

pub(super) fn print_status(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns the download for a chart of a Helm repository or OCI registry.
fn wanted(source: &ChartSource) -> Option<ChartVersion> {
    let (address, chart, version) = source.remote()?;
    Some(ChartVersion {
        address: address.to_owned(),
        chart: chart.to_owned(),
        version: version.to_owned(),
        credentials_id: source.credentials_id().map(str::to_owned),
    })
}

/// Returns true if a chart must be pulled: it is missing, has another version, or comes from a branch.
fn is_outdated(source: &ChartSource, target_dir: &Path, budget: &Budget) -> bool {
    let moves = matches!(
        source,
        ChartSource::Git {
            reference: GitReference::Head | GitReference::Branch(_),
            ..
        }
    );
    let Ok(metadata) = fs::read(target_dir.join("Chart.yaml")) else {
        return true;
    };
    let is_other = || version_in(&metadata, budget).ok() != source.version();
    moves || (source.remote().is_some() && is_other())
}

/// Removes the versions of a chart that are not used.
fn remove_unused(project: &ProjectCharts, dir: &TreePath, used: &UsedChart<'_>) -> Result<()> {
    for (name, target_dir) in unused(project, dir, used)? {
        print_status(format_args!(
            "{}: Removing unused Chart with version {name}",
            used.name
        ));
        fs::remove_dir_all(&target_dir).with_context(|| format!("remove {}", target_dir.display()))?;
    }
    Ok(())
}

/// Returns the pulled versions of a chart that are not used. Directories that are not versions may belong to another chart.
fn unused(project: &ProjectCharts, dir: &TreePath, used: &UsedChart<'_>) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let is_git = dir.as_str().starts_with("git_");
    let versions = if is_git {
        dir.child("refs").child("tags")
    } else {
        dir.clone()
    };
    let target_dir = project.pulled(&versions)?;
    let Ok(entries) = fs::read_dir(&target_dir) else {
        return Ok(found);
    };
    let used_names: BTreeSet<&str> = used
        .versions
        .keys()
        .map(|version| version.strip_prefix("refs/tags/").unwrap_or(version))
        .collect();
    for entry in entries {
        let entry = entry.with_context(|| target_dir.display().to_string())?;
        let name = entry.file_name();
        let is_chart = entry.path().join("Chart.yaml").is_file();
        let Some(name) = name
            .to_str()
            .filter(|name| is_chart && (is_git || Version::parse(name).is_ok()))
        else {
            continue;
        };
        // A tag may contain slashes.
        if used_names.contains(name)
            || used_names
                .iter()
                .any(|used| used.starts_with(&format!("{name}/")))
        {
            continue;
        }
        found.push((name.to_owned(), project.pulled(&versions.child(name))?));
    }
    found.sort();
    Ok(found)
}

/// Copies a chart from a Git repository, and writes a file with its origin.
fn pull_git(source: &ChartSource, target_dir: &Path, fetcher: &RemoteFetcher, budget: &Budget) -> Result<()> {
    let ChartSource::Git {
        url,
        reference,
        sub_dir,
    } = source
    else {
        return Ok(());
    };
    let repository = Repository {
        url: url.clone(),
        path: sub_dir.clone(),
        reference: match reference {
            GitReference::Head => None,
            other => Some(other.to_string()),
        },
        submodules: false,
        timeout_seconds: GIT_TIMEOUT_SECONDS,
    };
    let redacted = kustomize::remote::redact_address(url);
    let (commit, tree) = fetcher
        .commit(&repository, budget)
        .map(|commit| (commit.id(), commit))
        .map_err(|why| anyhow::anyhow!("fetching {redacted}: {why}"))?;
    let from = TreePath::parse(sub_dir)?;
    if !tree.is_file(&from.child("Chart.yaml")) {
        bail!("{redacted} has no chart in '{from}' at {reference}");
    }
    let mut files = Vec::new();
    collect(&tree, &from, &TreePath::root(), budget, &mut files)?;
    let kind = match reference {
        GitReference::Head => String::new(),
        GitReference::Branch(name) => format!("ref:\n  branch: {name:?}\n"),
        GitReference::Tag(name) => format!("ref:\n  tag: {name:?}\n"),
        GitReference::Commit(id) => format!("ref:\n  commit: {id:?}\n"),
        GitReference::Name(name) => format!("ref: {name:?}\n"),
    };
    let info = format!("url: {redacted:?}\n{kind}subDir: {sub_dir:?}\ncommit: {commit}\n");
    files.push((TreePath::parse(GIT_INFO)?, info.into()));
    if target_dir.exists() {
        fs::remove_dir_all(target_dir).with_context(|| format!("remove {}", target_dir.display()))?;
    }
    Ok(oci::write_new(target_dir, &files)?)
}

fn collect(
    tree: &dyn Tree,
    from: &TreePath,
    to: &TreePath,
    budget: &Budget,
    files: &mut Vec<(TreePath, bytes::Bytes)>,
) -> Result<()> {
    for entry in tree.list(from)? {
        budget.step(1)?;
        let (from, to) = (from.child(&entry.name), to.child(&entry.name));
        if entry.is_dir {
            // Stops at circular symlinks.
            ensure!(
                to.components().count() <= 64,
                "{from}: directories are nested too deeply"
            );
            collect(tree, &from, &to, budget, files)?;
        } else {
            let bytes = tree.read(&from)?;
            budget.output(bytes.len() as u64)?;
            files.push((to, bytes));
        }
    }
    Ok(())
}
