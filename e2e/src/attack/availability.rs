//! Objects that would hold the shares of all tenants for ever: threads, permits, claims, connections, stored results.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use testkit::{Fault, Manifest, Page, Repo, WebServer, eventually, manifest};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    attacks::{config_map, project},
    tenants::{ATTACKER, HOUR, Tenants, VICTIM},
};
use crate::cluster::TIMEOUT;

/// Objects with the discriminator of the victim, and ServiceAccounts that don't exist.
const CLAIMS: usize = 24;
/// Objects with patterns that match by trying everything.
const PATTERNS: usize = 4;
/// Objects whose Git servers never answer, for the kind that fetches by itself.
const TARPITS: usize = 24;
/// Connections to a Receiver that send a byte and then nothing.
const SLOW_BODIES: usize = 256;
/// Objects with the project and the target of the victim.
const RESULTS: usize = 6;
const RESULTS_NAMESPACE: &str = "kluctl-results";
/// A template that needs more steps than a process has time for.
const ENDLESS: &str = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
/// Templates whose work is a product of two long strings.
const PRODUCTS: [&str; 2] = [
    "{{ ('a'*20000000)|trim(('b'*20000000)~'a') }}",
    "{{ ('a'*20000000).strip(('b'*20000000)~'a') }}",
];

/// Server and connections of the attack, which live as long as it.
pub struct Running {
    index: WebServer,
    slow: Vec<TcpStream>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("slow", &self.slow.len())
            .finish_non_exhaustive()
    }
}

/// Gives the victim a webhook and stored results.
pub async fn victim_begins(tenants: &Tenants) -> Result<()> {
    let plane = &tenants.cluster.plane;
    plane.apply(receiver(VICTIM)).await?;
    plane
        .apply(secret(VICTIM, "webhook", &json!({"token": "of-the-victim"})))
        .await?;
    write_project(
        &tenants.stored,
        "victim-stored",
        &config_map(VICTIM, "stored").to_string(),
    )?;
    let project = json!({"source": {"git": {"url": tenants.stored.url()}}});
    plane.apply(gitops(VICTIM, "stored", project)).await?;
    eventually("the stored result of the victim", TIMEOUT, || async {
        ensure!(!results_of_victim(tenants).await?.is_empty(), "there is none");
        Ok(())
    })
    .await?;
    webhook_of_victim(tenants).await
}

/// Applies everything, with the rights of an administrator of a namespace.
pub async fn start(tenants: &Tenants) -> Result<Running> {
    alert(tenants).await?;
    patterns(tenants).await?;
    templates(tenants).await?;
    tarpits(tenants).await?;
    results(tenants).await?;
    claims(tenants).await?;
    names(tenants).await?;
    let index = index(tenants).await?;
    let slow = slow_bodies(tenants).await?;
    Ok(Running { index, slow })
}

/// Checks that each attack ended, and that the victim noticed nothing.
pub async fn refused(tenants: &Tenants, running: &Running) -> Result<String> {
    webhook_of_victim(tenants)
        .await
        .context("with slow bodies to another Receiver")?;
    for number in 0..PATTERNS {
        let name = format!("pattern-{number}");
        ended(tenants, "KluctlDeployment.gitops.kluctl.io", &name).await?;
    }
    for number in 0..PRODUCTS.len() {
        let name = format!("product-{number}");
        tenants
            .failed("KluctlDeployment", &name, |_, message| !message.contains("panic"))
            .await?;
    }
    let oracle = manifest::alert(VICTIM, "later", "sink", &["GitRepository"]);
    tenants.cluster.plane.apply(oracle).await?;
    eventually("a later Alert of the victim to be Ready", TIMEOUT, || async {
        let object = tenants.of(VICTIM, "Alert", "later").await?;
        let ready = testkit::ready(&object);
        ensure!(ready["status"] == "True", "it is {ready}");
        Ok(())
    })
    .await?;
    let left = results_of_victim(tenants).await?;
    ensure!(!left.is_empty(), "the stored results of the victim are gone");
    let refused = |_: &str, message: &str| {
        ["refused", "not allowed", "denied"]
            .iter()
            .any(|word| message.contains(word))
    };
    tenants.failed("HelmChart", "loot", refused).await?;
    ensure!(
        running
            .index
            .asked()
            .iter()
            .any(|asked| asked.path == "/index.yaml"),
        "the index was not read"
    );
    Ok(format!(
        "{CLAIMS} claims, {PATTERNS} patterns, {} templates, {TARPITS} tarpits, {RESULTS} results, {} slow bodies",
        PRODUCTS.len() + 1,
        running.slow.len()
    ))
}

fn gitops(namespace: &str, name: &str, spec: Value) -> Manifest {
    Manifest::new("gitops.kluctl.io/v1beta1", "KluctlDeployment", namespace, name)
        .spec(json!({"interval": "1h", "timeout": "1m", "prune": true}))
        .spec(spec)
}

