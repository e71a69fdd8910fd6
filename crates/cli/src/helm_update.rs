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
use tree::{Budget, Limits, TreePath};

use crate::{
    charts::Charts,
    fetch::Fetcher,
    helm_pull,
    logins::{LoginArgs, Logins},
    output::print,
    project::{Project, Release},
    usage::boolean,
};

/// Tells which charts of a kluctl project have newer versions, and upgrades to them.
#[derive(Args)]
#[command(mut_args = boolean)]
pub(crate) struct UpdateArgs {
    /// The directory of the project
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    project_dir: PathBuf,
    /// Write the new versions into the files, and pull them
    #[arg(long)]
    upgrade: bool,
    /// Ask before each upgrade
    #[arg(short, long, requires = "upgrade")]
    interactive: bool,
    /// Commit each upgrade to the Git repository that the project lies in
    #[arg(long, requires = "upgrade")]
    commit: bool,
    #[command(flatten)]
    logins: LoginArgs,
}

/// Does the command.
pub(crate) fn run(args: &UpdateArgs) -> Result<()> {
    let fetcher = Fetcher::new(Logins::new(&args.logins)?);
    let charts = Charts::new(&fetcher);
    let budget = Budget::new(Limits::default());
    let project = Project::open(&args.project_dir, &budget)?;
    let commits = match args.commit {
        true => Some(Commits::begin(&project)?),
        false => None,
    };
    let mut upgrades = Upgrades::new();
    for release in &project.releases {
        let Some((old, new)) = newer(release, &charts)? else {
            continue;
        };
        let dir = release.file.parent().unwrap_or_default();
        let name = release.chart.source.name().unwrap_or_default();
        if release.chart.skip_update {
            print(&format!("{dir}: Skipped update to version {new}\n"))?;
            continue;
        }
        print(&format!(
            "{dir}: Chart {name} (old version {old}) has new version {new} available\n"
        ))?;
        if args.upgrade && (!args.interactive || is_agreed(name, &new)?) {
            let place = release.chart.source.dir()?.unwrap_or_default();
            upgrades.entry((place, old, new)).or_default().push(release);
        }
    }
    let pull = || helm_pull::pull(&Project::open(&args.project_dir, &budget)?, &charts, &budget);
    for ((_, old, new), releases) in &upgrades {
        for release in releases {
            upgrade(&project, release, old, new, &budget)?;
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

/// The releases that change, by where their chart is pulled to, the version that they have, and the one that they get.
type Upgrades<'p> = BTreeMap<(TreePath, String, String), Vec<&'p Release>>;

/// The checkout that upgrades are committed to.
struct Commits {
    worktree: Worktree,
    /// The directory of the project in it.
    project: String,
}

impl Commits {
    /// Makes sure that nothing else would be committed.
    fn begin(project: &Project) -> Result<Self> {
        let root = project.file(&TreePath::root());
        let worktree = Worktree::around(&root, &author())?;
        let worktree = worktree.with_context(|| format!("{} lies in no Git repository", root.display()))?;
        let inside = root.strip_prefix(worktree.root().canonicalize()?)?;
        let project_dir = inside
            .to_str()
            .context("the path of the project is no UTF-8")?
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
            "--commit can only be used when the directory {PULLED_CHARTS} is clean"
        );
        ensure!(
            helm_pull::is_up_to_date(project)?,
            "{PULLED_CHARTS} is not up-to-date: run 'weir helm-pull' and commit its changes first"
        );
        Ok(commits)
    }

    /// A path of the project, in the repository.
    fn path(&self, path: &str) -> String {
        match self.project.as_str() {
            "" => path.to_owned(),
            project => format!("{project}/{path}"),
        }
    }

    /// Commits the files of some releases, and what was pulled and removed for them.
    fn add(&self, project: &Project, releases: &[&Release], old: &str, new: &str) -> Result<()> {
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
        helm_pull::say(format_args!("Committed helm chart {name} with version {new}"));
        Ok(())
    }
}

/// Whose name commits carry: as Git itself finds it.
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

/// The version of a chart and the newest one, if they differ.
fn newer(release: &Release, charts: &Charts<'_>) -> Result<Option<(String, String)>> {
    let range = release.chart.update_constraints.as_deref().unwrap_or_default();
    let failed = || format!("{}", release.file);
    let (old, new) = match &release.chart.source {
        ChartSource::Git {
            url,
            reference: GitReference::Tag(tag),
            ..
        } => {
            let range = if range.is_empty() { "*" } else { range };
            let newest = charts.fetcher.newest_tag(url, range);
            let newest = newest.map_err(|why| anyhow!(why)).with_context(failed)?;
            (
                format!("refs/tags/{tag}"),
                newest.map(|tag| format!("refs/tags/{tag}")),
            )
        }
        source => {
            // Neither what a branch means nor what lies in the project has a version.
            let Some((address, chart, version)) = source.remote() else {
                return Ok(None);
            };
            let versions = charts.versions(address, chart).with_context(failed)?;
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

/// Writes a new version into a file; all else of it stays as it is.
fn upgrade(project: &Project, release: &Release, old: &str, new: &str, budget: &Budget) -> Result<()> {
    let path = project.file(&release.file);
    let shown = path.display();
    let text = fs::read_to_string(&path).with_context(|| format!("read {shown}"))?;
    let tag = |version: &str| version.strip_prefix("refs/tags/").unwrap_or(version).to_owned();
    let changed = ["chartVersion", "tag", "ref"].iter().find_map(|key| {
        let (old, new) = match *key {
            "tag" => (tag(old), tag(new)),
            _ => (old.to_owned(), new.to_owned()),
        };
        let changed = replaced(&text, key, &old, &new)?;
        let read = HelmChart::read(&release.file, changed.as_bytes(), budget).ok()?;
        let is_new = read.source.version().as_deref() == Some(new.as_str())
            || read.source.version() == Some(format!("refs/tags/{new}"));
        is_new.then_some(changed)
    });
    let changed = changed.ok_or_else(|| anyhow!("{shown}: write the version {new} into it by hand"))?;
    ensure!(changed != text, "{shown}: the version stands in it already");
    // Whole or not at all.
    let dir = path.parent().unwrap_or(&path);
    let mut file = tempfile::NamedTempFile::new_in(dir).with_context(|| format!("write {shown}"))?;
    file.write_all(changed.as_bytes())?;
    let permissions = fs::metadata(&path)?.permissions();
    file.as_file().set_permissions(permissions)?;
    file.persist(&path).with_context(|| format!("write {shown}"))?;
    Ok(())
}

/// The text with another value behind the first line that begins with a key and has the old one.
fn replaced(text: &str, key: &str, old: &str, new: &str) -> Option<String> {
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
    replaced_in_braces(text, key, old, new)
}

/// Likewise for a key in a map that is written in braces.
fn replaced_in_braces(text: &str, key: &str, old: &str, new: &str) -> Option<String> {
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

/// The value behind a colon, without quotes and comment.
fn value_of(after: &str) -> &str {
    let text = after.split(" #").next().unwrap_or_default().trim();
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_changes() {
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
                replaced(text, "chartVersion", "1.0.0", "2.0.0").as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
