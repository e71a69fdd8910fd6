//! Entries for the catalogs of other tools.

use cargo_metadata::MetadataCommand;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::{AARCH64, TestRelease, X86_64, is_program, root, unpack};

const RELEASES: &str = "https://git.example.com/weir/releases/download";

#[test]
fn catalogs_name_the_archives_with_their_digests() {
    let files = TestRelease::new().build();
    let plugin: Value = serde_json::from_slice(&files["weir.yaml"]).unwrap();
    let formula = std::str::from_utf8(&files["weir.rb"]).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let platforms = plugin["versions"][0]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for (platform, block) in platforms.iter().zip(["on_intel", "on_arm"]) {
        let architecture = platform["arch"].as_str().unwrap();
        let name = format!("weir_{version}_linux_{architecture}.tar.gz");
        let url = format!("{RELEASES}/v{version}/{name}");
        let digest = hex::encode(Sha256::digest(&files[&name]));
        assert_eq!(platform["url"], url);
        assert_eq!(platform["checksum"], format!("sha256:{digest}"));
        let block = format!("  {block} do\n    url \"{url}\"\n    sha256 \"{digest}\"\n  end\n");
        assert!(formula.contains(&block), "{formula}");
    }
}

#[test]
fn catalogs_need_the_url_of_the_source() {
    let mut work = TestRelease::new();
    work.options.release.source = None;
    let files = work.build();
    assert!(!files.contains_key("weir.rb") && !files.contains_key("weir.yaml"));
    for source in [
        "http://git.example.com/weir",
        "https://git.example.com/\"#{x}",
        "weir",
    ] {
        let mut work = TestRelease::new();
        work.options.release.source = Some(source.to_owned());
        let error = dist::build(&work.options).unwrap_err().to_string();
        assert!(error.contains("is not an https URL"), "{error}");
    }
}

/// Fills the variables of a template of cargo-binstall.
fn fill(template: &str) -> String {
    let variables = [
        ("{ repo }", "https://git.example.com/weir"),
        ("{ version }", env!("CARGO_PKG_VERSION")),
        ("{ bin }", "weir"),
    ];
    let fill = |filled: String, (name, value)| filled.replace(name, value);
    variables.into_iter().fold(template.to_owned(), fill)
}

#[test]
fn binstall_finds_the_archives_of_each_target() {
    let files = TestRelease::new().build();
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("crates/cli/Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == "cli")
        .unwrap();
    assert_eq!(package.version.to_string(), env!("CARGO_PKG_VERSION"));
    let settings = &package.metadata["binstall"];
    assert_eq!(settings["pkg-fmt"], "tgz");
    let program = fill(settings["bin-dir"].as_str().unwrap());
    let targets = settings["overrides"].as_object().unwrap();
    assert_eq!(targets.len(), 2);
    for (target, machine) in [
        ("x86_64-unknown-linux-musl", X86_64),
        ("aarch64-unknown-linux-musl", AARCH64),
    ] {
        let url = fill(targets[target]["pkg-url"].as_str().unwrap());
        let (folder, name) = url.rsplit_once('/').unwrap();
        assert_eq!(folder, format!("{RELEASES}/v{}", env!("CARGO_PKG_VERSION")));
        let archive = unpack(&files[name]);
        assert!(is_program(archive[&program].as_ref().unwrap(), machine, "weir"));
    }
}