/// Pushes a project without targets that deploys an object.
fn write_project(repo: &Repo, discriminator: &str, object: &str) -> Result<()> {
    let change = repo
        .change(discriminator)
        .write(".kluctl.yaml", format!("discriminator: {discriminator}\n"));
    let change = change.write("deployment.yaml", "deployments:\n  - path: objects\n");
    change.write("objects/object.yaml", object).push()?;
    Ok(())
}

pub(super) fn secret(namespace: &str, name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "stringData": data})
}

fn receiver(namespace: &str) -> Manifest {
    Manifest::new(
        "notification.toolkit.fluxcd.io/v1",
        "Receiver",
        namespace,
        "webhook",
    )
    .spec(json!({
        "type": "generic", "secretRef": {"name": "webhook"},
        "resources": [{"kind": "GitRepository", "name": "app"}],
    }))
}

/// Waits until the last generation of an object has an end, good or bad.
async fn ended(tenants: &Tenants, kind: &str, name: &str) -> Result<()> {
    eventually(&format!("the end of {kind} {name}"), 2 * TIMEOUT, || async {
        let object = tenants.of(ATTACKER, kind, name).await?;
        let ready = testkit::ready(&object);
        ensure!(
            ready["status"] == "True" || ready["status"] == "False",
            "it is {ready}"
        );
        Ok(())
    })
    .await
}

/// Patterns of credentials: one of 800 KB, which no schema may accept, and small ones with exponentially many ways to match.
async fn patterns(tenants: &Tenants) -> Result<()> {
    let repo = tenants.cluster.git.repo(&format!("attack-{}", "a".repeat(60)))?;
    write_project(
        &repo,
        "attack-pattern",
        &config_map(ATTACKER, "pattern").to_string(),
    )?;
    let url = repo.url();
    let host = url.split('/').nth(2).context("a host")?.to_owned();
    tenants
        .apply(secret(
            ATTACKER,
            "login",
            &json!({"username": "a", "password": "b"}),
        ))
        .await?;
    let spec = |path: &str| {
        json!({"source": {"git": {"url": url}}, "credentials": {"git": [
            {"host": host, "path": path, "secretRef": {"name": "login"}}]}})
    };
    let long = format!("{}x", "**".repeat(400_000));
    if tenants
        .apply(gitops(ATTACKER, "long-pattern", spec(&long)))
        .await
        .is_ok()
    {
        ended(tenants, "KluctlDeployment.gitops.kluctl.io", "long-pattern").await?;
    }
    let exponential = format!("{}**b", "**a".repeat(12));
    for number in 0..PATTERNS {
        tenants
            .apply(gitops(ATTACKER, &format!("pattern-{number}"), spec(&exponential)))
            .await?;
    }
    Ok(())
}

/// Renders that compare long strings, letter by letter.
async fn templates(tenants: &Tenants) -> Result<()> {
    for (number, template) in PRODUCTS.iter().enumerate() {
        let name = format!("product-{number}");
        let repo = tenants.cluster.git.repo(&format!("attack-{name}"))?;
        let map = config_map(ATTACKER, &name)
            .to_string()
            .replace("attacker\"}", &format!("{template}\"}}"));
        write_project(&repo, &format!("attack-{name}"), &map)?;
        tenants
            .apply(manifest::git_repository(ATTACKER, &name, &repo.url()))
            .await?;
        let deployment = manifest::kluctl_deployment(ATTACKER, &name, &name, ".");
        tenants
            .apply(deployment.spec(json!({"interval": "1h", "retryInterval": "1h", "timeout": "20s"})))
            .await?;
    }
    Ok(())
}

/// An Alert whose messages take for ever. It hears of one object: each message takes all the time that it may have.
async fn alert(tenants: &Tenants) -> Result<()> {
    let alert = manifest::alert(ATTACKER, "endless", "sink", &[])
        .spec(json!({"eventSources": [{"kind": "GitRepository", "name": "product-0"}]}));
    tenants
        .apply(alert.annotation("weir.io/message-template", ENDLESS))
        .await
}

async fn tarpits(tenants: &Tenants) -> Result<()> {
    for number in 0..TARPITS {
        let repo = tenants.cluster.git.repo(&format!("attack-drip-{number}"))?;
        repo.fail(Fault::Hang);
        let spec = json!({"source": {"git": {"url": repo.url()}}, "timeout": format!("{}s", HOUR.as_secs())});
        tenants
            .apply(gitops(ATTACKER, &format!("drip-{number}"), spec))
            .await?;
    }
    Ok(())
}

/// Deployments with the project and the target of the victim, of which results are stored.
async fn results(tenants: &Tenants) -> Result<()> {
    for number in 0..RESULTS {
        let spec = json!({"source": {"git": {"url": tenants.stored.url()}}});
        tenants
            .apply(gitops(ATTACKER, &format!("evict-{number}"), spec))
            .await?;
    }
    Ok(())
}

/// Deployments with the discriminator of the victim, as ServiceAccounts that don't exist.
async fn claims(tenants: &Tenants) -> Result<()> {
    let objects = [config_map(ATTACKER, "claim")];
    let repo = project(tenants, "claim", &[("t", "victim-app")], &objects)?;
    tenants
        .apply(manifest::git_repository(ATTACKER, "claim", &repo.url()))
        .await?;
    for number in 0..CLAIMS {
        let deployment = manifest::kluctl_deployment(ATTACKER, &format!("claim-{number}"), "claim", ".");
        let spec = json!({"interval": "1h", "retryInterval": "1h", "target": "t",
            "serviceAccountName": format!("invented-{number}")});
        tenants.apply(deployment.spec(spec)).await?;
    }
    Ok(())
}

