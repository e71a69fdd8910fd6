//! Encrypted files and Secrets.

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};
use serde_json::json;
use testkit::web::Page;

use crate::fixture::{AGE_FILE, Fixture, encrypted_for_vault, server};

const AGE_KEY: &str = include_str!("../../../secrets/fixtures/age.txt");
/// A key that decrypts nothing.
const OTHER_AGE_KEY: &str = "AGE-SECRET-KEY-1QYPQXPQ9QCRSSZG2PVXQ6RS0ZQG3YYC5Z5TPWXQERGD3C8G7RUSQGPQYEE";
/// The data key of [`AGE_FILE`] in base64.
const DATA_KEY: &str = "RbfEykHmYvXa5QVCtgnOPRLqn3hrNpv1WIOVU6uxIYE=";

/// A08, A09: values of Secrets and files of generators are decrypted, with the key of the Secret or of the controller. The same
/// files again change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_decrypted() -> Result<()> {
    let fixture = Fixture::new("decryption", &["--sops-age-secret=global"]).await?;
    let key = |name: &str, entry: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": fixture.namespace },
            "stringData": { entry: AGE_KEY },
        })
    };
    fixture.plane.apply(key("keys", "a.agekey")).await?;
    fixture.plane.apply(key("global", "a.agekey")).await?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "plain" },
        "data": { "s.yaml": STANDARD.encode(AGE_FILE) },
    });
    let kustomization = "resources: [secret.yaml]\nsecretGenerator: [{ name: made, files: [s.yaml] }]\n\
                         generatorOptions: { disableNameSuffixHash: true }\n";
    let files = [
        ("kustomization.yaml", kustomization.to_owned()),
        ("s.yaml", AGE_FILE.to_owned()),
        ("secret.yaml", secret.to_string()),
    ];
    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    for (name, decryption) in [
        (
            "own",
            json!({ "provider": "sops", "secretRef": { "name": "keys" } }),
        ),
        ("shared", json!({ "provider": "sops" })),
    ] {
        let revision = fixture.offer(name, &files).await?;
        let prefix = format!("{name}-");
        fixture
            .deploy(name, json!({ "decryption": decryption, "namePrefix": prefix }))
            .await?;
        fixture.applied(name, &revision).await?;
        for secret in ["plain", "made"] {
            let found = secrets.get(&format!("{name}-{secret}")).await?;
            let content = &found.data.unwrap()["s.yaml"].0;
            assert!(content.ends_with(b"password: hunter2\n"), "{name} {secret}");
        }
    }
    let versions = async || -> Result<Vec<Option<String>>> {
        let (plain, made) = tokio::try_join!(secrets.get("own-plain"), secrets.get("own-made"))?;
        Ok(vec![plain.resource_version(), made.resource_version()])
    };
    let before = versions().await?;
    let again = fixture.offer("own", &files).await?;
    fixture.applied("own", &again).await?;
    assert_eq!(versions().await?, before);
    // The key of the controller would decrypt the files, but the object names another one.
    let other = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": fixture.namespace },
        "stringData": { "a.agekey": OTHER_AGE_KEY },
    });
    fixture.plane.apply(other).await?;
    let changed: Vec<_> = files
        .iter()
        .cloned()
        .chain([("note.txt", "changed".to_owned())])
        .collect();
    fixture.offer("own", &changed).await?;
    let failed = fixture.ready("own", "False", "BuildFailed").await?;
    let message = crate::fixture::condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("decrypt"), "{message}");
    let told = crate::fixture::messages(&fixture, "own").await?;
    assert!(
        !told.iter().any(|message| message.contains("configured")),
        "{told:?}"
    );
    let missing = json!({ "decryption": { "provider": "sops", "secretRef": { "name": "no-keys" } } });
    fixture.edit("own", missing).await?;
    let failed = fixture.ready("own", "False", "BuildFailed").await?;
    let message = crate::fixture::condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("cannot get sops decryption Secret"), "{message}");
    Ok(())
}

