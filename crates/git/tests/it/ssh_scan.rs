//! Generated keys and scanned host keys, with a real OpenSSH server and `ssh-keygen`.

use std::{io::Write as _, os::unix::fs::PermissionsExt as _, process::Command, time::Duration};

use api::Secret;
use git::{KeyAlgorithm, KnownHosts, ScanError, SshKey, SshLogin, scan_host_key};
use net::AddressPolicy;
use testkit::{GitServer, SshKeyPair, SshServer};
use url::Host;

use super::{
    RUNTIME, branch, call, resolve,
    ssh::{remote, repo},
};

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

fn scan(port: u16, timeout: Duration) -> Result<String, ScanError> {
    let host = Host::parse("127.0.0.1").unwrap();
    let policy = AddressPolicy::command_line();
    RUNTIME.block_on(scan_host_key(&host, port, &policy, timeout))
}

/// Reads a private key with OpenSSH, and returns its public key.
fn public_by_openssh(private: &Secret<String>) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(private.expose().as_bytes()).unwrap();
    let mode = std::fs::Permissions::from_mode(0o600);
    file.as_file().set_permissions(mode).unwrap();
    let mut command = Command::new("ssh-keygen");
    let output = command.args(["-y", "-f"]).arg(file.path()).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn generated_keys_log_in_at_a_server_whose_key_was_scanned() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    for algorithm in [
        KeyAlgorithm::Rsa { bits: 2048 },
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::EcdsaP384,
        KeyAlgorithm::EcdsaP521,
        KeyAlgorithm::Ed25519,
    ] {
        let pair = git::SshKeyPair::generate(algorithm).unwrap();
        // OpenSSH reads Ed25519 keys in PKCS#8 since version 9.6 only.
        if algorithm != KeyAlgorithm::Ed25519 {
            let read = public_by_openssh(&pair.private);
            let words: Vec<&str> = read.split_whitespace().take(2).collect();
            assert_eq!(words.join(" "), pair.public.trim_end(), "{algorithm:?}");
        }
        let authorized = SshKeyPair {
            private: String::new(),
            public: pair.public.clone(),
        };
        let server = SshServer::start(&git, &[&authorized]).unwrap();
        let line = scan(server.address().port(), TIMEOUT).unwrap();
        // The kind that Go's client prefers.
        assert!(
            line.starts_with(&format!(
                "[127.0.0.1]:{} ecdsa-sha2-nistp256 ",
                server.address().port()
            )),
            "{line}"
        );
        let login = SshLogin {
            keys: vec![SshKey::parse(pair.private.expose().as_bytes(), None, "identity").unwrap()],
            known_hosts: KnownHosts::parse(line.as_bytes()).unwrap(),
            ..SshLogin::default()
        };
        let remote = remote(&server.url(&repo), login);
        assert_eq!(resolve(&remote, &branch("main"), &call()).unwrap().commit, commit);
    }
}

#[test]
fn scans_of_other_servers_fail_in_time() {
    let git = GitServer::start().unwrap();
    let port = url::Url::parse(&git.origin()).unwrap().port().unwrap();
    let other = scan(port, TIMEOUT).unwrap_err().to_string();
    assert!(other == "ssh: the server closed the connection", "{other}");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let late = scan(port, Duration::from_millis(300)).unwrap_err();
    assert!(matches!(late, ScanError::Timeout(_)), "{late}");
    drop(silent);
    let closed = scan(port, TIMEOUT).unwrap_err();
    assert!(matches!(closed, ScanError::Connect(_)), "{closed}");
}
