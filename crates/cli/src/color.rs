//! Colors for results on terminals.

use std::io::{ErrorKind, Write as _};

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, Result};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const TITLE: Style = Style::new().bold();

pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(colored(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("write the output"),
        _ => Ok(()),
    }
}

/// Adds colors to titles, and to added and removed lines in the second column of tables.
fn colored(text: &str) -> String {
    let mut painted = String::with_capacity(text.len());
    let mut column = None;
    for line in text.split_inclusive('\n') {
        if line.starts_with("+-") {
            column = line.get(1..).and_then(|rest| rest.find('+')).map(|at| at + 3);
        }
        let cell = column
            .filter(|_| line.starts_with('|'))
            .and_then(|column| Some((line.get(..column)?, line.get(column..)?)));
        match cell {
            Some((path, cell)) => {
                painted.push_str(path);
                let style = match cell.as_bytes().first() {
                    Some(b'+') => ADDED,
                    Some(b'-') => REMOVED,
                    _ => Style::new(),
                };
                let (cell, end) = cell.rsplit_once('|').unwrap_or((cell, ""));
                painted.push_str(&format!("{style}{cell}{style:#}|{end}"));
            }
            None if is_title(line) => {
                painted.push_str(&format!("{TITLE}{}{TITLE:#}\n", line.trim_end()));
            }
            None => painted.push_str(line),
        }
    }
    painted
}

fn is_title(line: &str) -> bool {
    let line = line.trim_end();
    line.starts_with("Diff for object ")
        || line.ends_with(':') && line.starts_with(|first: char| first.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_colored() {
        let text = "\nChanged objects:\n  n/ConfigMap/a\n\nDiff for object n/ConfigMap/a\n+------+--------+\n| Path | Diff   |\n\
                    +------+--------+\n| data | -old   |\n|      | +new   |\n+------+--------+\n";
        let painted = colored(text);
        assert_eq!(
            anstream::adapter::strip_str(&painted).to_string(),
            text,
            "only colors are added"
        );
        for part in [
            "\u{1b}[31m-old   \u{1b}[0m|",
            "\u{1b}[32m+new   \u{1b}[0m|",
            "\u{1b}[1mChanged objects:\u{1b}[0m",
        ] {
            assert!(painted.contains(part), "{part:?} in {painted:?}");
        }
    }
}
