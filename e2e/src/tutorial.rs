//! docs/tutorial.md, played as a reader would: on two clusters, with a Git server, and with the real programs.

pub mod page;
mod session;
pub mod tenants;

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::{
    ControlPlane, GitServer, Options,
    controller::{Launch, find_program},
};

pub use session::Session;

/// Contexts of the page, one for each cluster.
const CONTEXTS: [&str; 2] = ["staging", "production"];
const SERVER: &str = "https://git.example.com";
/// Repositories of the page, with the user and the token that may read and write them.
const REPOSITORIES: [(&str, &str, &str); 3] = [
    ("platform/fleet", "bot", "fleet-token"),
    ("team-a/apps", "team-a", "team-a-token"),
    ("team-b/apps", "team-b", "team-b-token"),
];

#[derive(Debug)]
pub struct Tutorial {
    pub staging: ControlPlane,
    pub production: ControlPlane,
    pub session: Session,
    git: GitServer,
}

impl Tutorial {
    /// Starts two clusters without controllers, and a Git server with empty repositories.
    pub async fn start() -> Result<Self> {
        let (staging, production) = tokio::try_join!(
            ControlPlane::start(Options::default()),
            ControlPlane::start(Options::default()),
        )?;
        let git = GitServer::start_tls()?;
        for (name, user, token) in REPOSITORIES {
            git.repo(name)?.require_basic_auth(user, token);
        }
        let session = Session::new(&[
            ("weir", &find_program("weir")?),
            ("kubectl", production.kubectl_program()),
        ])?;
        fs::write(session.certificates(), git.ca_pem())?;
        session.log_in(&git.origin(), &REPOSITORIES)?;
        let kubeconfig = kubeconfig(&[&staging, &production]).await?;
        fs::write(session.kubeconfig(), kubeconfig.to_string())?;
        Ok(Self {
            staging,
            production,
            session,
            git,
        })
    }

    /// Lets a controller trust the Git server.
    pub fn adapt(&self, launch: Launch) -> Launch {
        let certificates = self.session.certificates();
        launch.env("SSL_CERT_FILE", &certificates.to_string_lossy())
    }

    /// Runs all commands of a page, and compares their output with the page.
    pub async fn play(&self, page: &str) -> Result<()> {
        let steps = page::steps(page)?;
        ensure!(!steps.is_empty(), "the page has no commands");
        for step in &steps {
            let commands = step.commands.replace(SERVER, &self.git.origin());
            let (is_done, printed) = self.session.run(&commands).await?;
            let commands = step.commands.trim_end();
            let line = step.line;
            ensure!(is_done, "line {line} of the page failed:\n{commands}\n{printed}");
            if let Some(missing) = page::missing(&step.shown, &printed) {
                anyhow::bail!(
                    "line {line} of the page: no {missing:?} in the output of\n{commands}\n{printed}"
                );
            }
        }
        Ok(())
    }

    pub fn stop(self) -> Result<()> {
        self.staging.stop()?;
        self.production.stop()
    }
}

/// Returns a kubeconfig with a context for each cluster.
async fn kubeconfig(planes: &[&ControlPlane; 2]) -> Result<Value> {
    let (mut clusters, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, plane) in CONTEXTS.into_iter().zip(planes) {
        let words = ["config", "view", "--raw", "-o", "json"];
        let read: Value = serde_json::from_str(&plane.kubectl(&words).await?)?;
        let first = |list: &str, field: &str| {
            let found = read.pointer(&format!("/{list}/0/{field}"));
            found
                .cloned()
                .with_context(|| format!("the kubeconfig has no {field}"))
        };
        clusters.push(json!({"name": name, "cluster": first("clusters", "cluster")?}));
        users.push(json!({"name": name, "user": first("users", "user")?}));
        contexts.push(json!({"name": name, "context": {"cluster": name, "user": name}}));
    }
    Ok(json!({
        "apiVersion": "v1", "kind": "Config", "clusters": clusters, "users": users, "contexts": contexts,
    }))
}
