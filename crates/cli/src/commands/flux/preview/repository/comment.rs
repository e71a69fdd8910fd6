//! The differences as a Markdown comment for a pull request. Pure.

use super::result::{DeploymentDiff, RepositoryDiff, State};

/// Maximum size of a comment, in bytes. GitHub accepts 65,536 characters, other services more.
const MOST: usize = 65_536;
/// Maximum size of the table, in bytes.
const TABLE: usize = 16 << 10;
/// Bytes that are left free for the last line.
const RESERVED: usize = 512;
/// Minimum size of the details of a deployment that don't fit as a whole, in bytes.
const LEAST: usize = 1 << 10;
/// Maximum length of a name, in characters.
const NAME: usize = 320;
const TITLE: usize = 200;

/// The first line of each comment, by which jobs find the one to replace.
const MARKER: &str = "<!-- weir diff repository -->";

/// Formats the differences. Parts that don't fit are left out, and counted in the last line.
pub(super) fn comment(diff: &RepositoryDiff, title: &str) -> String {
    let compared = diff
        .deployments
        .iter()
        .filter(|one| !matches!(one.state, State::Skipped(_)));
    let compared = compared.count();
    let telling: Vec<&DeploymentDiff> = diff.deployments.iter().filter(|one| is_telling(one)).collect();
    let mut text = format!("{MARKER}\n### {}\n\n", escaped(title, TITLE));
    if telling.is_empty() {
        text.push_str(&format!(
            "No differences: {compared} deployments equal the repository.\n"
        ));
        return text;
    }
    let words = match diff.counts().words().as_str() {
        "" => "No differences".to_owned(),
        words => format!("**{words}**"),
    };
    text.push_str(&format!("{words} in {compared} deployments.\n\n"));
    let unlisted = table(&mut text, &telling);
    let left_out = details(&mut text, &telling);
    if unlisted > 0 || left_out > 0 {
        text.push_str(&format!(
            "\nToo long for a comment: {unlisted} deployments and {left_out} bytes of details are left out. \
             `weir diff repository` prints everything.\n"
        ));
    }
    text
}

fn is_telling(deployment: &DeploymentDiff) -> bool {
    !deployment.changes.is_empty()
        || !deployment.errors.is_empty()
        || matches!(deployment.state, State::Skipped(_) | State::Removed)
}

/// Adds a row for each deployment, and returns the number of the ones that don't fit.
fn table(text: &mut String, deployments: &[&DeploymentDiff]) -> usize {
    let most = text.len() + TABLE;
    text.push_str("| Deployment | State | Created | Changed | Deleted | Failed |\n");
    text.push_str("| :-- | :-- | --: | --: | --: | --: |\n");
    for (at, deployment) in deployments.iter().enumerate() {
        let counts = deployment.counts();
        let (status, remark) = deployment.status();
        let remark = match remark {
            "" => String::new(),
            remark => format!(" ({remark})"),
        };
        let number = |count: usize| match count {
            0 => String::new(),
            count => count.to_string(),
        };
        let row = format!(
            "| {} | {status}{remark} | {} | {} | {} | {} |\n",
            code(&deployment.name()),
            number(counts.created),
            number(counts.changed),
            number(counts.deleted),
            number(counts.failed)
        );
        if text.len() + row.len() > most {
            return deployments.len() - at;
        }
        text.push_str(&row);
    }
    0
}

/// Adds the folded details of each deployment, and returns the number of bytes that don't fit.
fn details(text: &mut String, deployments: &[&DeploymentDiff]) -> usize {
    let mut left_out = 0;
    for deployment in deployments {
        let details = deployment.details();
        if details.is_empty() {
            continue;
        }
        let summary = format!("{}: {}", code(&deployment.name()), deployment.counts().words());
        let fence = fence(&details);
        let start = format!("\n<details>\n<summary>{summary}</summary>\n\n{fence}diff\n");
        let end = format!("{fence}\n\n</details>\n");
        let used = text.len() + start.len() + end.len() + RESERVED;
        let part = match MOST.saturating_sub(used) {
            free if free >= details.len() => details.as_str(),
            free if free >= LEAST => whole_lines(&details, free),
            _ => "",
        };
        left_out += details.len() - part.len();
        if !part.is_empty() {
            text.push_str(&format!("{start}{part}{end}"));
        }
    }
    left_out
}

