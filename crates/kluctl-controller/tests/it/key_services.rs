//! Encrypted files whose keys are in Vault and in the key services of clouds. One server answers for all of them, and a proxy of the
//! controller's environment leads to it.

use anyhow::{Context as _, Result, ensure};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use testkit::{Authority, Controller, HttpProxy, Page, WebServer};

use crate::fixture::{Fixture, grant, plane};

const FOR_AGE: &str = include_str!("../../../secrets/fixtures/secret.yaml");
/// The data key of that file, as the services decrypt it.
const DATA_KEY: [u8; 32] = [
    69, 183, 196, 202, 65, 230, 98, 245, 218, 229, 5, 66, 182, 9, 206, 61, 18, 234, 159, 120, 107, 54, 155,
    245, 88, 131, 149, 83, 171, 177, 33, 129,
];

/// A service: the list of its keys in a file, a key, the entry of the Secret that opens it, and the expected requests.
struct Service {
    list: &'static str,
    key: Value,
    entry: (&'static str, String),
    asked: (&'static str, &'static str),
}

const HOSTS: [&str; 6] = [
    "vault.example.com",
    "kms.eu-central-1.amazonaws.com",
    "oauth2.googleapis.com",
    "cloudkms.googleapis.com",
    "login.microsoftonline.com",
    "shop.vault.azure.net",
];

fn services() -> [Service; 4] {
    let google = json!({
        "type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r",
        "token_uri": "https://oauth2.googleapis.com/token",
    });
    [
        Service {
            list: "hc_vault",
            key: json!({
                "vault_address": "https://vault.example.com", "engine_path": "transit", "key_name": "shop",
                "enc": "vault:v1:AAAA",
            }),
            entry: ("sops.vault-token", "tok".to_owned()),
            asked: ("vault.example.com:443", "/v1/transit/decrypt/shop"),
        },
        Service {
            list: "kms",
            key: json!({ "arn": "arn:aws:kms:eu-central-1:1:key/shop", "enc": "AAAA", "aws_profile": "" }),
            entry: (
                "sops.aws-kms",
                "aws_access_key_id: AKIA\naws_secret_access_key: s3cret\n".to_owned(),
            ),
            asked: ("kms.eu-central-1.amazonaws.com:443", "/"),
        },
        Service {
            list: "gcp_kms",
            key: json!({ "resource_id": "projects/p/locations/global/keyRings/r/cryptoKeys/k", "enc": "AAAA" }),
            entry: ("sops.gcp-kms", google.to_string()),
            asked: (
                "cloudkms.googleapis.com:443",
                "/v1/projects/p/locations/global/keyRings/r/cryptoKeys/k:decrypt",
            ),
        },
        Service {
            list: "azure_kv",
            key: json!({ "vault_url": "https://shop.vault.azure.net", "name": "k", "version": "v1", "enc": "AAAA" }),
            entry: (
                "sops.azure-kv",
                "tenantId: t\nclientId: c\nclientSecret: s3cret\n".to_owned(),
            ),
            asked: ("shop.vault.azure.net:443", "/keys/k/v1/decrypt?api-version=7.4"),
        },
    ]
}

/// Starts the server of all services.
fn server() -> Result<WebServer> {
    let server = WebServer::start_tls(Authority::new(&HOSTS)?)?;
    let key = BASE64_STANDARD.encode(DATA_KEY);
    let pages = [
        (
            "/v1/transit/decrypt/shop",
            json!({ "data": { "plaintext": key } }),
        ),
        ("/", json!({ "Plaintext": key })),
        ("/token", json!({ "access_token": "tok", "expires_in": 60 })),
        (
            "/v1/projects/p/locations/global/keyRings/r/cryptoKeys/k:decrypt",
            json!({ "plaintext": key }),
        ),
        ("/t/oauth2/v2.0/token", json!({ "access_token": "tok" })),
        (
            "/keys/k/v1/decrypt",
            json!({ "value": BASE64_URL_SAFE_NO_PAD.encode(DATA_KEY) }),
        ),
    ];
    for (path, page) in pages {
        server.page(path, Page::Content(page.to_string().into()));
    }
    Ok(server)
}

/// Returns the encrypted file with this list of keys.
fn file(list: &str, keys: &Value) -> Result<String> {
    let (before, rest) = FOR_AGE.split_once("    age:\n").context("the keys")?;
    let (_, after) = rest
        .split_once("    lastmodified:")
        .context("the end of the keys")?;
    Ok(format!("{before}    {list}: {keys}\n    lastmodified:{after}"))
}

#[tokio::test]
async fn keys_of_vault_and_of_clouds_open_files_and_others_are_refused() -> Result<()> {
    let (server, proxy) = (server()?, HttpProxy::start("me", "pw")?);
    let address = server
        .url("")
        .trim_start_matches("https://")
        .trim_end_matches('/')
        .to_owned();
    for host in HOSTS {
        proxy.route(&format!("{host}:443"), &address);
    }
    let dir = tempfile::tempdir()?;
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, server.ca_pem())?;
    let plane = plane().await?;
    let namespace = plane.namespace("key-services").await?;
    let kubeconfig = plane.service_account_kubeconfig(&namespace, "controller").await?;
    grant(plane, &namespace, "controller", &namespace).await?;
    let controller = Controller::named("kluctl-controller")
        .run_by(&kubeconfig)
        .namespace(&namespace)
        .flag("--watch-all-namespaces=false")
        // HTTPS_PROXY would apply to the API server, too.
        .env("ALL_PROXY", &proxy.url().replace("http://", "http://me:pw@"))
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("SSL_CERT_FILE", ca.to_str().context("a path")?)
        .start()
        .await?;
    let fixture = Fixture::of(plane, &namespace, namespace.clone(), controller).await?;

    let decryption = json!({ "provider": "sops", "secretRef": { "name": "keys" } });
    let spec = json!({ "interval": "1s", "retryInterval": "1s", "decryption": decryption });
    let first = fixture.encrypted(FOR_AGE);
    let source = fixture.source("shop", &first).await?;
    fixture
        .secret("keys", json!({ "sops.vault-token": "wrong" }))
        .await?;
    fixture.deploy("shop", spec).await?;
    fixture.says("shop", "no key opens the file").await?;
    for (number, service) in services().iter().enumerate() {
        let secret = json!({ (service.entry.0): service.entry.1 });
        fixture.secret("keys", secret).await?;
        let mut files = fixture.encrypted(&file(service.list, &json!([service.key]))?);
        // A value that no other service has deployed.
        for (_, text) in &mut files {
            *text = text.replace(
                "{{ stringData.password }}",
                &format!("{{{{ stringData.password }}}}{number}"),
            );
        }
        source.offer(&files).await?;
        fixture.holds("a", &format!("hunter2{number}")).await?;
        let (host, path) = service.asked;
        ensure!(
            proxy.asked().iter().any(|asked| asked == host),
            "{:?}",
            proxy.asked()
        );
        ensure!(
            server.asked().iter().any(|asked| asked.path == path),
            "{:?}",
            server.asked()
        );
    }
    ensure!(!fixture.controller.log().contains("s3cret"));

    // A key of a service that is not known, and no key at all.
    let unknown = json!([{ "key_id": "region:k", "enc": "AAAA" }]);
    source
        .offer(&fixture.encrypted(&file("hckms", &unknown)?))
        .await?;
    fixture
        .says("shop", "keys of Huawei Cloud are not supported")
        .await?;
    source
        .offer(&fixture.encrypted(&file("kms", &json!([]))?))
        .await?;
    fixture.says("shop", "no keys found in file").await?;
    Ok(())
}
