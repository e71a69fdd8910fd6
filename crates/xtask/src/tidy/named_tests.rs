//! The tests that the documentation names.

use std::collections::BTreeSet;

/// Page whose tables name tests in their last column.
pub(super) const PAGE: &str = "docs/security.md";

/// Returns a finding for each test that a page names and that no source has.
pub(super) fn check<'a>(page: &str, sources: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut missing: BTreeSet<&str> = named(page).collect();
    for source in sources {
        missing.retain(|name| !source.contains(&format!("fn {name}(")));
    }
    missing
        .into_iter()
        .map(|name| format!("{PAGE}: there is no test {name}"))
        .collect()
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

    #[test]
    fn missing_tests_of_the_last_column_are_found() {
        let page = "`other`\n| `Threat` | Rule | `kept`, `gone` |\n";
        let sources = ["async fn kept() {}", "fn gone_too() {}"];
        assert_eq!(
            check(page, sources.into_iter()),
            ["docs/security.md: there is no test gone"]
        );
    }
}
