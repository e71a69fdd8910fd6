//! `weir helm-update`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use git::{Author, Worktree};
use kluctl::{ChartSource, GitReference, HelmChart, PULLED_CHARTS};
use remote::{ChartDownloader, RemoteFetcher};
use tree::{Budget, Limits, TreePath};

use super::{
    helm_pull::{self, Pulls},
    project_charts::{ChartFile, ProjectCharts},
};
use crate::{
    flags::{TerminalFlags, path::existing_dir},
    logins::{LoginFlags, Logins},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Print the new versions of charts
  weir helm-update

  # Upgrade them, each with a question and a commit
  weir helm-update --upgrade --interactive --commit";

/// Check the Helm charts of a project for new versions, and upgrade them
///
/// Compares the version of each helm-chart.yaml with the newest version in its Helm repository, OCI registry or Git repository.
/// Charts with skipUpdate are reported, but not upgraded.
#[derive(Args)]
#[command(mut_args = boolean_flag, after_help = EXAMPLES)]
pub(crate) struct UpdateArgs {
    /// Project directory
    #[arg(short, long, value_name = "DIR", default_value = ".", value_parser = existing_dir)]
    project_dir: PathBuf,
    /// Write the new versions to the helm-chart.yaml files, and pull the charts
    #[arg(long)]
    upgrade: bool,
    /// Ask for confirmation before each upgrade
    #[arg(short, long, requires = "upgrade")]
    interactive: bool,
    /// Create a Git commit for each upgraded chart
    #[arg(long, requires = "upgrade")]
    commit: bool,
    #[command(flatten)]
    logins: LoginFlags,
    #[command(flatten)]
    terminal: TerminalFlags,
}

pub(crate) fn run(args: &UpdateArgs) -> Result<()> {
    let _ = args.terminal.terminal();
    let fetcher = RemoteFetcher::new(Logins::new(&args.logins)?.servers());
    let charts = ChartDownloader::new(&fetcher);
    let budget = Budget::new(Limits::default());
    let project = ProjectCharts::open(&args.project_dir, "helm-update", &budget)?;
    let commits = match args.commit {
        true => Some(UpgradeCommits::open(&project)?),
        false => None,
    };
    let mut upgrades = Upgrades::new();
    for release in &project.charts {
        let Some((old, new)) = newer(release, &charts)? else {
            continue;
        };
        let dir = release.file.parent().unwrap_or_default();
        let name = release.chart.source.name().unwrap_or_default();
        if release.chart.skip_update {
            helm_pull::print_status(format_args!("{dir}: Skipped update to version {new}"));
            continue;
        }
        helm_pull::print_status(format_args!(
            "{dir}: Chart {name} (old version {old}) has new version {new} available"
        ));
        if args.upgrade && (!args.interactive || is_agreed(name, &new)?) {
            let dir_name = release.chart.source.dir()?.unwrap_or_default();
            upgrades.entry((dir_name, old, new)).or_default().push(release);
        }
    }
    let pull = || {
        helm_pull::pull(
            &ProjectCharts::open(&args.project_dir, "helm-update", &budget)?,
            Pulls::Outdated,
            &charts,
            &budget,
        )
    };
    for ((_, old, new), releases) in &upgrades {
        let name = releases.first().and_then(|release| release.chart.source.name());
        let name = name.unwrap_or_default();
        helm_pull::print_status(format_args!("Upgrading Chart {name} from version {old} to {new}"));
        for release in releases {
            upgrade(&project, release, old, new, &budget)?;
            let dir = release.file.parent().unwrap_or_default();
            helm_pull::print_status(format_args!("{dir}: Updated Chart version to {new}"));
        }
        if let Some(commits) = &commits {
            pull()?;
            commits.add(&project, releases, old, new)?;
        }
    }
    if commits.is_none() && !upgrades.is_empty() {
        pull()?;
    }
    Ok(())
}

/// Files to upgrade, by chart directory, current version and new version.
type Upgrades<'p> = BTreeMap<(TreePath, String, String), Vec<&'p ChartFile>>;

/// Git worktree that upgrades are committed to.
struct UpgradeCommits {
    worktree: Worktree,
    /// Path of the project in the repository.
    project: String,
}

impl UpgradeCommits {
    /// Opens the worktree. Fails if it has changes, or `.helm-charts` is not up-to-date.
    fn open(project: &ProjectCharts) -> Result<Self> {
        let root = project.file(&TreePath::root());
        let worktree = Worktree::around(&root, &author())?;
        let worktree = worktree.with_context(|| format!("{} is not in a Git repository", root.display()))?;
        let inside = root.strip_prefix(worktree.root().canonicalize()?)?;
        let project_dir = inside
            .to_str()
            .context("the path of the project is not valid UTF-8")?
            .to_owned();
        let commits = Self {
            worktree,
            project: project_dir,
        };
        ensure!(
            commits.worktree.changes(false)?.is_empty(),
            "--commit can only be used when the git worktree is unmodified"
        );
        let pulled = commits.path(PULLED_CHARTS) + "/";
        let is_pulled = |path: &String| path.starts_with(&pulled);
        ensure!(
            !commits.worktree.changes(true)?.iter().any(is_pulled),
            "--commit can only be used when .helm-chart directory is clean: commit the changes in {PULLED_CHARTS} first"
        );
        ensure!(
            helm_pull::is_up_to_date(project)?,
            "{PULLED_CHARTS} is not up-to-date. Please run helm-pull before, and commit its changes"
        );
        Ok(commits)
    }

    /// Converts a path in the project to a path in the repository.
    fn path(&self, path: &str) -> String {
        match self.project.as_str() {
            "" => path.to_owned(),
            project => format!("{project}/{path}"),
        }
    }

    /// Commits the upgraded files and the changes of `.helm-charts`.
    fn add(&self, project: &ProjectCharts, releases: &[&ChartFile], old: &str, new: &str) -> Result<()> {
        let pulled = self.path(PULLED_CHARTS) + "/";
        let mut paths = self.worktree.changes(true)?;
        paths.retain(|path| path.starts_with(&pulled));
        for release in releases {
            paths.push(self.path(release.file.as_str()));
        }
        let name = releases.first().and_then(|release| release.chart.source.name());
        let name = name.unwrap_or_default();
        let message = format!("Updated helm chart {name} from version {old} to version {new}");
        self.worktree
            .commit(&paths, &message)
            .with_context(|| format!("{}: commit", project.file(&TreePath::root()).display()))?;
        helm_pull::print_status(format_args!("Committed helm chart {name} with version {new}"));
        Ok(())
    }
}

/// Returns the author of commits, from Git's environment variables and configuration files.
fn author() -> Author {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let named = variable("GIT_AUTHOR_NAME").zip(variable("GIT_AUTHOR_EMAIL"));
    let home = variable("HOME").map(PathBuf::from);
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [
        home.map(|home| home.join(".gitconfig")),
        config.map(|config| config.join("git/config")),
        Some(PathBuf::from("/etc/gitconfig")),
    ];
    Author {
        named,
        files: files.into_iter().flatten().collect(),
    }
}

/// Returns the current and the newest version of a chart, if they differ.
fn newer(release: &ChartFile, charts: &ChartDownloader<'_>) -> Result<Option<(String, String)>> {
    let range = release.chart.update_constraints.as_deref().unwrap_or_default();
    let failed = || format!("{}", release.file);
    let (old, new) = match &release.chart.source {
        ChartSource::Git {
            url,
            reference: GitReference::Tag(tag),
            ..
        } => {
            let range = if range.is_empty() { "*" } else { range };
            let newest = charts.fetcher().newest_tag(url, range);
            let newest = newest.with_context(failed)?;
            (
                format!("refs/tags/{tag}"),
                newest.map(|tag| format!("refs/tags/{tag}")),
            )
        }
        source => {
            // Charts of Git branches and local charts have no versions to compare.
            let Some((address, chart, version)) = source.remote() else {
                return Ok(None);
            };
            helm_pull::refuse_login(release)?;
            let versions = charts
                .versions(address, chart, source.credentials_id())
                .with_context(failed)?;
            (
                version.to_owned(),
                oci::newest(versions, |version| version, range).with_context(failed)?,
            )
        }
    };
    Ok(new.filter(|new| *new != old).map(|new| (old, new)))
}

fn is_agreed(name: &str, version: &str) -> Result<bool> {
    let mut err = std::io::stderr();
    write!(err, "Upgrade chart {name} to version {version}? (y/N) ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Replaces the version in a `helm-chart.yaml`, and leaves everything else unchanged.
fn upgrade(
    project: &ProjectCharts,
    release: &ChartFile,
    old: &str,
    new: &str,
    budget: &Budget,
) -> Result<()> {
    let path = project.file(&release.file);
    let display = path.display();
    let text = fs::read_to_string(&path).with_context(|| format!("read {display}"))?;
    let tag = |version: &str| version.strip_prefix("refs/tags/").unwrap_or(version).to_owned();
    let changed = ["chartVersion", "tag", "ref"].iter().find_map(|key| {
        let (old, new) = match *key {
            "tag" => (tag(old), tag(new)),
            _ => (old.to_owned(), new.to_owned()),
        };
        let changed = replace_value(&text, key, &old, &new)?;
        let read = HelmChart::read(&release.file, changed.as_bytes(), budget).ok()?;
        let is_new = read.source.version().as_deref() == Some(new.as_str())
            || read.source.version() == Some(format!("refs/tags/{new}"));
        is_new.then_some(changed)
    });
    let changed = changed
        .ok_or_else(|| anyhow!("{display}: failed to replace the version; change it to {new} manually"))?;
    ensure!(changed != text, "{display}: the file has this version already");
    // Atomic replacement.
    let dir = path.parent().unwrap_or(&path);
    let mut file = tempfile::NamedTempFile::new_in(dir).with_context(|| format!("write {display}"))?;
    file.write_all(changed.as_bytes())?;
    let permissions = fs::metadata(&path)?.permissions();
    file.as_file().set_permissions(permissions)?;
    file.persist(&path).with_context(|| format!("write {display}"))?;
    Ok(())
}

/// Replaces the value of the first block-style entry with this key and the old value.
fn replace_value(text: &str, key: &str, old: &str, new: &str) -> Option<String> {
    let mut done = false;
    let lines = text.split_inclusive('\n').map(|line| {
        let rest = line.trim_start().trim_start_matches(['"', '\'']);
        let is_key = rest
            .strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'));
        match line.split_once(':') {
            Some((before, after)) if is_key && !done && value_of(after) == old => {
                done = true;
                format!("{before}:{}", after.replacen(old, new, 1))
            }
            _ => line.to_owned(),
        }
    });
    let changed: String = lines.collect();
    if done {
        return Some(changed);
    }
    replace_flow_value(text, key, old, new)
}

/// Replaces the value of the first flow-style entry (`{key: old}`) with this key and the old value.
fn replace_flow_value(text: &str, key: &str, old: &str, new: &str) -> Option<String> {
    let quotes = ['"', '\''];
    let begin = text.match_indices(key).find_map(|(at, _)| {
        let before = text.get(..at)?.trim_end_matches(quotes).trim_end();
        let behind = text
            .get(at + key.len()..)?
            .trim_start_matches(quotes)
            .trim_start();
        let value = behind.strip_prefix(':')?.trim_start().trim_start_matches(quotes);
        let ends = value
            .strip_prefix(old)?
            .starts_with(['"', '\'', ',', '}', ' ', '\r', '\n']);
        (ends && before.ends_with(['{', ','])).then(|| text.len() - value.len())
    })?;
    let (before, behind) = text.split_at_checked(begin)?;
    Some(format!("{before}{new}{}", behind.strip_prefix(old)?))
}

/// Returns the value after a colon, without quotes and comment.
fn value_of(after: &str) -> &str {
    let text = after.split(" #").next().unwrap_or_default().trim();
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replace_value_changes_the_version_only() {
        for (text, expected) in [
            (
                "helmChart:\n  # 1.0.0\n  repo: x\n  chartVersion: 1.0.0 # pinned 1.0.0\n  releaseName: 1.0.0\n",
                Some(
                    "helmChart:\n  # 1.0.0\n  repo: x\n  chartVersion: 2.0.0 # pinned 1.0.0\n  releaseName: 1.0.0\n",
                ),
            ),
            ("chartVersion:   \"1.0.0\"", Some("chartVersion:   \"2.0.0\"")),
            ("'chartVersion': '1.0.0'\r\n", Some("'chartVersion': '2.0.0'\r\n")),
            ("chartVersion: 1.0.0-rc\n", None),
            ("chartVersions: 1.0.0\n", None),
            ("{chartVersion: 1.0.0}\n", Some("{chartVersion: 2.0.0}\n")),
            (
                "a: {b: 1.0.0, \"chartVersion\": \"1.0.0\"}",
                Some("a: {b: 1.0.0, \"chartVersion\": \"2.0.0\"}"),
            ),
            ("{chartVersion: 1.0.0-rc}\n", None),
            ("{a chartVersion: 1.0.0}\n", None),
        ] {
            assert_eq!(
                replace_value(text, "chartVersion", "1.0.0", "2.0.0").as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
