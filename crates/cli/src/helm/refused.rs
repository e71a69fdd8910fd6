//! Flags of `helm template` that have no place here.

use crate::usage::Refused;

/// Flags that helm has and this program hasn't, and why.
pub(crate) const REFUSED: Refused = &[
    (
        &[
            "--repo",
            "--version",
            "--devel",
            "--username",
            "--password",
            "--ca-file",
            "--cert-file",
            "--key-file",
            "--insecure-skip-tls-verify",
            "--plain-http",
            "--pass-credentials",
            "--registry-config",
            "--repository-cache",
            "--repository-config",
        ],
        "charts are not fetched; pull the chart first",
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
    (
        &["--debug"],
        "there is nothing more to print; an error names chart, file, line and column",
    ),
];
