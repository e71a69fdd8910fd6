//! `weir helm-update`.

use std::{
    fs,
    io::{BufRead as _, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use kluctl::{ChartSource, GitReference, HelmChart};
use tree::{Budget, Limits};

use crate::{
    charts::Charts,
    fetch::Fetcher,
    helm_pull,
    logins::{LoginArgs, Logins},
    output::print,
    project::{Project, Release},
    usage::{Refused, boolean},
};

/// Flags that the original has and this program hasn't, and why.
pub(crate) const REFUSED: Refused = &[(
    &["--commit"],
    "nothing is committed; look at what --upgrade changed and commit it with git",
)];

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
    #[command(flatten)]
    logins: LoginArgs,
}

/// Does the command.
pub(crate) fn run(args: &UpdateArgs) -> Result<()> {
    let fetcher = Fetcher::new(Logins::new(&args.logins)?);
    let charts = Charts::new(&fetcher);
    let budget = Budget::new(Limits::default());
    let project = Project::open(&args.project_dir, &budget)?;
    let mut upgraded = false;
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
            upgrade(&project, release, &old, &new, &budget)?;
            upgraded = true;
        }
    }
    if upgraded {
        helm_pull::pull(&Project::open(&args.project_dir, &budget)?, &charts, &budget)?;
    }
    Ok(())
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
                oci::newest(versions, |version| version, range)?,
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
    done.then_some(changed)
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
            ("{chartVersion: 1.0.0}\n", None),
        ] {
            assert_eq!(
                replaced(text, "chartVersion", "1.0.0", "2.0.0").as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
