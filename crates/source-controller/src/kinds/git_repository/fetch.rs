//! Packing a fetched commit, and the failures of the Git server in the words of conditions.

use artifact::storage::ArtifactWriter;

use api::{Fault, Reason};
use artifact::pack::{self, IGNORE_FILE, Item, Packed, PathKind};
use git::{Node, NodeKind, Snapshot};
use net::Need;
use tree::{Budget, TreePath};

use crate::{builder::BuildError, source_kind::PackOptions};

/// Bytes of all files of an artifact.
const UNPACKED_BYTES: u64 = 1 << 30;

/// Bytes and lines of all ignore files of a repository.
const IGNORE_BYTES: usize = 1 << 20;
const IGNORE_LINES: usize = 5000;

/// Returns the fault of a failed request to the Git server.
pub(super) fn fault(error: &git::Error) -> Fault {
    let reason = match error {
        git::Error::EmptyRepository { .. } => {
            return Fault::retry(Reason::EmptyGitRepository, error.to_string());
        }
        git::Error::AuthenticationFailed { .. } => Reason::AuthenticationFailed,
        git::Error::Disk(_) => Reason::DirectoryCreationFailed,
        _ => Reason::GitOperationFailed,
    };
    let remedy = error.need().map(remedy);
    let remedy = remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default();
    Fault::retry(
        reason,
        format!("failed to checkout and determine revision: {error}{remedy}"),
    )
}

/// Returns how a GitRepository gives a server what it demands.
fn remedy(need: Need) -> &'static str {
    match need {
        Need::Credentials => "name a secret with username and password in spec.secretRef",
        Need::OtherCredentials => "check username and password in the secret",
        Need::CaBundle => "add the server's CA to the secret as ca.crt",
        Need::ValidCaBundle => "check ca.crt in the secret",
        Need::ClientCertificate => "add tls.crt and tls.key to the secret",
        Need::ValidClientCertificate => "check tls.crt and tls.key in the secret",
        Need::SshKey => "add the private key to the secret as identity",
        Need::OtherSshKey => "check identity in the secret, and that the server knows its public key",
        Need::HostKey => "add the host key to known_hosts in the secret, if it is the server's own",
        Need::OtherHostKey => "only replace known_hosts in the secret if the key is the server's own",
        Need::LongerTimeout => "raise spec.timeout or check the server",
        Need::FewerRequests => "raise spec.interval",
    }
}

/// Writes the tarball of a commit.
pub(super) fn pack(
    snapshot: &Snapshot,
    options: &PackOptions,
    out: &mut ArtifactWriter<'_>,
) -> Result<Packed, BuildError> {
    let budget = &options.budget;
    let nodes = snapshot.nodes().map_err(|error| fault(&error))?;
    let ignore = options.ignore.as_deref();
    let rules = pack::rules(ignore_files(snapshot, &nodes, ignore, budget)?, ignore);
    let items = nodes.into_iter().map(item).collect();
    let items = pack::plan(items, &rules, budget)?;
    let read = |item: &Item<Node>, buffer: &mut Vec<u8>| {
        budget.check()?;
        snapshot
            .read(&item.content, buffer)
            .map_err(|error| fault(&error))?;
        Ok(())
    };
    pack::pack(&items, read, options.algorithm, UNPACKED_BYTES, out)
}

fn item(node: Node) -> Item<Node> {
    let kind = match node.kind {
        NodeKind::Dir => PathKind::Dir,
        NodeKind::File { executable } => PathKind::File { executable },
        NodeKind::Link | NodeKind::Submodule => PathKind::Other,
    };
    Item {
        path: node.path.clone(),
        kind,
        content: node,
    }
}

/// Returns the ignore files of the repository with their directories.
fn ignore_files(
    snapshot: &Snapshot,
    nodes: &[Node],
    spec: Option<&str>,
    budget: &Budget,
) -> Result<Vec<(TreePath, String)>, BuildError> {
    let mut files = Vec::new();
    let (mut bytes, mut lines) = (0, spec.map_or(0, |spec| spec.lines().count()));
    let mut buffer = Vec::new();
    for node in nodes {
        budget.check()?;
        let is_file = matches!(node.kind, NodeKind::File { .. });
        let Some(dir) = node
            .path
            .parent()
            .filter(|_| is_file && node.path.name() == IGNORE_FILE)
        else {
            continue;
        };
        snapshot.read(node, &mut buffer).map_err(|error| fault(&error))?;
        let text = String::from_utf8(std::mem::take(&mut buffer))
            .map_err(|_| invalid_ignore(&format!("'{}' is not UTF-8", node.path)))?;
        bytes += text.len();
        lines += text.lines().count();
        if bytes > IGNORE_BYTES {
            return Err(invalid_ignore(&format!("there are more than {IGNORE_BYTES} bytes of them")).into());
        }
        files.push((dir, text));
    }
    if lines > IGNORE_LINES {
        return Err(invalid_ignore(&format!("there are more than {IGNORE_LINES} lines of them")).into());
    }
    Ok(files)
}

fn invalid_ignore(why: &str) -> Fault {
    let message = format!("failed to load source ignore patterns from repository: {why}");
    Fault::retry(Reason::SourceIgnoreError, message)
}
