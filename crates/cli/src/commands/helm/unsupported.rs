//! Flags of `helm template` that weir doesn't support.

use crate::usage::UnsupportedFlags;

pub(crate) const UNSUPPORTED_FLAGS: UnsupportedFlags = &[
    (
        &["--repository-cache", "--repository-config"],
        "repositories of 'helm repo add' are not read; use --repo with the URL of the repository",
    ),
    (
        &["--dependency-update"],
        "dependencies are not downloaded; run 'helm dependency update' first",
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
        "rendering doesn't connect to a cluster",
    ),
    (
        &[
            "--atomic",
            "--description",
            "--force",
            "--labels",
            "-l",
            "--replace",
            "--take-ownership",
            "--timeout",
            "--wait",
            "--wait-for-jobs",
        ],
        "nothing is installed, the chart is only rendered",
    ),
    (&["--render-subchart-notes"], "notes are not printed"),
    (
        &["--post-renderer", "--post-renderer-args"],
        "no programs are run; pipe the output to the program instead",
    ),
    (
        &["--enable-dns"],
        "DNS lookups are not supported: getHostByName returns an empty string",
    ),
];
