//! Random kubeconfigs: no panic, no refused field gets in, and no secret in an error.

use serde_json::{Value, json};
use testkit::fuzz::{self, Random};

use super::{client, user_config};

const SECRET: &str = "s3cr3t";
const WORDS: &[&str] = &[
    "clusters",
    "users",
    "contexts",
    "cluster",
    "user",
    "context",
    "name",
    "c",
    "k",
    "u",
    "current-context",
    "server",
    "token",
    "tokenFile",
    "token-file",
    "exec",
    "auth-provider",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "proxy-url",
    "as",
    "as-groups",
    "username",
    "password",
    "command",
    "namespace",
    "extensions",
    "preferences",
    "apiVersion",
    "v1",
    "true",
    "/etc/passwd",
    "https://10.0.0.1:6443",
    "http://[::1",
    "https://s3cr3t:s3cr3t@h",
    "czNjcjN0",
    "s3cr3t",
    "-----BEGIN CERTIFICATE-----\ns3cr3t",
    "tls-server-name",
    "disable-compression",
];
const REFUSED: &[(&str, &str)] = &[
    ("user", "exec"),
    ("user", "auth-provider"),
    ("user", "tokenFile"),
    ("user", "client-certificate"),
    ("user", "client-key"),
    ("user", "as"),
    ("cluster", "certificate-authority"),
    ("cluster", "proxy-url"),
];

fn kubeconfig(random: &mut Random) -> Value {
    let mut config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": SECRET}}],
    });
    let (list, field) = *random.pick(&[("users", "user"), ("clusters", "cluster")]);
    let key = *random.pick(WORDS);
    let value = if random.flag() {
        random.json(WORDS)
    } else {
        (*random.pick(WORDS)).into()
    };
    if random.flag() {
        config[list][0][field][key] = value;
    }
    random.damage_json(&mut config, WORDS, 3);
    config
}

#[test]
fn fuzz_kubeconfigs() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    fuzz::run("kubeconfigs", |random| {
        let config = kubeconfig(random);
        let mut text = config.to_string().into_bytes();
        if random.one_in(4) {
            random.damage(&mut text, 4);
        }
        random.note("kubeconfig", &String::from_utf8_lossy(&text));
        let used = runtime.block_on(async { user_config(&text).await.and_then(client) });
        match used {
            Err(error) => {
                // Errors contain the user's names, never values.
                let shown = format!("{error} {error:?}");
                let named = ["users", "clusters"].iter().any(|list| {
                    let names = config[*list].as_array().into_iter().flatten();
                    names
                        .map(|one| one["name"].to_string())
                        .any(|name| name.contains(SECRET))
                });
                assert!(
                    named || !shown.contains(SECRET) || String::from_utf8_lossy(&text) != config.to_string(),
                    "{shown}"
                );
            }
            Ok(_) if text == config.to_string().into_bytes() => {
                for (kind, field) in REFUSED {
                    let given = config[format!("{kind}s")].as_array().into_iter().flatten();
                    let set = given
                        .map(|one| &one[*kind][*field])
                        .find(|value| !value.is_null());
                    assert!(set.is_none(), "{field} is let in: {set:?}");
                }
            }
            Ok(_) => {}
        }
    });
}
