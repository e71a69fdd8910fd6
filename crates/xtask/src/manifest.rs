//! Reads from a manifest which dependencies inherit from the workspace table, which `cargo metadata` does not tell.

/// Lists the dependencies of a manifest that do not inherit from the workspace table. It reads line by line: the project
/// writes one dependency per line.
pub(crate) fn own_dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut section = "";
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim_matches('[');
            // A dependency as a section of its own would escape this reader, so it is refused as such.
            if let Some((_, dependency)) = section.split_once("dependencies.") {
                found.push(dependency.to_owned());
            }
            continue;
        }
        if !section.ends_with("dependencies") || line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let (key, value) = (key.trim(), value.split_whitespace().collect::<String>());
        let inherits =
            (key.ends_with(".workspace") && value.starts_with("true")) || value.contains("workspace=true");
        if !inherits {
            found.push(key.trim_end_matches(".version").to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_dependencies_lists_those_that_do_not_inherit() {
        let manifest = r#"
            [package]
            version = "1"
            [dependencies]
            a.workspace = true
            b = { workspace = true, features = ["x"] }
            # c = "1"
            d = "1"
            e = { path = "../e" }
            [target.'cfg(unix)'.dev-dependencies]
            f = { git = "https://example.com/f" }
            g.workspace = true
            [build-dependencies.h]
            version = "1"
            [features]
            i = []
        "#;
        assert_eq!(own_dependencies(manifest), ["d", "e", "f", "h"]);
        assert!(own_dependencies("[package]\nname = \"x\"\n").is_empty());
    }
}
