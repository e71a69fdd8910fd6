//! Project arguments: `--arg name=value` and `--args-from-file`.

use std::{io::ErrorKind, path::PathBuf};

use anyhow::{Context as _, Result};
use kluctl::ArgumentError;
use tree::{Budget, TreePath};
use yaml::Map;

/// Merges the arguments of `--arg` and of `--args-from-file`; files take precedence.
pub(crate) fn read(args: &[String], files: &[PathBuf], budget: &Budget) -> Result<Map> {
    let mut all = Map::new();
    let read = |file: &str| {
        std::fs::read(file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ArgumentError::new(format!("open {file}: no such file or directory")),
            _ => ArgumentError::new(format!("open {file}: {error}")),
        })
    };
    for arg in args {
        kluctl::add_argument(&mut all, arg, &read, budget)?;
    }
    for file in files {
        let display = file.display();
        let text = std::fs::read(file).with_context(|| format!("read {display}"))?;
        let name = TreePath::root().child(&file.file_name().unwrap_or_default().to_string_lossy());
        kluctl::add_arguments_file(&mut all, &name, &text, budget).with_context(|| display.to_string())?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use yaml::Value;

    use super::*;

    fn read_all(args: &[&str], file: &str) -> Result<String, String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("args.yaml");
        std::fs::write(&path, file).unwrap();
        read(&args, &[path], &Budget::default())
            .map(|map| yaml::print::json(&Value::Map(map)))
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn args_from_files_take_precedence_and_are_merged() {
        assert_eq!(
            read_all(&["a.b=1", "c=[x]", "e=true"], "a: {d: 3}\nc: 4\n").as_deref(),
            Ok(r#"{"a":{"b":1,"d":3},"c":4,"e":true}"#)
        );
        assert_eq!(read_all(&[], "# nothing\n").as_deref(), Ok("{}"));
        let error = read_all(&[], "- 1").unwrap_err();
        assert!(
            error.contains("args.yaml") && error.contains("arguments are a map"),
            "{error}"
        );
        let error = read_all(&["a=@/no/such/file"], "").unwrap_err();
        assert!(
            error.contains("open /no/such/file: no such file or directory"),
            "{error}"
        );
    }
}