/// Returns the lines of a string that fit into a number of bytes.
fn whole_lines(text: &str, most: usize) -> &str {
    let end = text.floor_char_boundary(most);
    let part = text.get(..end).unwrap_or_default();
    match part.rfind('\n') {
        Some(last) => part.get(..=last).unwrap_or_default(),
        None => "",
    }
}

/// Returns a fence that the text does not have.
fn fence(text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    "`".repeat(longest.max(2) + 1)
}

/// Formats a name as code, in which nothing is markup, a mention or a link.
fn code(name: &str) -> String {
    format!("<code>{}</code>", escaped(name, NAME))
}

/// Escapes all characters with a meaning in Markdown and HTML, and cuts a string that is too long.
fn escaped(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at == most {
            out.push_str("...");
            break;
        }
        match c {
            c if c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | '/' | ',') => out.push(c),
            c if c.is_control() => out.push(' '),
            c => out.push_str(&format!("&#{};", u32::from(c))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            super::trial::Effect,
            result::{
                DiffError,
                tests::{change, deployment},
            },
        },
        *,
    };

    fn diff(deployments: Vec<DeploymentDiff>) -> RepositoryDiff {
        RepositoryDiff {
            deployments,
            ..RepositoryDiff::default()
        }
    }

    #[test]
    fn comment_has_a_table_and_folded_details() {
        let drift = "\ndata.color\n± value change\n- blue\n+ red\n\n";
        let apps = deployment(
            "apps",
            vec![
                change("ConfigMap", "a", Effect::Drifted, drift),
                change("ConfigMap", "b", Effect::Created, ""),
            ],
        );
        let text = comment(
            &diff(vec![apps, deployment("same", Vec::new())]),
            "Cluster *prod*",
        );
        let expected = format!(
            "<!-- weir diff repository -->\n### Cluster &#42;prod&#42;\n\n**1 created, 1 changed** in 2 deployments.\n\n\
             | Deployment | State | Created | Changed | Deleted | Failed |\n| :-- | :-- | --: | --: | --: | --: |\n\
             | <code>Kustomization/flux&#45;system/apps</code> | changed | 1 | 1 |  |  |\n\n\
             <details>\n<summary><code>Kustomization/flux-system/apps</code>: 1 created, 1 changed</summary>\n\n\
             ```diff\n► ConfigMap/shop/a drifted\n{drift}► ConfigMap/shop/b created\n```\n\n</details>\n"
        );
        assert_eq!(text, expected.replace("&#45;", "-"));
        let text = comment(&diff(vec![deployment("same", Vec::new())]), "x");
        assert!(
            text.ends_with("No differences: 1 deployments equal the repository.\n"),
            "{text}"
        );
    }

    #[test]
    fn comment_is_bounded_and_says_how_much_is_left_out() {
        let long = "+ é line\n".repeat(2000);
        let all: Vec<DeploymentDiff> = (0..500)
            .map(|at| {
                let changes = vec![change("ConfigMap", "a", Effect::Drifted, &long)];
                deployment(&format!("{at:0>250}"), changes)
            })
            .collect();
        let size: usize = all.iter().map(|one| one.details().len()).sum();
        let text = comment(&diff(all), &"t".repeat(5000));
        assert!(
            text.len() <= MOST && text.len() > MOST - 3 * LEAST,
            "{} bytes",
            text.len()
        );
        let last = text.lines().last().unwrap();
        let numbers: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
        let rows = text.lines().filter(|line| line.starts_with("| <code>")).count();
        assert_eq!(numbers[0], 500 - rows, "{last}");
        let printed: usize = text
            .split("```diff\n")
            .skip(1)
            .map(|part| part.split("```").next().unwrap().len())
            .sum();
        assert_eq!(numbers[1], size - printed, "{last}");
        assert_eq!(
            text.matches("<details>").count(),
            text.matches("</details>").count()
        );
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut hostile = deployment("`</code>@team|x", Vec::new());
        let error = "bad\n````\n</details> @team\n".to_owned();
        hostile.errors.push(DiffError::general(error));
        let text = comment(&diff(vec![hostile]), "a\nb <b>");
        assert!(text.contains("### a b &#60;b&#62;\n"), "{text}");
        assert!(
            text.contains("<code>Kustomization/flux-system/&#96;&#60;/code&#62;&#64;team&#124;x</code>"),
            "{text}"
        );
        assert!(
            text.contains("`````diff\n✗ bad\n````\n</details> @team\n\n`````\n"),
            "{text}"
        );
    }
}
