//! The command lines of the five programs.

use std::{net::SocketAddr, path::Path, process::Command};

use super::{binaries::Binaries, credentials::Credentials};

/// The file that says where forwarded ports lead.
pub(crate) const FORWARDS: &str = "port-forward.yaml";

pub(crate) struct Setup<'a> {
    pub(crate) binaries: &'a Binaries,
    pub(crate) credentials: &'a Credentials,
    pub(crate) dir: &'a Path,
    pub(crate) etcd: SocketAddr,
    pub(crate) etcd_peer: SocketAddr,
    pub(crate) api: SocketAddr,
}

impl Setup<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.path(program));
        // Nothing of the user's own settings is read or written.
        command
            .env("HOME", self.dir.join("tmp"))
            .env_remove("KUBECONFIG")
            .current_dir(self.dir);
        command
    }

    pub(crate) fn etcd(&self) -> Command {
        let (client, peer) = (
            format!("http://{}", self.etcd),
            format!("http://{}", self.etcd_peer),
        );
        let mut command = self.command("etcd");
        command
            // Its content is thrown away with the plane, so it needn't survive a power cut.
            .arg("--unsafe-no-fsync")
            .arg(format!("--data-dir={}", self.dir.join("etcd").display()))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=default={peer}"))
            .arg("--log-level=warn");
        command
    }

    pub(crate) fn api_server(&self) -> Command {
        let pki = |file: &str| self.credentials.pki(file).display().to_string();
        let mut command = self.command("kube-apiserver");
        command
            .arg(format!("--etcd-servers=http://{}", self.etcd))
            .arg("--bind-address=127.0.0.1")
            .arg("--advertise-address=127.0.0.1")
            .arg(format!("--secure-port={}", self.api.port()))
            .arg(format!("--cert-dir={}", self.dir.join("tmp").display()))
            .arg(format!("--tls-cert-file={}", pki("server.pem")))
            .arg(format!("--tls-private-key-file={}", pki("server.key")))
            .arg(format!("--token-auth-file={}", pki("tokens.csv")))
            .arg(format!(
                "--service-account-key-file={}",
                pki("service-accounts.pub")
            ))
            .arg(format!(
                "--service-account-signing-key-file={}",
                pki("service-accounts.key")
            ))
            .arg("--service-account-issuer=https://kubernetes.default.svc")
            .arg("--authorization-mode=Node,RBAC")
            .arg("--service-cluster-ip-range=10.96.0.0/16")
            .arg("--endpoint-reconciler-type=none")
            .arg("--allow-privileged")
            .arg("--profiling=false")
            .arg(format!(
                "--audit-policy-file={}",
                self.dir.join("audit-policy.yaml").display()
            ))
            .arg(format!(
                "--audit-log-path={}",
                self.dir.join(super::AUDIT_LOG).display()
            ))
            // Megabytes: tests read the log from its beginning, so it is never rotated.
            .arg("--audit-log-maxsize=100000");
        command
    }

    pub(crate) fn controller_manager(&self) -> Command {
        let mut command = self.command("kube-controller-manager");
        self.client_flags(&mut command, "kube-controller-manager");
        command
            .arg(format!(
                "--service-account-private-key-file={}",
                self.credentials.pki("service-accounts.key").display()
            ))
            .arg(format!(
                "--root-ca-file={}",
                self.credentials.pki("ca.pem").display()
            ))
            .arg("--use-service-account-credentials")
            .arg("--enable-hostpath-provisioner=true")
            .arg(format!(
                "--flex-volume-plugin-dir={}",
                self.dir.join("flexvolume").display()
            ))
            // The defaults are made to be gentle with a large cluster's API server; here they would be measured.
            .args(["--kube-api-qps=1000", "--kube-api-burst=2000"])
            .args([
                "--concurrent-deployment-syncs=20",
                "--concurrent-replicaset-syncs=20",
            ])
            .args([
                "--concurrent-statefulset-syncs=20",
                "--concurrent-service-syncs=10",
            ]);
        command
    }

    pub(crate) fn scheduler(&self) -> Command {
        let mut command = self.command("kube-scheduler");
        self.client_flags(&mut command, "kube-scheduler");
        command.args(["--kube-api-qps=1000", "--kube-api-burst=2000"]);
        command
    }

    /// Returns the command line of kwok. With an address, it serves the requests there that the API server passes to kubelets.
    pub(crate) fn kwok(&self, kubelet: Option<SocketAddr>) -> Command {
        let mut command = self.command("kwok");
        command
            .arg(format!(
                "--kubeconfig={}",
                self.credentials.kubeconfig("kwok").display()
            ))
            .arg(format!("--config={}", self.binaries.stages().display()))
            .arg(format!(
                "--config={}",
                self.dir.join("load-balancer-stage.yaml").display()
            ))
            .arg("--manage-all-nodes")
            // Without a lease the node turns NotReady after 40 seconds, and its Pods with it.
            .arg("--node-lease-duration-seconds=40")
            .arg("--cidr=10.0.0.1/16");
        if let Some(address) = kubelet {
            let pki = |file: &str| self.credentials.pki(file).display().to_string();
            command
                .arg(format!("--config={}", self.dir.join(FORWARDS).display()))
                .arg(format!("--server-address={address}"))
                .arg(format!("--node-ip={}", address.ip()))
                .arg(format!("--node-port={}", address.port()))
                .arg(format!("--tls-cert-file={}", pki("server.pem")))
                .arg(format!("--tls-private-key-file={}", pki("server.key")));
        }
        command
    }

    /// Neither of the two serves anything, nor competes for a lease: each is alone in its plane.
    fn client_flags(&self, command: &mut Command, user: &str) {
        let kubeconfig = self.credentials.kubeconfig(user);
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--leader-elect=false", "--secure-port=0", "--profiling=false"]);
    }
}
