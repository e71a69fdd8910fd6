//! The flags of this controller alone, with the environment variables that upstream reads for them.

mod consumers;
mod shared_store;

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use api::revision::Style;
use artifact::{
    Algorithm,
    storage::{Quotas, Retention},
};
use clap::{Args, ValueEnum};
use git::{SshAlgorithms, UnsupportedAlgorithms};
use limits::CacheBounds;
use oci::cosign::TrustedRoot;
use runtime::{
    CommonFlags,
    accounts::{InvalidDefaultAccount, OBJECT_IDENTITIES, ServiceAccounts},
    duration,
    flags::{Idle, bytes, idle},
};

pub use consumers::{Consumer, ConsumerFlags, InvalidConsumer};
pub use shared_store::SharedStoreFlags;

/// Maximum sizes of the contents of Helm repositories, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct HelmLimits {
    pub index: u64,
    pub chart: u64,
    pub chart_file: u64,
}

/// Format in which revisions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RevisionFormat {
    /// `main@sha1:<hash>`.
    Rfc5,
    /// `main/<hash>`, with the conditions and events of 2021.
    Legacy,
}

impl From<RevisionFormat> for Style {
    fn from(format: RevisionFormat) -> Self {
        match format {
            RevisionFormat::Rfc5 => Self::Rfc5,
            RevisionFormat::Legacy => Self::Legacy,
        }
    }
}

/// The flags of this controller alone.
#[derive(Debug, Clone, Args)]
pub struct Flags {
    /// Directory of the artifacts.
    #[arg(long, env = "STORAGE_PATH", default_value = "data")]
    pub storage_path: PathBuf,

    /// Address that artifacts are served on.
    #[arg(long, env = "STORAGE_ADDRESS", default_value_t = default_storage_addr())]
    pub storage_addr: String,

    /// Host (and port) in the URLs of artifacts; derived from the address if empty.
    #[arg(long, env = "STORAGE_ADV_ADDR", default_value = "")]
    pub storage_adv_addr: String,

    /// Time that superseded artifacts are kept.
    #[arg(long, default_value = "60s", value_parser = duration::parse)]
    pub artifact_retention_ttl: Duration,

    /// Number of artifacts of an object that are kept, the current one included.
    #[arg(long, default_value_t = 2)]
    pub artifact_retention_records: usize,

    /// Bytes that the stored artifacts of an object may take, the superseded ones included, as in 512Mi; 0 is unlimited.
    #[arg(long, default_value = "2Gi", value_parser = bytes::parse)]
    pub storage_quota_per_object: u64,

    /// Bytes that the stored artifacts of all objects of a namespace may take, as in 10Gi; 0 is unlimited.
    #[arg(long, default_value = "5Gi", value_parser = bytes::parse)]
    pub storage_quota_per_namespace: u64,

    /// Bytes that the temporary files of all sources may take together, a namespace three quarters of those that others leave, as in 3Gi; 0
    /// is unlimited.
    #[arg(long, default_value = "3Gi", value_parser = bytes::parse)]
    pub temporary_files_max_size: u64,

    /// Algorithm of digests: sha1, sha256, sha384, sha512 or blake3.
    #[arg(long, default_value = "sha256")]
    pub artifact_digest_algo: Algorithm,

    /// Format of revisions in status, conditions and events.
    #[arg(long, value_enum, default_value_t = RevisionFormat::Rfc5)]
    pub revision_format: RevisionFormat,

    /// Key exchanges that are offered to SSH servers, most preferred first; default all that are thought safe.
    #[arg(long, value_delimiter = ',')]
    pub ssh_kex_algos: Vec<String>,

    /// Algorithms of the host keys of SSH servers, most preferred first; default Ed25519, ECDSA, and RSA with SHA-2.
    #[arg(long, value_delimiter = ',')]
    pub ssh_hostkey_algos: Vec<String>,

    /// Credentials of clouds and GitHub Apps that are kept; 0 keeps none.
    #[arg(long, default_value_t = 100)]
    pub token_cache_max_size: u32,

