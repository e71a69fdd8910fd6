//! Snapshots of the help.
//!
//! `WEIR_UPDATE_SNAPSHOTS=1 cargo test -p cli help` writes them.

use std::{fs, path::PathBuf, process::Command};

fn snapshots() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/help")
}

fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(command)
        .arg("--help")
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// Returns the subcommands that the help lists. The program lists them in groups before its options, commands in one.
fn subcommands(help: &str) -> Vec<String> {
    let is_program = help.contains("\nUsage: weir <COMMAND>\n");
    let is_head = |line: &&str| *line != "Commands:" && !(is_program && line.starts_with("Usage:"));
    let list = help.lines().skip_while(is_head).skip(1);
    list.take_while(|line| {
        if is_program {
            *line != "Options:"
        } else {
            !line.is_empty()
        }
    })
    .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
    .filter(|name| *name != "help")
    .map(str::to_owned)
    .collect()
}

/// Collects the help of a command and all its subcommands, each with the name of its snapshot.
fn collect(command: &[String], all: &mut Vec<(String, String)>) {
    let text = help(command);
    for name in subcommands(&text) {
        collect(&[command, &[name]].concat(), all);
    }
    let name = std::iter::once("weir").chain(command.iter().map(String::as_str));
    all.push((format!("{}.txt", name.collect::<Vec<_>>().join("-")), text));
}

#[test]
fn help_texts_match_their_snapshots() {
    let mut texts = Vec::new();
    collect(&[], &mut texts);
    texts.sort();
    let dir = snapshots();
    if std::env::var_os("WEIR_UPDATE_SNAPSHOTS").is_some() {
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for (name, text) in &texts {
            fs::write(dir.join(name), text).unwrap();
        }
    }
    let mut names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected: Vec<&String> = texts.iter().map(|(name, _)| name).collect();
    assert_eq!(
        names.iter().collect::<Vec<_>>(),
        expected,
        "each command has one snapshot: WEIR_UPDATE_SNAPSHOTS=1 writes them"
    );
    for (name, text) in &texts {
        let snapshot = fs::read_to_string(dir.join(name)).unwrap();
        assert_eq!(
            *text, snapshot,
            "{name}: if the change is intended, write the snapshots with WEIR_UPDATE_SNAPSHOTS=1"
        );
    }
}

#[test]
fn the_manual_names_all_commands() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/weir.md");
    let page = fs::read_to_string(page).unwrap();
    for name in subcommands(&help(&[])) {
        assert!(
            page.contains(&format!("weir {name}")),
            "docs/weir.md: weir {name}"
        );
    }
}

#[test]
fn the_manual_names_existing_flags_only() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut texts = Vec::new();
    collect(&[], &mut texts);
    let is_flag = |c: char| c.is_ascii_lowercase() || c == '-';
    for name in ["weir.md", "weir-steer.md", "weir-preview.md"] {
        let page = fs::read_to_string(docs.join(name)).unwrap();
        let words = page.split(|c: char| !is_flag(c));
        for word in words.filter(|word| word.starts_with("--")) {
            let is_known = texts.iter().any(|(_, text)| text.contains(word));
            assert!(is_known || word.len() < 4, "docs/{name}: {word} is no flag");
        }
    }
}
