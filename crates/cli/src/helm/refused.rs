//! Flags of `helm template` that have no place here.

use crate::usage::Refused;

/// Flags that helm has and this program hasn't, and why.
pub(crate) const REFUSED: Refused = &[
    (
        &["--repository-cache", "--repository-config"],
        "what 'helm repo add' keeps is not read; --repo is the address of a repository",
    ),
    (
        &["--dependency-update"],
        "dependencies are not fetched; put them into the directory charts first",
    ),
    (&["--verify", "--keyring"], "signatures are not verified"),
    (
        &[
            "--validate",
            "--dry-run",
            "--disable-openapi-validation",
            "--kube-apiserver",
            "--kube-as-group",
            "--kube-as-user",
            "--kube-ca-file",
            "--kube-context",
            "--kube-insecure-skip-tls-verify",
            "--kube-tls-server-name",
            "--kube-token",
            "--kubeconfig",
            "--burst-limit",
            "--qps",
        ],
        "no cluster is asked",
    ),
    (
        &[
            "--atomic",
            "--create-namespace",
            "--description",
            "--force",
            "--labels",
            "-l",
            "--replace",
            "--skip-crds",
            "--take-ownership",
            "--timeout",
            "--wait",
            "--wait-for-jobs",
        ],
        "nothing is installed, the chart is only rendered",
    ),
    (
        &["--hide-notes", "--render-subchart-notes"],
        "notes are not printed",
    ),
    (
        &["--post-renderer", "--post-renderer-args"],
        "no programs are run; pipe the output into it",
    ),
    (
        &["--enable-dns"],
        "names of hosts are not resolved: getHostByName answers nothing",
    ),
];
