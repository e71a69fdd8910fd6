//! Commands about the objects of Flux and kluctl in a cluster, with the words and flags of the command line `flux`.
//!
//! [`inspect`] reads, [`steer`] changes objects, [`preview`] renders local manifests, and [`life`] installs and removes the controllers.

mod by_kind;
pub(crate) mod inspect;
pub(crate) mod life;
pub(crate) mod preview;
mod ssh_key;
pub(crate) mod steer;

use std::{ffi::OsStr, ops::Deref, time::Duration};

use anyhow::{Context as _, Result};
use clap::Args;
use cluster::{ResourceKind, Snapshot};
use fleet::Kind;

use crate::{
    flags::{ClusterFlags, Connection, duration},
    terminal::Terminal,
    usage::{UnsupportedFlags, parse_bool},
};

pub(crate) use by_kind::{ByKind, KindCommand};

/// Flags of flux that weir doesn't support.
pub(crate) const UNSUPPORTED_FLAGS: UnsupportedFlags = &[
    (
        &[
            "--cache-dir",
            "--disable-compression",
            "--kube-api-burst",
            "--kube-api-qps",
        ],
        "requests of weir are neither cached nor slowed down",
    ),
    (
        &[
            "--as",
            "--as-group",
            "--as-uid",
            "--as-user-extra",
            "--certificate-authority",
            "--client-certificate",
            "--client-key",
            "--cluster",
            "--insecure-skip-tls-verify",
            "--server",
            "--tls-server-name",
            "--token",
            "--user",
        ],
        "set it in a context of the kubeconfig, and select that with --context",
    ),
    (
        &[
            "--gpg-key-id",
            "--gpg-key-ring",
            "--gpg-passphrase",
            "--ssh-signing-key-file",
            "--ssh-signing-key-password",
        ],
        "weir signs no commits: let the branch accept unsigned ones of this author, or commit the output of weir install --export yourself",
    ),
    (
        &["--manifests"],
        "the manifests are part of weir, or of an artifact in --manifests-oci: change them by patches in kustomization.yaml",
    ),
    (
        &["--registry-creds"],
        "create the Secret by weir create secret oci, and name it in --image-pull-secret",
    ),
    (
        &["--ssh-hostkey-algos"],
        "weir offers all safe algorithms; the source-controller has a flag of this name",
    ),
    (
        &["--deploy-token-auth"],
        "use --token-auth with a token of the project, or a deploy key by leaving it out",
    ),
    (
        &["--reconcile"],
        "repositories that exist are not changed: change the visibility at the service; --team is given access each time",
    ),
];

/// Commands of flux that weir doesn't have, by their first words, each with the way to go.
const UNSUPPORTED_COMMANDS: &[(&[&str], &str)] = &[
    (&["push"], ARTIFACTS),
    (&["pull"], ARTIFACTS),
    (&["tag"], ARTIFACTS),
    (&["list"], ARTIFACTS),
    (&["build", "artifact"], ARTIFACTS),
    (&["diff", "artifact"], ARTIFACTS),
    (
        &["envsubst"],
        "weir build kustomization substitutes the variables of a Kustomization",
    ),
    (
        &["plugin"],
        "weir runs no other programs; it is a plugin of flux itself",
    ),
    (
        &["bootstrap", "bitbucket-server"],
        "create the repository and its deploy key there, and use weir bootstrap git",
    ),
];
const ARTIFACTS: &str = "weir oci push pushes kluctl projects; use flux or oras for other OCI artifacts";

/// Returns the refusal of a command of flux that weir doesn't have, by the words that follow the name of the program.
pub(crate) fn unsupported_command<W: AsRef<OsStr>>(words: &[W]) -> Option<String> {
    let begins = |command: &[&str]| {
        let given = words.iter().map(AsRef::as_ref).take(command.len());
        given.eq(command.iter().map(OsStr::new))
    };
    let (command, why) = UNSUPPORTED_COMMANDS.iter().find(|(command, _)| begins(command))?;
    Some(format!("weir {} is not supported: {why}", command.join(" ")))
}

/// Commands of flux. `delete` and `diff` are commands of kluctl, too.
const COMMANDS: &[&str] = &[
    "bootstrap",
    "build",
    "check",
    "create",
    "debug",
    "events",
    "explain",
    "export",
    "get",
    "install",
    "logs",
    "migrate",
    "reconcile",
    "resume",
    "stats",
    "status",
    "suspend",
    "trace",
    "tree",
    "trigger",
    "uninstall",
    "version",
];

/// Returns true if the words that follow the name of the program are a command of flux.
pub(crate) fn is_command<W: AsRef<OsStr>>(words: &[W]) -> bool {
    let mut words = words.iter().map(AsRef::as_ref).map(OsStr::to_str);
    match (words.next().flatten(), words.next().flatten()) {
        // Without the word of a kind, it is kluctl's.
        (Some("delete"), Some(word)) => by_kind::is_word(word),
        (Some("diff"), Some(word)) => {
            let mut kustomization = fleet::kind::KUSTOMIZATION.words();
            ["repository", "repo"].contains(&word) || kustomization.any(|own| own == word)
        }
        (Some(word), _) => COMMANDS.contains(&word),
        _ => false,
    }
}

