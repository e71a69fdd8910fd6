//! The script that compiles programs for the targets of releases, with a compiler that only notes how it was called.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::support::root;

const INTEL: &str = "x86_64-unknown-linux-musl";
const ARM: &str = "aarch64-unknown-linux-musl";

struct Toolchain {
    dir: TempDir,
}

impl Toolchain {
    /// Makes a compiler with the standard library for these targets.
    fn with(targets: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display();
        // Called as `rustc --print target-libdir --target TARGET`.
        add_script(dir.path(), "rustc", &format!("echo '{path}'/lib/$4"));
        add_script(
            dir.path(),
            "cargo",
            &format!("echo \"$* RUSTFLAGS=$RUSTFLAGS\" >> '{path}/calls'"),
        );
        for target in targets {
            let library = dir.path().join("lib").join(target);
            fs::create_dir_all(&library).unwrap();
            fs::write(library.join("libstd-1.rlib"), "").unwrap();
        }
        Self { dir }
    }

    fn compile(&self, targets: &str) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new(root().join("hack/static.sh"))
            .args([targets, "cargo", "build", "--bin", "weir"])
            .current_dir(root())
            .env("PATH", format!("{}:{path}", self.dir.path().display()))
            .env("CARGO_HOME", "/srv/someone/.cargo")
            .env_remove("PWD")
            .output()
            .unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }
}

fn add_script(dir: &Path, name: &str, line: &str) {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn programs_are_compiled_for_each_target_without_paths_of_the_machine() {
    let toolchain = Toolchain::with(&[INTEL, ARM]);
    let output = toolchain.compile(&format!("{INTEL} {ARM}"));
    assert!(output.status.success(), "{output:?}");
    let calls = toolchain.calls();
    assert_eq!(calls.len(), 2);
    let project = fs::canonicalize(root()).unwrap();
    for (call, target) in calls.iter().zip([INTEL, ARM]) {
        assert!(
            call.starts_with(&format!("build --bin weir --target {target} ")),
            "{call}"
        );
        for (path, name) in [
            (project.to_str().unwrap(), "weir"),
            ("/srv/someone/.cargo", "cargo"),
        ] {
            let flag = format!("--remap-path-prefix={path}={name}");
            assert!(call.contains(&flag), "{call}");
        }
    }
}

#[test]
fn missing_standard_libraries_are_named_before_anything_is_compiled() {
    let toolchain = Toolchain::with(&[INTEL]);
    let output = toolchain.compile(&format!("{INTEL} {ARM}"));
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("`rustup target add {ARM}`")), "{said}");
    assert_eq!(toolchain.calls(), Vec::<String>::new());
}
