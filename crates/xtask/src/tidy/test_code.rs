//! Tells test code from production code in formatted sources. Pure.

use std::collections::BTreeSet;

/// Returns the lines of a file that `#[cfg(test)]` does not cover, with their numbers from 1.
pub(crate) fn production(text: &str) -> impl Iterator<Item = (usize, &str)> {
    split(text)
        .into_iter()
        .filter(|(_, _, covered)| !covered)
        .map(|(number, line, _)| (number, line))
}

/// Returns the files and folders of modules that are test code as a whole, because `#[cfg(test)]` stands above `mod`.
pub(crate) fn test_modules(path: &str, text: &str) -> BTreeSet<String> {
    let covered = split(text).into_iter().filter(|(_, _, covered)| *covered);
    let names = covered.filter_map(|(_, line, _)| {
        line.trim()
            .trim_start_matches("pub(crate) ")
            .strip_prefix("mod ")?
            .strip_suffix(';')
    });
    let folder = folder(path);
    names
        .flat_map(|name| [format!("{folder}{name}.rs"), format!("{folder}{name}/")])
        .collect()
}

/// Returns the folder of a file's child modules, with a slash at the end.
fn folder(path: &str) -> String {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => format!("{dir}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    }
}

/// Returns each line with its number, and true if `#[cfg(test)]` covers it. An item ends with the first line of its own
/// indentation that ends in `;` or `}`, which rustfmt guarantees.
fn split(text: &str) -> Vec<(usize, &str, bool)> {
    let mut depth = None;
    let each = text.lines().enumerate().map(|(index, line)| {
        let own = line.len() - line.trim_start().len();
        if depth.is_none() && line.trim() == "#[cfg(test)]" {
            depth = Some(own);
            return (index + 1, line, true);
        }
        let covered = depth.is_some();
        let ends = line.ends_with(';') || line.ends_with('}');
        if depth == Some(own) && ends && !line.trim().is_empty() {
            depth = None;
        }
        (index + 1, line, covered)
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//! X.\n#[cfg(test)]\nmod fuzz;\nmod json;\n#[cfg(test)]\n#[allow(\n    all,\n)]\npub(crate) mod a {\n    \
                        fn f() {\n    }\n}\nfn g() {}\n#[cfg(test)]\nuse x;\nfn h() {}\n";

    #[test]
    fn production_leaves_out_items_below_cfg_test() {
        let lines: Vec<_> = production(TEXT).collect();
        assert_eq!(
            lines,
            [
                (1, "//! X."),
                (4, "mod json;"),
                (13, "fn g() {}"),
                (16, "fn h() {}")
            ]
        );
    }

    #[test]
    fn test_modules_are_found_beside_or_below_their_parent() {
        let found = |path: &str| test_modules(path, TEXT).into_iter().collect::<Vec<_>>();
        assert_eq!(
            found("crates/x/src/lib.rs"),
            ["crates/x/src/fuzz.rs", "crates/x/src/fuzz/"]
        );
        assert_eq!(
            found("crates/x/src/y/mod.rs"),
            ["crates/x/src/y/fuzz.rs", "crates/x/src/y/fuzz/"]
        );
        assert_eq!(
            found("crates/x/src/y.rs"),
            ["crates/x/src/y/fuzz.rs", "crates/x/src/y/fuzz/"]
        );
    }
}
