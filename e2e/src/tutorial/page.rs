//! A page of commands, and of the output that they have.

use anyhow::{Context as _, Result};

/// Stands for any text in a line of output.
const ANYTHING: char = '…';

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Number of the first line of the commands, from 1.
    pub line: usize,
    pub commands: String,
    /// Lines of the output that follows the commands.
    pub shown: Vec<String>,
}

/// Returns the `sh` blocks of a page in Markdown. A `text` block has output of the commands before it.
pub fn steps(page: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut fence = None;
    for (number, line) in (1..).zip(page.lines()) {
        if let Some(language) = line.strip_prefix("```") {
            fence = match fence {
                None => Some(language),
                Some(_) => None,
            };
            if fence == Some("sh") {
                steps.push(Step {
                    line: number + 1,
                    ..Step::default()
                });
            }
            continue;
        }
        match fence {
            Some("sh") => {
                let step = steps.last_mut().context("no block has begun")?;
                step.commands.push_str(line);
                step.commands.push('\n');
            }
            Some("text") => {
                let step = steps.last_mut().context("the page has output before commands")?;
                step.shown.push(line.to_owned());
            }
            _ => {}
        }
    }
    Ok(steps)
}

/// Returns the first shown line that is not part of the output. Lines are found in their order, and blanks are alike.
#[must_use]
pub fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().map(words);
    let missing = shown.iter().find(|line| {
        let wanted = words(line);
        !printed.any(|line| contains(&line, &wanted))
    });
    missing.map(String::as_str)
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns true if a line begins with the wanted one, unless that begins with [`ANYTHING`].
fn contains(line: &str, wanted: &str) -> bool {
    let mut parts = wanted.split(ANYTHING).map(str::trim);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else {
            return false;
        };
        rest = behind;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_belongs_to_the_commands_before_it() -> Result<()> {
        let page =
            "# A\n```sh\na \\\n  b\n```\nwords\n```yaml\nc: d\n```\n```text\n✔ e\n```\n```sh\nf\n```\n";
        let step = |line, commands: &str, shown: &[&str]| Step {
            line,
            commands: commands.to_owned(),
            shown: shown.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(
            steps(page)?,
            [step(3, "a \\\n  b\n", &["✔ e"]), step(14, "f\n", &[])]
        );
        assert!(steps("```text\na\n```\n").is_err());
        Ok(())
    }

    #[test]
    fn shown_lines_are_found_in_their_order() {
        let printed = "NAME   READY\napps   main@sha1:123\tTrue\nweb 1/1\n";
        let lacks = |shown: &[&str]| {
            let shown: Vec<String> = shown.iter().map(|line| (*line).to_owned()).collect();
            missing(&shown, printed).map(str::to_owned)
        };
        assert_eq!(lacks(&["apps main@sha1:… True", "web"]), None);
        assert_eq!(lacks(&["…sha1:…"]), None);
        assert_eq!(lacks(&["web", "apps"]), Some("apps".to_owned()));
        assert_eq!(lacks(&["READY"]), Some("READY".to_owned()));
        assert_eq!(lacks(&["apps … False"]), Some("apps … False".to_owned()));
    }
}
