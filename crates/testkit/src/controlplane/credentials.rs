//! Credentials of a control plane: its certificate authority, the tokens of its users, and their kubeconfigs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::process::write_private;
use crate::tls::{Authority, key_pair};

/// Name of the context in each kubeconfig of a control plane.
pub const CONTEXT: &str = "weir";

struct User {
    name: &'static str,
    user: &'static str,
    group: &'static str,
}

const USERS: [User; 4] = [
    User {
        name: "admin",
        user: "admin",
        group: "system:masters",
    },
    User {
        name: "kube-controller-manager",
        user: "system:kube-controller-manager",
        group: "system:masters",
    },
    User {
        name: "kube-scheduler",
        user: "system:kube-scheduler",
        group: "system:authenticated",
    },
    User {
        name: "kwok",
        user: "system:kwok",
        group: "system:masters",
    },
];

#[derive(Debug)]
pub(crate) struct Credentials {
    dir: PathBuf,
}

impl Credentials {
    pub(crate) fn create(dir: &Path, server: &str) -> Result<Self> {
        let this = Self { dir: dir.to_owned() };
        fs::create_dir_all(this.pki(""))?;
        fs::create_dir_all(dir.join("kubeconfig"))?;
        let authority = Authority::new(&["127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"])?;
        write_private(this.pki("ca.pem"), &authority.ca_pem)?;
        write_private(this.pki("server.pem"), &authority.server_pem)?;
        write_private(this.pki("server.key"), &authority.server_key_pem)?;
        let (private_key, public_key) = key_pair()?;
        write_private(this.pki("service-accounts.key"), private_key)?;
        write_private(this.pki("service-accounts.pub"), public_key)?;
        let mut tokens = String::new();
        for User { name, user, group } in USERS {
            let token = uuid::Uuid::new_v4().simple().to_string();
            tokens += &format!("{token},{user},{name},\"{group}\"\n");
            write_private(
                this.kubeconfig(name),
                this.kubeconfig_for(server, "default", &token)?,
            )?;
        }
        write_private(this.pki("tokens.csv"), tokens)?;
        Ok(this)
    }

    pub(crate) fn open(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn pki(&self, file: &str) -> PathBuf {
        self.dir.join("pki").join(file)
    }

    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.dir.join("kubeconfig").join(user)
    }

    pub(crate) fn token(&self, name: &str) -> PathBuf {
        self.dir.join("pki").join(format!("{name}.token"))
    }

    pub(crate) fn kubeconfig_for(&self, server: &str, namespace: &str, token: &str) -> Result<String> {
        use base64::Engine as _;
        let ca = fs::read(self.pki("ca.pem"))
            .context("can't read the certificate authority of the control plane")?;
        let ca = base64::engine::general_purpose::STANDARD.encode(ca);
        Ok(format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {CONTEXT}\n\
             clusters:\n- name: weir\n  cluster:\n    server: {server}\n    certificate-authority-data: {ca}\n\
             contexts:\n- name: {CONTEXT}\n  context:\n    cluster: weir\n    user: weir\n    namespace: {namespace}\n\
             users:\n- name: weir\n  user:\n    token: {token}\n"
        ))
    }
}
