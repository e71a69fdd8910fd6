//! The rule for circles of imports between the files of a crate. Pure.

mod graph;
mod imports;

use std::collections::BTreeMap;

use super::lexer::Token;
use graph::Crate;

const LARGEST: usize = 9;

pub(crate) struct Source<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token<'a>],
}

/// Lists the circles of more than [`LARGEST`] files, with the imports that close each.
pub(crate) fn check(sources: &[Source<'_>]) -> Vec<String> {
    let mut roots: BTreeMap<&str, Vec<&Source<'_>>> = BTreeMap::new();
    for source in sources {
        if let Some(root) = root(source.path) {
            roots.entry(root).or_default().push(source);
        }
    }
    let mut findings = Vec::new();
    for (root, sources) in roots {
        let edges = Crate::new(root, &sources).edges();
        let circles = graph::circles(&edges);
        findings.extend(circles.iter().filter(|circle| circle.len() > LARGEST).map(|circle| {
            let mut finding = format!(
                "{root}: a circle of {} files, at most {LARGEST} are allowed: move what they share to a file that imports none of them",
                circle.len()
            );
            for file in circle {
                let within = edges.get(file).into_iter().flatten();
                let within = within.filter(|(used, _)| circle.contains(*used));
                let uses = within.map(|(used, names)| {
                    let names: Vec<&str> = names.iter().copied().collect();
                    format!("{} ({})", below(root, used), names.join(", "))
                });
                finding += &format!("\n    {} -> {}", below(root, file), uses.collect::<Vec<_>>().join("; "));
            }
            finding
        }));
    }
    findings
}

/// Returns the folder with the root module of a file's crate: `.../src/`, or of a program, `.../src/bin/NAME/`.
fn root(path: &str) -> Option<&str> {
    let (before, after) = path.split_once("/src/")?;
    let mut end = before.len() + "/src/".len();
    if let Some((name, _)) = after
        .strip_prefix("bin/")
        .and_then(|program| program.split_once('/'))
    {
        end += "bin/".len() + name.len() + 1;
    }
    path.get(..end)
}

fn below<'a>(root: &str, path: &'a str) -> &'a str {
    path.strip_prefix(root).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{super::lexer, *};

    /// Returns the imports of files below `crates/x/src/` as `a.rs -> b.rs`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files
            .iter()
            .map(|(path, _)| format!("crates/x/src/{path}"))
            .collect();
        let tokens: Vec<_> = files.iter().map(|(_, text)| lexer::tokens(text)).collect();
        let sources: Vec<Source<'_>> = files
            .iter()
            .zip(&paths)
            .zip(&tokens)
            .map(|(((_, text), path), tokens)| Source { path, text, tokens })
            .collect();
        let edges = Crate::new("crates/x/src/", &sources.iter().collect::<Vec<_>>()).edges();
        let flat = edges
            .iter()
            .flat_map(|(file, used)| used.keys().map(move |used| (file, used)));
        flat.map(|(file, used)| {
            format!(
                "{} -> {}",
                below("crates/x/src/", file),
                below("crates/x/src/", used)
            )
        })
        .collect()
    }

    #[test]
    fn imports_are_followed_to_the_file_that_defines_the_name() {
        let found = edges(&[
            ("lib.rs", "mod a;\nmod b;\npub use a::Deep;\n"),
            ("a.rs", "mod inner;\npub use inner::{Deep, f as g};\n"),
            ("a/inner.rs", "pub struct Deep;\npub fn f() {}\n"),
            ("b.rs", "use crate::{Deep, a::{self, g}};\nuse other::Thing;\n"),
        ]);
        assert_eq!(found, ["b.rs -> a/inner.rs"]);
    }

    #[test]
    fn inline_paths_and_globs_count() {
        let found = edges(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nfn f() { a::f() }\n"),
            ("a.rs", "fn g() { crate::b::h(); super::f() }\n"),
            (
                "b.rs",
                "use super::c::*;\nmod tests_of { use super::super::a::x; }\n",
            ),
            ("c.rs", "struct C;"),
        ]);
        assert_eq!(
            found,
            [
                "a.rs -> b.rs",
                "a.rs -> lib.rs",
                "b.rs -> a.rs",
                "b.rs -> c.rs",
                "lib.rs -> a.rs"
            ]
        );
    }

    #[test]
    fn a_public_import_counts_only_where_the_name_is_used() {
        let lib = (
            "lib.rs",
            "mod a;\nmod b;\npub use {a::A, b::B};\nfn f() -> A { A }\n",
        );
        assert_eq!(
            edges(&[lib, ("a.rs", ""), ("b.rs", "use crate::A;")]),
            ["b.rs -> a.rs", "lib.rs -> a.rs"]
        );
    }

    #[test]
    fn test_code_and_comments_do_not_count() {
        let text = "// crate::b::f()\n#[cfg(test)]\nmod tests {\n    use crate::b::f;\n}\n";
        assert_eq!(edges(&[("lib.rs", ""), ("a.rs", text), ("b.rs", "")]), [""; 0]);
    }

    #[test]
    fn circles_are_listed_from_ten_files_on() {
        let ring = |files: usize| {
            let text = |index: usize| format!("use crate::f{}::x{index};\n", (index + 1) % files);
            let files: Vec<_> = (0..files)
                .map(|index| (format!("crates/x/src/f{index}.rs"), text(index)))
                .chain([("crates/x/src/lib.rs".to_owned(), String::new())])
                .collect();
            let tokens: Vec<_> = files.iter().map(|(_, text)| lexer::tokens(text)).collect();
            let sources = files.iter().zip(&tokens);
            let sources: Vec<_> = sources
                .map(|((path, text), tokens)| Source { path, text, tokens })
                .collect();
            check(&sources)
        };
        assert_eq!(ring(9), [""; 0]);
        let found = ring(10);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].starts_with("crates/x/src/: a circle of 10 files"),
            "{found:#?}"
        );
        assert!(found[0].contains("\n    f9.rs -> f0.rs (x9)"), "{found:#?}");
    }

    #[test]
    fn root_is_the_folder_of_the_crate() {
        assert_eq!(root("crates/x/src/a/b.rs"), Some("crates/x/src/"));
        assert_eq!(root("crates/x/src/bin/y.rs"), Some("crates/x/src/"));
        assert_eq!(root("crates/x/src/bin/y/main.rs"), Some("crates/x/src/bin/y/"));
        assert_eq!(root("crates/x/build.rs"), None);
    }
}
