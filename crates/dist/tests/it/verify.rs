//! The commands of docs/verify.md.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use dist::SigningKey;
use oci::{Access, Client, Limits};
use testkit::{Registry, registry::Login};

use crate::support::{TestRelease, key_pair, root};

/// The block that sets the variables of a reader, which the test sets itself.
const VARIABLES: &str = "VERSION=";

fn blocks() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/verify.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn run(script: &str, dir: &Path, host: &str, path: &str) -> Output {
    let weir = testkit::controller::find_program("weir").unwrap();
    let folder = weir.parent().unwrap().display();
    let inherited = std::env::var("PATH").unwrap();
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(dir)
        .env("PATH", format!("{folder}:{inherited}"))
        .env("VERSION", env!("CARGO_PKG_VERSION"))
        .env("ARCH", "amd64")
        .env("REGISTRY", path)
        .env("REGISTRY_URL", format!("http://{host}"))
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap()
}

#[tokio::test]
async fn commands_of_the_page_accept_a_release_and_refuse_a_changed_one() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let path = format!("{}/org/weir", registry.host());
    let mut work = TestRelease::new();
    work.options.release.registry.clone_from(&path);
    work.build();
    let access = Access {
        plain_http: true,
        ..Access::default()
    };
    let client = Client::new(access, Limits::default(), net::AddressPolicy::command_line()).unwrap();
    let dir = &work.options.out;
    let pair = key_pair();
    let key = SigningKey::from_pem(&pair.serialize_pem()).unwrap();
    dist::push(&client, dir, &path, Some(&key)).await.unwrap();
    assert_eq!(dist::sign_checksums(&key, dir).unwrap(), "checksums.txt.sig");
    fs::write(dir.join("weir.pub"), pair.public_key_pem()).unwrap();
    let all = blocks();
    assert!(all[0].starts_with(VARIABLES));
    let script = all[1..].join("\n");
    let output = run(&script, dir, &registry.host(), &path);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for (file, block) in [
        (dir.join("install.yaml"), "sha256sum --check --ignore-missing"),
        (dir.join("checksums.txt"), "openssl dgst"),
        (dir.join("install.yaml"), "weir install --export"),
        (dir.join("layout/index.json"), "digest=$(sed"),
    ] {
        let before = fs::read_to_string(&file).unwrap();
        let changed = before.replacen("sha256:", "sha256:0", 1) + "#\n";
        fs::write(&file, changed).unwrap();
        let block = all.iter().find(|text| text.contains(block)).unwrap();
        let output = run(block, dir, &registry.host(), &path);
        assert!(!output.status.success(), "{block}");
        fs::write(&file, before).unwrap();
    }
}

#[test]
fn other_commands_of_the_page_are_said_to_be_untried() {
    let page = fs::read_to_string(root().join("docs/verify.md")).unwrap();
    assert!(page.contains("The commands after a `$` are **untried**"));
    let mut kind = "";
    for line in page.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            kind = fence;
            assert!(["", "sh", "console"].contains(&kind), "{line}");
        } else if !kind.is_empty() {
            assert_eq!(line.starts_with("$ "), kind == "console", "{line}");
        }
    }
}
