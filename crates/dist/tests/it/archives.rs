//! Archives, manifests and checksums.

use std::fs;

use sha2::{Digest as _, Sha256};

use crate::support::{AARCH64, TestRelease, X86_64, is_program, names, program, root, unpack};

#[test]
fn two_releases_of_the_same_programs_are_equal() {
    let (a, b) = (TestRelease::new(), TestRelease::new());
    let (a, b) = (a.build(), b.build());
    for (name, content) in &a {
        assert!(b[name] == *content, "{name} differs");
    }
    assert_eq!(a.len(), b.len());
}

#[test]
fn archives_have_the_programs_and_what_shells_and_man_read() {
    let files = TestRelease::new().build();
    let license = fs::read(root().join("LICENSE")).unwrap();
    for name in names() {
        for (architecture, machine) in [("amd64", X86_64), ("arm64", AARCH64)] {
            let version = env!("CARGO_PKG_VERSION");
            let archive = unpack(&files[&format!("{name}_{version}_linux_{architecture}.tar.gz")]);
            assert!(is_program(archive[name].as_ref().unwrap(), machine, name));
            assert_eq!(archive["LICENSE"].as_ref(), Some(&license));
            assert_eq!(archive.contains_key("man/man1/weir.1"), name == "weir");
        }
    }
    let archive = unpack(&files[&format!("weir_{}_linux_amd64.tar.gz", env!("CARGO_PKG_VERSION"))]);
    for (path, part) in [
        ("completions/bash/weir", "complete"),
        ("completions/zsh/_weir", "#compdef weir"),
        ("completions/fish/weir.fish", "complete -c weir"),
        ("man/man1/weir-render.1", ".TH"),
    ] {
        let text = String::from_utf8(archive[path].clone().unwrap()).unwrap();
        assert!(text.contains(part), "{path}");
    }
}

#[test]
fn checksums_name_every_other_file() {
    let files = TestRelease::new().build();
    let sums = String::from_utf8(files["checksums.txt"].clone()).unwrap();
    let others = files.iter().filter(|(name, _)| *name != "checksums.txt");
    let line =
        |(name, content): (&String, &Vec<u8>)| format!("{}  {name}\n", hex::encode(Sha256::digest(content)));
    assert_eq!(sums, others.map(line).collect::<String>());
}

#[test]
fn manifests_have_the_images_of_the_release() {
    let files = TestRelease::new().build();
    let text = String::from_utf8(files["install.yaml"].clone()).unwrap();
    for name in install::available() {
        let image = format!(
            "image: registry.example.com/weir/{name}:v{}",
            env!("CARGO_PKG_VERSION")
        );
        assert!(text.contains(&image), "{image}");
    }
    let schemas = unpack(&files["crd-schemas.tar.gz"]);
    assert!(schemas.contains_key("all.json") && schemas.contains_key("gitrepository-source-v1.json"));
}

#[test]
fn wrong_inputs_are_named() {
    let refused = |change: fn(&mut TestRelease)| {
        let mut work = TestRelease::new();
        change(&mut work);
        let error = format!("{:#}", dist::build(&work.options).unwrap_err());
        assert!(!work.options.out.join("checksums.txt").exists());
        error
    };
    let error = refused(|work| fs::remove_file(work.path("arm/weir")).unwrap());
    assert!(
        error.contains("cannot read") && error.contains("arm/weir"),
        "{error}"
    );
    let error = refused(|work| fs::write(work.path("arm/weir"), program(X86_64, "weir")).unwrap());
    assert!(error.contains("has programs for arm64 and amd64"), "{error}");
    let error = refused(|work| work.options.programs = vec![work.path("arm"), work.path("arm")]);
    assert!(error.contains("the same architecture"), "{error}");
    let error = refused(|work| work.options.weir = Some(work.path("nothing")));
    assert!(error.contains("cannot run"), "{error}");
    let error = refused(|work| work.options.out = work.path("arm"));
    assert!(error.contains("is not empty"), "{error}");
    let error = refused(|work| {
        let mut dynamic = program(X86_64, "");
        dynamic[32..40].copy_from_slice(&64_u64.to_le_bytes());
        dynamic[54..58].copy_from_slice(&[4, 0, 1, 0]);
        dynamic.extend(3_u32.to_le_bytes());
        fs::write(work.path("intel/weir"), dynamic).unwrap();
    });
    assert!(error.contains("needs a dynamic loader"), "{error}");
}