/// Returns true if this process runs a command of flux.
pub(crate) fn is_invoked() -> bool {
    is_command(&std::env::args_os().skip(1).collect::<Vec<_>>())
}

/// Namespace of the controllers and, by default, of the objects.
const DEFAULT_NAMESPACE: &str = "flux-system";

/// Returns the namespace of the controllers.
pub(crate) fn controller_namespace() -> String {
    let variable = std::env::var("FLUX_SYSTEM_NAMESPACE").ok();
    let set = variable.filter(|value| !value.is_empty());
    set.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())
}

/// Flags of all commands about objects in a cluster.
#[derive(Args)]
pub(crate) struct FluxFlags {
    /// Namespace of the objects; defaults to $FLUX_SYSTEM_NAMESPACE, then flux-system
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,
    /// Take the namespace of the kubeconfig context as the default ($FLUX_NS_FOLLOWS_KUBE_CONTEXT)
    #[arg(long, value_name = "BOOL", help_heading = "Selection", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = parse_bool)]
    ns_follows_kube_context: Option<bool>,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// Timeout for the whole command
    #[arg(long, value_name = "DURATION", help_heading = "Waiting", default_value = "5m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Accepted for compatibility with flux; weir prints its steps anyway
    #[arg(long = "verbose", hide = true)]
    _verbose: bool,
}

impl FluxFlags {
    /// Returns the namespace that the user gave.
    pub(crate) fn given_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns the terminal of the command, without a connection to the cluster.
    fn terminal(&self) -> Terminal {
        self.cluster.terminal()
    }

    /// Returns the namespace of the objects, without a connection to the cluster.
    pub(crate) fn namespace(&self) -> Result<String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(namespace) = &self.namespace {
            return Ok(namespace.clone());
        }
        let follows = match (
            self.ns_follows_kube_context,
            variable("FLUX_NS_FOLLOWS_KUBE_CONTEXT"),
        ) {
            (Some(follows), _) => follows,
            (None, Some(text)) => parse_bool(&text)
                .ok()
                .context("FLUX_NS_FOLLOWS_KUBE_CONTEXT must be true or false")?,
            (None, None) => false,
        };
        match follows {
            true => self.cluster.namespace(),
            false => Ok(controller_namespace()),
        }
    }
}

/// A connection to the cluster with the objects of a command.
pub(crate) struct Flux {
    connection: Connection,
    /// Namespace of the objects.
    pub(crate) namespace: String,
}

impl Deref for Flux {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Flux {
    /// Connects to the cluster. Work is cancelled after the timeout, and at Ctrl-C.
    pub(crate) fn open(flags: &FluxFlags) -> Result<Self> {
        Self::open_for(flags, flags.timeout)
    }

    /// Connects to the cluster, with a timeout of its own.
    pub(crate) fn open_for(flags: &FluxFlags, timeout: Duration) -> Result<Self> {
        let connection = flags.cluster.connect(timeout)?;
        let namespace = flags.namespace()?;
        Ok(Self {
            connection,
            namespace,
        })
    }

    /// Returns a kind in the most preferred version that the cluster serves.
    ///
    /// # Errors
    /// Fails if the cluster does not serve it, or the API server can't be reached.
    pub(crate) async fn served(&self, kind: &Kind) -> Result<ResourceKind> {
        let snapshot = self.cluster.snapshot().await?;
        served(&snapshot, kind).with_context(|| {
            format!(
                "no matches for kind \"{}\" in group \"{}\": its definition (CRD) is not installed in the cluster",
                kind.kind, kind.group
            )
        })
    }

    /// Prints that something is done: `► annotating ...`.
    pub(crate) fn action(&self, text: &str) {
        self.terminal.plain(&format!("► {text}"));
    }

    pub(crate) fn generated(&self, text: &str) {
        self.terminal.plain(&format!("✚ {text}"));
    }

    pub(crate) fn waiting(&self, text: &str) {
        self.terminal.plain(&format!("◎ {text}"));
    }

    pub(crate) fn success(&self, text: &str) {
        self.terminal.plain(&format!("✔ {text}"));
    }

    pub(crate) fn warning(&self, text: &str) {
        self.terminal.plain(&format!("⚠️ {text}"));
    }

    pub(crate) fn failure(&self, text: &str) {
        self.terminal.plain(&format!("✗ {text}"));
    }
}

/// Returns a kind in the most preferred version of a snapshot; `None` if no version is served.
pub(crate) fn served(snapshot: &Snapshot, kind: &Kind) -> Option<ResourceKind> {
    let version = kind.version(|version| snapshot.find(kind.group, version, kind.kind).is_some())?;
    snapshot.find(kind.group, version, kind.kind).cloned()
}