/// A07: age, PGP and Vault; whole objects, files and env files of generators, values of Secrets with the credentials of registries.
#[tokio::test(flavor = "multi_thread")]
async fn keys_and_formats_of_all_kinds_are_decrypted() -> Result<()> {
    let fixture = Fixture::new("decrypting", &["--allow-addresses=127.0.0.1"]).await?;
    let answer = json!({ "data": { "plaintext": DATA_KEY } }).to_string();
    server().page("/v1/transit/decrypt/vault", Page::Content(answer.into()));
    fixture
        .plane
        .apply(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": fixture.namespace },
            "stringData": {
                "a.agekey": AGE_KEY, "b.asc": include_str!("../../../secrets/fixtures/rsa.asc"), "sops.vault-token": "token",
            },
        }))
        .await?;
    let registry = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "registry" },
        "type": "kubernetes.io/dockerconfigjson",
        "data": { ".dockerconfigjson": STANDARD.encode(include_str!("../../../secrets/fixtures/notes.json")) },
    });
    let kustomization = "resources: [age.yaml, vault.yaml, registry.yaml]\ncomponents: [part]\n\
                         generatorOptions: { disableNameSuffixHash: true }\n\
                         secretGenerator: [{ name: files, files: [rsa.yaml, shop.ini, blob.bin] }]\n";
    let part = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n\
                generatorOptions: { disableNameSuffixHash: true }\n\
                secretGenerator: [{ name: env, envs: [shop.env] }]\nconfigMapGenerator: [{ name: env, envs: [shop.env] }]\n";
    let files = [
        ("kustomization.yaml", kustomization.to_owned()),
        ("age.yaml", AGE_FILE.replace("name: shop", "name: age")),
        (
            "vault.yaml",
            encrypted_for_vault("vault", 1)?.replace("name: shop", "name: vault"),
        ),
        ("registry.yaml", registry.to_string()),
        (
            "rsa.yaml",
            include_str!("../../../secrets/fixtures/rsa.yaml").to_owned(),
        ),
        (
            "shop.ini",
            include_str!("../../../secrets/fixtures/shop.ini").to_owned(),
        ),
        (
            "blob.bin",
            include_str!("../../../secrets/fixtures/blob.bin").to_owned(),
        ),
        ("part/kustomization.yaml", part.to_owned()),
        (
            "part/shop.env",
            include_str!("../../../secrets/fixtures/shop.env").to_owned(),
        ),
    ];
    let revision = fixture.offer("shop", &files).await?;
    fixture
        .deploy(
            "shop",
            json!({ "decryption": { "provider": "sops", "secretRef": { "name": "keys" } } }),
        )
        .await?;
    fixture.applied("shop", &revision).await?;

    let secrets: Api<Secret> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let clear: [(&str, &str, &[u8]); 7] = [
        ("age", "password", b"hunter2"),
        ("vault", "password", b"hunter2"),
        (
            "files",
            "rsa.yaml",
            include_bytes!("../../../secrets/fixtures/secret.yaml.clear"),
        ),
        (
            "files",
            "shop.ini",
            include_bytes!("../../../secrets/fixtures/shop.ini.clear"),
        ),
        (
            "files",
            "blob.bin",
            include_bytes!("../../../secrets/fixtures/blob.bin.clear"),
        ),
        ("env", "PASSWORD", b"a b=c\\nd"),
        (
            "registry",
            ".dockerconfigjson",
            include_bytes!("../../../secrets/fixtures/notes.json.clear"),
        ),
    ];
    for (secret, key, expected) in clear {
        let data = secrets.get(secret).await?.data.unwrap_or_default();
        let found = data.get(key).map(|value| value.0.as_slice());
        assert_eq!(found, Some(expected), "{secret} {key}");
    }
    let map = fixture.maps().get("env").await?.data.unwrap_or_default();
    assert_eq!(map.get("USER").map(String::as_str), Some("shop"));
    Ok(())
}