    /// Longest time that credentials of clouds and GitHub Apps are kept, as in 1h.
    #[arg(long, default_value = "1h", value_parser = duration::parse)]
    pub token_cache_max_duration: Duration,

    /// File with the trusted root of the sigstore for signatures by identities (`spec.verify` without `secretRef`) whose object names
    /// none; without it, such objects need `spec.verify.trustedRootSecretRef`.
    #[arg(long)]
    pub sigstore_trusted_root: Option<PathBuf>,

    /// Bytes that the index of a Helm repository may have at most.
    #[arg(long, default_value = "50Mi", value_parser = bytes::parse)]
    pub helm_index_max_size: u64,

    /// Bytes that the archive of a Helm chart may have at most.
    #[arg(long, default_value = "10Mi", value_parser = bytes::parse)]
    pub helm_chart_max_size: u64,

    /// Bytes that a file of a Helm chart may have at most.
    #[arg(long, default_value = "5Mi", value_parser = bytes::parse)]
    pub helm_chart_file_max_size: u64,

    /// Pairs of a feature gate and true or false. ObjectLevelWorkloadIdentity lets objects use the cloud identities of service
    /// accounts; CacheSecretsAndConfigMaps is accepted for compatibility.
    #[arg(long, value_delimiter = ',', value_parser = feature_gate)]
    pub feature_gates: Vec<String>,

    /// Flags of the tokens that those who download artifacts need.
    #[command(flatten)]
    pub consumers: ConsumerFlags,

    /// Flags of the bucket that holds all artifacts.
    #[command(flatten)]
    pub shared_store: SharedStoreFlags,

    /// Flags that are accepted for compatibility.
    #[command(flatten)]
    pub accepted: Accepted,
}

/// Flags of upstream that have no effect here.
#[derive(Debug, Clone, Args)]
pub struct Accepted {
    /// Accepted for compatibility: an index is read as a stream, and never held in memory.
    #[arg(long)]
    pub helm_cache_max_size: Option<i64>,

    /// Accepted for compatibility: an index is read as a stream, and never held in memory.
    #[arg(long)]
    pub helm_cache_ttl: Option<String>,

    /// Accepted for compatibility: an index is read as a stream, and never held in memory.
    #[arg(long)]
    pub helm_cache_purge_interval: Option<String>,

    /// Accepted for compatibility: Secrets are always read live.
    #[arg(long, default_value = "")]
    pub watch_configs_label_selector: String,
}

fn default_storage_addr() -> String {
    std::env::var("STORAGE_ADDR")
        .ok()
        .filter(|address| !address.is_empty())
        .unwrap_or_else(|| ":9090".to_owned())
}

const KNOWN_GATES: [&str; 2] = [CACHE, OBJECT_IDENTITIES];
const CACHE: &str = "CacheSecretsAndConfigMaps";

#[derive(Debug, thiserror::Error)]
#[error("known gates are {known}, each followed by =true or =false", known = KNOWN_GATES.join(" and "))]
struct InvalidFeatureGate;

/// Parses a feature gate, `Name=true` or `Name=false`.
fn feature_gate(text: &str) -> Result<String, InvalidFeatureGate> {
    match text.split_once('=') {
        Some((name, "true" | "false")) if KNOWN_GATES.contains(&name) => Ok(text.to_owned()),
        _ => Err(InvalidFeatureGate),
    }
}

impl Flags {
    #[must_use]
    pub fn retention(&self) -> Retention {
        Retention {
            ttl: self.artifact_retention_ttl,
            records: self.artifact_retention_records,
        }
    }

    /// Returns host (and port) in the URLs of artifacts.
    #[must_use]
    pub fn advertised(&self) -> String {
        if self.storage_adv_addr.is_empty() {
            derived(&self.storage_addr, std::env::var("HOSTNAME").ok().as_deref())
        } else {
            self.storage_adv_addr.clone()
        }
    }

    #[must_use]
    pub fn quotas(&self) -> Quotas {
        Quotas {
            object: or_none(self.storage_quota_per_object),
            namespace: or_none(self.storage_quota_per_namespace),
        }
    }

