//! Images and artifacts, in layouts and in a registry.

use std::collections::BTreeMap;

use dist::{INDEX, Layout, MANIFEST, SigningKey};
use oci::{
    Access, Client, Digest, Limits, Reference, Registry as Repository, Wanted,
    cosign::{self, PublicKey, Trust, Verdict},
};
use serde_json::{Value, json};
use testkit::{Registry, registry::Login};

use crate::support::{AARCH64, CERTIFICATES, TestRelease, X86_64, is_program, key_pair, names, unpack};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn layout(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Layout {
    Layout::read(&files[&format!("{name}_{VERSION}.oci.tar")]).unwrap()
}

fn digest(value: &Value) -> &str {
    value["digest"].as_str().unwrap()
}

#[test]
fn images_have_the_program_certificates_and_a_user() {
    let files = TestRelease::new().build();
    for name in names() {
        let layout = layout(&files, name);
        assert_eq!(layout.tag, format!("v{VERSION}"));
        let index = layout.json(&layout.root).unwrap();
        assert_eq!(index["mediaType"], INDEX);
        let images = index["manifests"].as_array().unwrap();
        assert_eq!(images.len(), 2);
        for (image, (architecture, machine)) in images.iter().zip([("amd64", X86_64), ("arm64", AARCH64)]) {
            let platform = json!({ "architecture": architecture, "os": "linux" });
            assert_eq!(image["platform"], platform);
            let manifest = layout.json(digest(image)).unwrap();
            assert_eq!(manifest["mediaType"], MANIFEST);
            assert_eq!(
                manifest["annotations"]["org.opencontainers.image.revision"],
                "5c0ffee"
            );
            let config = layout.json(digest(&manifest["config"])).unwrap();
            assert_eq!(config["architecture"], architecture);
            assert_eq!(config["created"], "2023-11-14T22:13:20Z");
            assert_eq!(config["config"]["User"], "65532:65532");
            assert_eq!(
                config["config"]["Entrypoint"],
                json!([format!("/usr/local/bin/{name}")])
            );
            let layer = layout.blob(digest(&manifest["layers"][0])).unwrap();
            let mut unpacked = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(layer), &mut unpacked).unwrap();
            let layers = json!([Digest::of(&unpacked).to_string()]);
            assert_eq!(config["rootfs"]["diff_ids"], layers);
            let root = unpack(layer);
            let content = root[&format!("usr/local/bin/{name}")].as_ref().unwrap();
            assert!(is_program(content, machine, name));
            assert_eq!(
                root["etc/ssl/certs/ca-certificates.crt"].as_deref(),
                Some(CERTIFICATES.as_bytes())
            );
            let passwd = String::from_utf8(root["etc/passwd"].clone().unwrap()).unwrap();
            assert!(passwd.contains(":65532:65532:"), "{passwd}");
            assert_eq!(root["tmp/"], None);
        }
    }
}

#[test]
fn changed_layouts_are_refused() {
    let work = TestRelease::new();
    let mut tarball = work.build()[&format!("manifests_{VERSION}.oci.tar")].clone();
    let blob = tarball.windows(6).rposition(|bytes| bytes == b"layers").unwrap();
    tarball[blob] = b'L';
    let error = Layout::read(&tarball).unwrap_err().to_string();
    assert!(error.contains("has the digest"), "{error}");
    assert!(Layout::read(b"no tarball").is_err());
    assert!(
        Layout::read(&[])
            .unwrap_err()
            .to_string()
            .contains("no index.json")
    );
}

fn client() -> Client {
    let access = Access {
        plain_http: true,
        ..Access::default()
    };
    Client::new(access, Limits::default(), net::AddressPolicy::command_line()).unwrap()
}

#[tokio::test]
async fn a_registry_has_what_was_pushed() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let work = TestRelease::new();
    let files = work.build();
    let path = format!("{}/org/weir", registry.host());
    let client = client();
    let pushed = dist::push(&client, &work.options.out, &path, None).await.unwrap();
    assert_eq!(pushed.len(), names().len() + 2);
    assert_eq!(
        dist::push(&client, &work.options.out, &path, None).await.unwrap(),
        pushed
    );
    let repository = |name: &str| {
        let reference = Reference::parse(&format!("{path}/{name}")).unwrap();
        Repository::new(&client, reference)
    };
    for name in names() {
        let layout = layout(&files, name);
        let reference = format!("{path}/{name}:v{VERSION}@{}", layout.root);
        assert!(pushed.contains(&reference), "{pushed:?}");
        let image = layout.json(&layout.root).unwrap()["manifests"][0].clone();
        let wanted = Wanted::Digest(Digest::parse(digest(&image)).unwrap());
        let manifest = repository(name).manifest(&wanted).await.unwrap();
        let layer = &manifest.layers[0];
        let pulled = repository(name).blob(layer, layer.size).await.unwrap();
        assert_eq!(layout.blob(&layer.digest.to_string()).unwrap(), pulled);
        // A container engine chooses the image of its architecture from the index.
        let url = format!(
            "http://{}/v2/org/weir/{name}/manifests/v{VERSION}",
            registry.host()
        );
        let request = reqwest::Client::new().get(url).header("Accept", INDEX);
        let index = request.send().await.unwrap().bytes().await.unwrap();
        assert_eq!(Digest::of(&index).to_string(), layout.root);
    }
    let manifests = repository("manifests");
    let tag = Wanted::Tag(format!("v{VERSION}"));
    let manifest = manifests.manifest(&tag).await.unwrap();
    let layer = &manifest.layers[0];
    assert_eq!(layer.media_type, "application/vnd.cncf.flux.content.v1.tar+gzip");
    let pulled = manifests.blob(layer, layer.size).await.unwrap();
    assert_eq!(
        unpack(&pulled)["install.yaml"].as_ref(),
        Some(&files["install.yaml"])
    );
    let chart = repository("charts/weir")
        .chart(&Wanted::Tag(VERSION.to_owned()))
        .await
        .unwrap();
    let tree = chart.tree(&tree::Budget::default()).unwrap();
    let metadata = tree::Tree::read(&tree, &tree::TreePath::parse("Chart.yaml").unwrap()).unwrap();
    assert!(String::from_utf8_lossy(&metadata).contains("name: weir\n"));
}

#[tokio::test]
async fn signatures_by_a_key_are_those_of_cosign() {
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    let work = TestRelease::new();
    work.build();
    let path = format!("{}/org/weir", registry.host());
    let (client, pair, other) = (client(), key_pair(), key_pair());
    let key = SigningKey::from_pem(&pair.serialize_pem()).unwrap();
    let pushed = dist::push(&client, &work.options.out, &path, Some(&key))
        .await
        .unwrap();
    for reference in pushed {
        let reference = Reference::parse(&reference).unwrap();
        let Wanted::Digest(digest) = reference.wanted() else {
            panic!("{reference} has no digest");
        };
        let repository = Repository::new(&client, reference);
        for (pair, is_signer) in [(&pair, true), (&other, false)] {
            let public = [PublicKey::from_pem(pair.public_key_pem().as_bytes()).unwrap()];
            let verdict = cosign::verify(&repository, &digest, &Trust::Keys(&public)).await;
            assert_eq!(verdict.unwrap() == Verdict::Signed, is_signer);
        }
    }
}
