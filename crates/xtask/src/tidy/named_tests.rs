//! The tests that the documentation names.

use std::collections::BTreeSet;

use crate::tree::TextFile;

/// Pages whose tables name tests in their last column.
const PAGES: &[&str] = &["docs/security.md", "docs/contributing/acceptance-"];

/// Returns a finding for each test that a page names and that no source has. A name is a function, or a file and a function,
/// as in `tests/it/requests.rs::a_test`.
pub(super) fn check(files: &[TextFile]) -> Vec<String> {
    let is_page = |file: &&TextFile| {
        let path = file.path.trim_start_matches("./");
        PAGES.iter().any(|page| path.starts_with(page))
    };
    files
        .iter()
        .filter(is_page)
        .flat_map(|page| missing(page, files))
        .collect()
}

fn missing(page: &TextFile, files: &[TextFile]) -> Vec<String> {
    // Each with the beginning of its definition.
    let mut missing: BTreeSet<(&str, &str, String)> = named(&page.text)
        .map(|name| name.rsplit_once("::").unwrap_or(("", name)))
        .map(|(path, name)| (path, name, format!("fn {name}(")))
        .collect();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        missing.retain(|(path, _, definition)| !is_path(&file.path, path) || !file.text.contains(definition));
    }
    missing
        .into_iter()
        .map(|(path, name, _)| match path {
            "" => format!("{}: there is no test {name}", page.path),
            path => format!("{}: there is no test {name} in {path}", page.path),
        })
        .collect()
}

/// Returns true if a path ends in these components.
fn is_path(path: &str, end: &str) -> bool {
    end.is_empty()
        || path
            .strip_suffix(end)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// Returns the names in backticks in the last column of each table.
fn named(page: &str) -> impl Iterator<Item = &str> {
    let cells = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.rsplit(" | ").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn missing_tests_of_the_last_column_are_found() {
        let table = "`other`\n| `Threat` | Rule | `kept`, `gone`, `it/a.rs::kept`, `it/b.rs::kept`, `t/a.rs::kept` |\n";
        let sources = [
            file("crates/x/tests/it/a.rs", "async fn kept() {}"),
            file("crates/x/tests/it/b.rs", "fn gone_too() {}"),
        ];
        for page in ["docs/security.md", "docs/contributing/acceptance-x.md"] {
            let files = [&[file(page, table)][..], &sources].concat();
            let expected = ["gone", "kept in it/b.rs", "kept in t/a.rs"];
            assert_eq!(
                check(&files),
                expected.map(|name| format!("{page}: there is no test {name}"))
            );
        }
        assert_eq!(check(&[file("docs/other.md", table)]), [""; 0]);
    }
}
