//! Faults of requests to a Git server. Pure.

use api::{Fault, Reason};
use net::Need;

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