/// Names that lead to objects of the victim, if they are part of a URL.
async fn names(tenants: &Tenants) -> Result<()> {
    let name = format!("../../{VICTIM}/secrets/webhook");
    let spec = json!({"source": {"git": {"url": tenants.stored.url()}}, "credentials": {"git": [
        {"host": "*", "secretRef": {"name": name}}]}});
    if tenants.apply(gitops(ATTACKER, "names", spec)).await.is_ok() {
        ended(tenants, "KluctlDeployment.gitops.kluctl.io", "names").await?;
    }
    let provider = manifest::provider(ATTACKER, "names", "generic", "https://example.com");
    // Refused, or without effect: no request may reach the namespace of the victim.
    let _ = tenants
        .apply(provider.spec(json!({"secretRef": {"name": name}})))
        .await;
    Ok(())
}

/// The index of a Helm repository whose chart is an artifact of the victim, at the address of the source-controller itself.
async fn index(tenants: &Tenants) -> Result<WebServer> {
    let server = WebServer::start()?;
    let storage = tenants
        .cluster
        .find("source-controller")
        .context("no source-controller")?
        .addresses()
        .storage;
    let loot = format!("http://{storage}/gitrepository/{VICTIM}/app/latest.tar.gz");
    let index = json!({"apiVersion": "v1", "entries": {"loot": [{
        "apiVersion": "v2", "name": "loot", "version": "1.0.0", "urls": [loot]}]}});
    server.page("/index.yaml", Page::Content(index.to_string().into()));
    let own = |kind: &str| Manifest::new("source.toolkit.fluxcd.io/v1", kind, ATTACKER, "loot");
    let repository = own("HelmRepository").spec(json!({"interval": "1h", "url": server.url("")}));
    tenants.apply(repository).await?;
    let chart = json!({"interval": "1h", "chart": "loot", "version": "1.0.0",
        "sourceRef": {"kind": "HelmRepository", "name": "loot"}});
    tenants.apply(own("HelmChart").spec(chart)).await?;
    Ok(server)
}

/// Connections to the attacker's own Receiver that promise a body and send a byte of it.
async fn slow_bodies(tenants: &Tenants) -> Result<Vec<TcpStream>> {
    tenants
        .apply(secret(ATTACKER, "webhook", &json!({"token": "of-the-attacker"})))
        .await?;
    tenants.apply(receiver(ATTACKER)).await?;
    let path = webhook_path(tenants, ATTACKER, "webhook").await?;
    let address = receiver_address(tenants)?;
    let mut slow = Vec::with_capacity(SLOW_BODIES);
    for _ in 0..SLOW_BODIES {
        let mut stream = TcpStream::connect(&address).await?;
        let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100000\r\n\r\n{{");
        // A server that has enough of it may close the connection.
        let _ = stream.write_all(head.as_bytes()).await;
        slow.push(stream);
    }
    Ok(slow)
}

pub(super) fn receiver_address(tenants: &Tenants) -> Result<String> {
    let controller = tenants
        .cluster
        .find("notification-controller")
        .context("no notification-controller")?;
    Ok(controller.addresses().receiver.to_string())
}

pub(super) async fn webhook_path(tenants: &Tenants, namespace: &str, name: &str) -> Result<String> {
    eventually("the path of the webhook", TIMEOUT, || async {
        let object = tenants.of(namespace, "Receiver", name).await?;
        let path = object.data.pointer("/status/webhookPath").and_then(Value::as_str);
        Ok(path.context("it has none")?.to_owned())
    })
    .await
}

pub(super) async fn webhook_of_victim(tenants: &Tenants) -> Result<()> {
    let path = webhook_path(tenants, VICTIM, "webhook").await?;
    let client = testkit::http::client(None)?;
    let url = format!("http://{}{path}", receiver_address(tenants)?);
    let request = client.post(url).timeout(Duration::from_secs(10)).body("{}");
    let status = request.send().await?.status().as_u16();
    ensure!(
        status == 200,
        "the webhook of the victim was answered with {status}"
    );
    Ok(())
}

async fn results_of_victim(tenants: &Tenants) -> Result<Vec<Secret>> {
    let secrets: Api<Secret> = Api::namespaced(tenants.cluster.client.clone(), RESULTS_NAMESPACE);
    let results = secrets
        .list(&ListParams::default().labels("kluctl.io/result=true"))
        .await?;
    let is_of_victim = |secret: &Secret| {
        let annotations = secret.metadata.annotations.as_ref();
        let namespace = annotations.and_then(|all| all.get("kluctl.io/result-deployment-namespace"));
        namespace.is_some_and(|namespace| namespace == VICTIM)
    };
    Ok(results.items.into_iter().filter(is_of_victim).collect())
}