    #[must_use]
    pub fn temporary_bytes(&self) -> u64 {
        or_none(self.temporary_files_max_size)
    }

    /// Returns the algorithms for SSH servers, and the names that are not supported. Fails if a list has no supported name.
    pub fn ssh_algorithms(&self) -> Result<(SshAlgorithms, Vec<String>), UnsupportedAlgorithms> {
        SshAlgorithms::new(&self.ssh_kex_algos, &self.ssh_hostkey_algos)
    }

    pub(crate) fn trusted_root(&self) -> anyhow::Result<Option<TrustedRoot>> {
        let Some(path) = &self.sigstore_trusted_root else {
            return Ok(None);
        };
        let named = || format!("--sigstore-trusted-root={}", path.display());
        let text = std::fs::read(path).with_context(named)?;
        TrustedRoot::parse(&text).with_context(named).map(Some)
    }

    pub(crate) fn is_gate_open(&self, name: &str) -> bool {
        let given = self.feature_gates.iter().rev();
        let mut values = given.filter_map(|pair| pair.split_once('='));
        values
            .find(|(gate, _)| *gate == name)
            .is_some_and(|(_, value)| value == "true")
    }

    /// Returns the service accounts whose identities are used. Fails when a default service account is set while the gate is closed,
    /// because objects would use the identity of the controller, and when its name is invalid.
    pub(crate) fn service_accounts(
        &self,
        common: &CommonFlags,
    ) -> Result<ServiceAccounts, InvalidDefaultAccount> {
        ServiceAccounts::new(
            self.is_gate_open(OBJECT_IDENTITIES),
            &common.default_service_account,
        )
    }

    pub(crate) fn token_bounds(&self) -> CacheBounds {
        CacheBounds {
            max_entries: usize::try_from(self.token_cache_max_size).unwrap_or(usize::MAX),
            max_age: self.token_cache_max_duration,
        }
    }

    #[must_use]
    pub fn helm_limits(&self) -> HelmLimits {
        HelmLimits {
            index: self.helm_index_max_size,
            chart: self.helm_chart_max_size,
            chart_file: self.helm_chart_file_max_size,
        }
    }

    #[must_use]
    pub fn idle(&self, common: &CommonFlags) -> Vec<Idle> {
        const CACHE_OF_INDEXES: &str = "an index is read as a stream, and never held in memory";
        let own = &self.accepted;
        let selects = !own.watch_configs_label_selector.is_empty();
        let caches = self.is_gate_open(CACHE);
        let consumers = &self.consumers;
        idle([
            (
                "--artifact-consumers",
                !consumers.artifact_consumers.is_empty() && consumers.is_off(),
                "with --artifact-tokens=off everybody may download",
            ),
            (
                "--helm-cache-max-size",
                own.helm_cache_max_size.is_some(),
                CACHE_OF_INDEXES,
            ),
            ("--helm-cache-ttl", own.helm_cache_ttl.is_some(), CACHE_OF_INDEXES),
            (
                "--helm-cache-purge-interval",
                own.helm_cache_purge_interval.is_some(),
                CACHE_OF_INDEXES,
            ),
            ("--watch-configs-label-selector", selects, "Secrets are read live"),
            (
                "--feature-gates",
                caches,
                "CacheSecretsAndConfigMaps: Secrets are read live",
            ),
            (
                "--no-cross-namespace-refs",
                common.no_cross_namespace_refs,
                "sources never refer to other namespaces",
            ),
        ])
    }
}

/// Returns a limit; 0 is unlimited.
const fn or_none(limit: u64) -> u64 {
    if limit == 0 { u64::MAX } else { limit }
}

/// Returns the host that others reach `address` by, as far as it is known.
fn derived(address: &str, hostname: Option<&str>) -> String {
    match address.rsplit_once(':') {
        Some(("", port)) => format!("localhost:{port}"),
        Some(("0.0.0.0" | "[::]", port)) => format!("{}:{port}", hostname.unwrap_or("localhost")),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests;
