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
use tree::{Budget, Limits, Tree, TreePath};
use versions::Version;

use crate::{
    charts::{Charts, Wanted},
    fetch::Fetcher,
    logins::{LoginArgs, Logins},
    project::{Project, Release},
};

/// How long a Git repository may take, in seconds.
const GIT_SECONDS: u64 = 300;

/// Pulls the charts that a kluctl project names, into its directory .helm-charts.
///
/// Versions that no helm-chart.yaml names any more are removed. Charts with skipPrePull are not pulled.
#[derive(Args)]
pub(crate) struct PullArgs {
    /// The directory of the project
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    project_dir: PathBuf,
    #[command(flatten)]
    logins: LoginArgs,
}

/// Does the command.
pub(crate) fn run(args: &PullArgs) -> Result<()> {
    let fetcher = Fetcher::new(Logins::new(&args.logins)?);
    let charts = Charts::new(&fetcher);
    let budget = Budget::new(Limits::default());
    pull(&Project::open(&args.project_dir, &budget)?, &charts, &budget)
}

/// A chart in all the versions that a project wants.
#[derive(Debug, Default)]
struct Stock<'a> {
    name: &'a str,
    versions: BTreeMap<String, &'a Release>,
}

/// Whether everything is pulled that is named, and nothing else. What a branch means now is not asked.
pub(crate) fn is_up_to_date(project: &Project) -> Result<bool> {
    for (dir, stock) in &stocks(project)? {
        if !unused(project, dir, stock)?.is_empty() {
            return Ok(false);
        }
        for release in stock.versions.values() {
            let place = project.pulled(&release.chart.source.versioned_dir()?.unwrap_or_default())?;
            if !place.join("Chart.yaml").is_file() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The charts of a project, by where they are pulled to.
fn stocks(project: &Project) -> Result<BTreeMap<TreePath, Stock<'_>>> {
    let mut stocks = BTreeMap::<TreePath, Stock<'_>>::new();
    for release in &project.releases {
        let source = &release.chart.source;
        let Some((dir, version)) = source.dir()?.zip(source.version()) else {
            continue;
        };
        let stock = stocks.entry(dir).or_default();
        stock.name = source.name().unwrap_or_default();
        if !release.chart.skip_pre_pull {
            stock.versions.insert(version, release);
        }
    }
    Ok(stocks)
}

/// Pulls what is missing, and removes what isn't named any more.
pub(crate) fn pull(project: &Project, charts: &Charts<'_>, budget: &Budget) -> Result<()> {
    let mut missing = Vec::new();
    let stocks = stocks(project)?;
    for (dir, stock) in &stocks {
        remove_unused(project, dir, stock)?;
        for (version, release) in &stock.versions {
            let source = &release.chart.source;
            let place = source.versioned_dir()?.unwrap_or_default();
            let place = project.pulled(&place)?;
            if is_wanted(source, &place, budget) {
                say(format_args!(
                    "Pulling Chart {} with version {version}",
                    stock.name
                ));
                missing.push((*release, place));
            }
        }
    }
    let (git, others): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|(release, _)| matches!(release.chart.source, ChartSource::Git { .. }));
    let wanted = others
        .iter()
        .filter_map(|(release, _)| wanted(&release.chart.source));
    charts.pull_all(&wanted.collect::<Vec<Wanted>>(), |at, archive| {
        match others.get(at) {
            Some((release, place)) => archive
                .and_then(|archive| keep(release, &archive, place, budget))
                .context(release.file.clone()),
            None => Ok(()),
        }
    })?;
    git.iter().try_for_each(|(release, place)| {
        pull_git(&release.chart.source, place, charts.fetcher, budget).context(release.file.clone())
    })
}

/// Keeps what was pulled, if it is what will be looked for: a range of versions isn't.
fn keep(release: &Release, archive: &Archive, place: &Path, budget: &Budget) -> Result<()> {
    let tree = archive.tree(budget)?;
    let metadata = tree.read(&TreePath::root().child("Chart.yaml"))?;
    let found = version_in(&metadata, budget).with_context(|| format!("{}: Chart.yaml", archive.url()))?;
    let wanted = release.chart.source.version().unwrap_or_default();
    ensure!(
        found == wanted,
        "chartVersion {wanted} is not the version of a chart, and {} has version {found}: write that one",
        archive.url()
    );
    if place.join("Chart.yaml").exists() {
        fs::remove_dir_all(place).with_context(|| format!("remove {}", place.display()))?;
    }
    Ok(archive.write(place, budget)?)
}

/// The version that a `Chart.yaml` says.
fn version_in(metadata: &[u8], budget: &Budget) -> Result<String> {
    let metadata = yaml::read::goyaml_lenient(metadata, budget)?.value;
    let version = metadata.get("version").and_then(yaml::Value::as_str);
    Ok(version.unwrap_or_default().to_owned())
}

pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What is asked for in a repository or a registry.
fn wanted(source: &ChartSource) -> Option<Wanted> {
    let (address, chart, version) = source.remote()?;
    Some(Wanted {
        address: address.to_owned(),
        chart: chart.to_owned(),
        version: version.to_owned(),
    })
}

/// Whether a chart has to be pulled: what a branch means may have changed, and what lies there may be another version.
fn is_wanted(source: &ChartSource, place: &Path, budget: &Budget) -> bool {
    let moves = matches!(
        source,
        ChartSource::Git {
            reference: GitReference::Head | GitReference::Branch(_),
            ..
        }
    );
    let Ok(metadata) = fs::read(place.join("Chart.yaml")) else {
        return true;
    };
    let is_other = || version_in(&metadata, budget).ok() != source.version();
    moves || (source.remote().is_some() && is_other())
}

/// Removes the versions of a chart that nothing names.
fn remove_unused(project: &Project, dir: &TreePath, stock: &Stock<'_>) -> Result<()> {
    for (name, place) in unused(project, dir, stock)? {
        say(format_args!(
            "Removing unused Chart {} with version {name}",
            stock.name
        ));
        fs::remove_dir_all(&place).with_context(|| format!("remove {}", place.display()))?;
    }
    Ok(())
}

/// The versions of a chart that nothing names. What is no version is left alone: another chart may lie there.
fn unused(project: &Project, dir: &TreePath, stock: &Stock<'_>) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    let is_git = dir.as_str().starts_with("git_");
    let versions = if is_git {
        dir.child("refs").child("tags")
    } else {
        dir.clone()
    };
    let place = project.pulled(&versions)?;
    let Ok(entries) = fs::read_dir(&place) else {
        return Ok(found);
    };
    let kept: BTreeSet<&str> = stock
        .versions
        .keys()
        .map(|version| version.strip_prefix("refs/tags/").unwrap_or(version))
        .collect();
    for entry in entries {
        let entry = entry.with_context(|| place.display().to_string())?;
        let name = entry.file_name();
        let is_chart = entry.path().join("Chart.yaml").is_file();
        let Some(name) = name
            .to_str()
            .filter(|name| is_chart && (is_git || Version::parse(name).is_ok()))
        else {
            continue;
        };
        // A tag may have several parts.
        if kept.contains(name) || kept.iter().any(|kept| kept.starts_with(&format!("{name}/"))) {
            continue;
        }
        found.push((name.to_owned(), project.pulled(&versions.child(name))?));
    }
    found.sort();
    Ok(found)
}

/// Copies a chart out of a Git repository, with a note where it came from.
fn pull_git(source: &ChartSource, place: &Path, fetcher: &Fetcher, budget: &Budget) -> Result<()> {
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
        timeout_seconds: GIT_SECONDS,
    };
    let shown = kustomize::remote::shown(url);
    let (commit, tree) = fetcher
        .commit(&repository, budget)
        .map(|commit| (commit.id(), commit))
        .map_err(|why| anyhow::anyhow!("fetching {shown}: {why}"))?;
    let from = TreePath::parse(sub_dir)?;
    if !tree.is_file(&from.child("Chart.yaml")) {
        bail!("{shown} has no chart in '{from}' at {reference}");
    }
    let mut files = Vec::new();
    collect(&tree, &from, &TreePath::root(), budget, &mut files)?;
    let kind = match reference {
        GitReference::Head => String::new(),
        GitReference::Branch(name) => format!("ref:\n  branch: {name:?}\n"),
        GitReference::Tag(name) => format!("ref:\n  tag: {name:?}\n"),
        GitReference::Commit(id) => format!("ref:\n  commit: {id:?}\n"),
    };
    let info = format!("url: {shown:?}\n{kind}subDir: {sub_dir:?}\ncommit: {commit}\n");
    files.push((TreePath::parse(GIT_INFO)?, info.into()));
    if place.exists() {
        fs::remove_dir_all(place).with_context(|| format!("remove {}", place.display()))?;
    }
    Ok(oci::write_new(place, &files)?)
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
            // A link in a circle ends here.
            ensure!(
                to.components().count() <= 64,
                "{from}: directories nest too deeply"
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
