//! Fetching over SSH from a real OpenSSH server.

use std::time::Duration;

use api::Secret;
use git::{Call, Error, InvalidKey, KnownHosts, Limits, Remote, Selector, SshAlgorithms, SshKey, SshLogin};
use net::{AddressPolicy, ClusterServices, Need, Proxy};
use testkit::{GitServer, HttpProxy, Repo, SshAgent, SshKeyPair, SshOptions, SshServer};

use super::{NETWORK, branch, call, fetch, resolve};

pub(super) fn repo(git: &GitServer) -> (Repo, String) {
    let repo = git.repo("over ssh's").unwrap();
    repo.commit("first", &[("n", "1")]).unwrap();
    let commit = repo.commit("second", &[("n", "2"), ("a/b", "c")]).unwrap();
    repo.tag("v1.0.0", &commit).unwrap();
    (repo, commit)
}

pub(super) fn pair() -> SshKeyPair {
    SshKeyPair::generate("-t ed25519", "").unwrap()
}

fn key(pair: &SshKeyPair) -> SshKey {
    SshKey::parse(pair.private.as_bytes(), None, "identity").unwrap()
}

pub(super) fn known(text: &str) -> KnownHosts {
    KnownHosts::parse(text.as_bytes()).unwrap()
}

pub(super) fn login(pair: &SshKeyPair, known_hosts: &str) -> SshLogin {
    SshLogin {
        keys: vec![key(pair)],
        known_hosts: known(known_hosts),
        ..SshLogin::default()
    }
}

pub(super) fn remote(url: &str, login: SshLogin) -> Remote {
    Remote::new(url).unwrap().with_ssh(login)
}

fn failure(remote: &Remote) -> Error {
    fetch(remote, &branch("main"), &call()).err().unwrap()
}

#[test]
fn remotes_are_equal_if_keys_and_known_hosts_are() {
    let (first, second) = (pair(), pair());
    let hosts = |pair: &SshKeyPair| format!("h {}", pair.public.trim());
    let at = |pair: &SshKeyPair, name: &str, hosts: &str| {
        let key = SshKey::parse(pair.private.as_bytes(), None, name).unwrap();
        let keys = vec![key];
        let login = login(pair, hosts);
        remote("ssh://git@h/r", SshLogin { keys, ..login })
    };
    let one = at(&first, "one", &hosts(&first));
    assert_eq!(one, at(&first, "other name", &hosts(&first)));
    assert_ne!(one, at(&second, "one", &hosts(&first)));
    assert_ne!(one, at(&first, "one", &hosts(&second)));
}

#[test]
fn each_kind_of_reference_is_fetched_over_ssh_in_both_protocols() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let pair = pair();
    for accepts_protocol in [true, false] {
        let options = SshOptions {
            accepts_protocol,
            ..SshOptions::default()
        };
        let server = SshServer::start_with(&git, &[&pair], options).unwrap();
        let remote = remote(&server.url(&repo), login(&pair, &server.known_hosts().unwrap()));
        let semver = Selector {
            semver: Some("*".to_owned()),
            ..Selector::default()
        };
        let by_hash = Selector {
            commit: Some(commit.clone()),
            ..Selector::default()
        };
        for reference in [
            branch("main"),
            semver.reference().unwrap(),
            by_hash.reference().unwrap(),
        ] {
            let fetched = fetch(&remote, &reference, &call()).unwrap_or_else(|error| {
                panic!("{accepts_protocol} {reference:?}: {error}\n{}", server.log())
            });
            assert_eq!(fetched.snapshot.commit(), commit);
            assert_eq!(
                (fetched.read("n"), fetched.read("a/b")),
                ("2".to_owned(), "c".to_owned())
            );
        }
        let missing = resolve(&remote, &branch("gone"), &call())
            .unwrap_err()
            .to_string();
        assert!(missing.contains("branch 'gone' not found"), "{missing}");
    }
}

#[test]
fn scp_like_addresses_are_fetched() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let pair = pair();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let (user, port, path) = (server.user(), server.address().port(), repo.path());
    let url = format!("{user}@[127.0.0.1:{port}]:{}", path.display());
    let remote = remote(&url, login(&pair, &server.known_hosts().unwrap()));
    assert_eq!(resolve(&remote, &branch("main"), &call()).unwrap().commit, commit);
}

#[test]
fn keys_of_each_format_authenticate() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let kinds = [
        ("-t ed25519", ""),
        ("-t ed25519 -a 1", "secret"),
        ("-t ecdsa -b 256", ""),
        ("-t ecdsa -b 384", ""),
        ("-t ecdsa -b 521", ""),
        ("-t ecdsa -b 256 -m PEM", ""),
        ("-t ecdsa -b 256 -m PKCS8", ""),
        ("-t rsa -b 2048", ""),
        ("-t rsa -b 2048 -m PEM", ""),
        ("-t rsa -b 2048 -m PKCS8", ""),
        ("-t rsa -b 2048 -m PEM", "secret"),
    ];
    let pairs: Vec<SshKeyPair> = kinds
        .iter()
        .map(|(args, password)| SshKeyPair::generate(args, password).unwrap())
        .collect();
    let server = SshServer::start(&git, &pairs.iter().collect::<Vec<_>>()).unwrap();
    for ((args, password), pair) in kinds.iter().zip(&pairs) {
        let key = SshKey::parse(pair.private.as_bytes(), Some(password), "identity");
        let key = key.unwrap_or_else(|error| panic!("{args}: {error}"));
        let login = SshLogin {
            keys: vec![key],
            known_hosts: known(&server.known_hosts().unwrap()),
            ..SshLogin::default()
        };
        let resolved = resolve(&remote(&server.url(&repo), login), &branch("main"), &call());
        let resolved = resolved.unwrap_or_else(|error| panic!("{args}: {error}\n{}", server.log()));
        assert_eq!(resolved.commit, commit, "{args}");
    }
}

#[test]
fn encrypted_and_broken_keys_are_told_apart() {
    let encrypted = SshKeyPair::generate("-t ed25519 -a 1", "canary").unwrap();
    let parse =
        |text: &str, password: Option<&str>| SshKey::parse(text.as_bytes(), password, "k").unwrap_err();
    assert_eq!(parse(&encrypted.private, None), InvalidKey::Encrypted);
    assert_eq!(parse(&encrypted.private, Some("")), InvalidKey::Encrypted);
    assert_eq!(parse(&encrypted.private, Some("other")), InvalidKey::Password);
    let pem = SshKeyPair::generate("-t rsa -b 2048 -m PEM", "canary").unwrap();
    assert_eq!(parse(&pem.private, None), InvalidKey::Encrypted);
    assert_eq!(parse(&pem.private, Some("other")), InvalidKey::Password);
    let pkcs8 = SshKeyPair::generate("-t rsa -b 2048 -m PKCS8", "canary").unwrap();
    let slow = SshKeyPair::generate("-t ed25519 -a 600", "canary").unwrap();
    for (text, expected) in [
        (pkcs8.private.as_str(), "encrypted PKCS#8 is not supported"),
        (&slow.private, "more than 512 rounds"),
        (&pem.public, "neither in OpenSSH's format nor PEM"),
        ("", "neither in OpenSSH's format nor PEM"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
            "damaged",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----",
            "damaged",
        ),
        (&"x".repeat(40_000), "longer than 32 KiB"),
    ] {
        let error = parse(text, Some("canary")).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn only_known_host_keys_are_trusted_and_others_are_named() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let pair = pair();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let with = |known_hosts: &str| remote(&server.url(&repo), login(&pair, known_hosts));
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let one = server.known_host(kind).unwrap();
        let resolved = resolve(&with(&one), &branch("main"), &call());
        let resolved = resolved.unwrap_or_else(|error| panic!("{kind}: {error}\n{}", server.log()));
        assert_eq!(resolved.commit, commit, "{kind}");
    }
    let ed25519 = server.known_host("ed25519").unwrap();
    let (host, own) = ed25519.trim().split_once(' ').unwrap();
    let other = pair.public.rsplit_once(' ').unwrap().0;
    for (known_hosts, words, need) in [
        (String::new(), "knownhosts: key is unknown", Some(Need::HostKey)),
        (
            format!("127.0.0.1 {own}"),
            "knownhosts: key is unknown",
            Some(Need::HostKey),
        ),
        (
            format!("{host} {other}"),
            "knownhosts: key mismatch",
            Some(Need::OtherHostKey),
        ),
        (
            format!("{host} {own}\n@revoked * {own}"),
            "knownhosts: key is revoked",
            None,
        ),
        (
            format!("@cert-authority {host} {own}"),
            "certificates of hosts",
            Some(Need::HostKey),
        ),
    ] {
        let error = failure(&with(&known_hosts));
        assert!(matches!(error, Error::HostKey { .. }), "{error}");
        assert_eq!(error.need(), need, "{error}");
        let shown = error.to_string();
        assert!(shown.contains(words) && shown.contains(host), "{shown}");
        assert!(shown.contains(" SHA256:"), "{shown}");
    }
    assert!(!server.log().contains("Accepted publickey for nobody"));
}

#[test]
fn refused_keys_are_named() {
    let git = GitServer::start().unwrap();
    let (repo, _) = repo(&git);
    let (pair, other) = (pair(), pair());
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let known_hosts = server.known_hosts().unwrap();
    let error = failure(&remote(&server.url(&repo), login(&other, &known_hosts)));
    assert_eq!(error.need(), Some(Need::OtherSshKey));
    let shown = error.to_string();
    assert!(shown.contains("ssh: unable to authenticate as '"), "{shown}");
    assert!(
        shown.contains("ssh-ed25519 SHA256:") && shown.contains("(identity)"),
        "{shown}"
    );
    let nobody = SshLogin {
        known_hosts: known(&known_hosts),
        skipped: vec!["~/.ssh/id_rsa (encrypted)".to_owned()],
        ..SshLogin::default()
    };
    let error = failure(&remote(&server.url(&repo), nobody));
    assert_eq!(error.need(), Some(Need::SshKey));
    assert!(
        error
            .to_string()
            .contains("there is no key; not used: ~/.ssh/id_rsa"),
        "{error}"
    );
    let missing = format!("ssh://{}@{}/no/such/repo.git", server.user(), server.address());
    let error = failure(&remote(&missing, login(&pair, &known_hosts)));
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
}

#[test]
fn keys_of_an_agent_authenticate() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let (mine, rsa) = (pair(), SshKeyPair::generate("-t rsa -b 2048", "").unwrap());
    let server = SshServer::start(&git, &[&rsa]).unwrap();
    let agent = SshAgent::start(&[&mine, &rsa]).unwrap();
    let with = |socket: &std::path::Path| {
        let login = SshLogin {
            agent: Some(socket.to_owned()),
            known_hosts: known(&server.known_hosts().unwrap()),
            ..SshLogin::default()
        };
        remote(&server.url(&repo), login)
    };
    let resolved = resolve(&with(agent.socket()), &branch("main"), &call()).unwrap();
    assert_eq!(resolved.commit, commit);
    let error = failure(&with(std::path::Path::new("/no/agent"))).to_string();
    assert!(
        error.contains("the SSH agent at /no/agent does not answer"),
        "{error}"
    );
}

#[test]
fn named_algorithms_are_obeyed() {
    let git = GitServer::start().unwrap();
    let (repo, _) = repo(&git);
    let pair = pair();
    let options = SshOptions {
        config: "KexAlgorithms diffie-hellman-group14-sha256\nHostKeyAlgorithms rsa-sha2-256",
        ..SshOptions::default()
    };
    let server = SshServer::start_with(&git, &[&pair], options).unwrap();
    let remote = remote(&server.url(&repo), login(&pair, &server.known_hosts().unwrap()));
    let named = |kex: &str, keys: &str| {
        let list = |names: &str| names.split_terminator(',').map(str::to_owned).collect::<Vec<_>>();
        let (algorithms, _) = SshAlgorithms::new(&list(kex), &list(keys)).unwrap();
        let network = NETWORK.clone().with_ssh_algorithms(algorithms);
        let mut session = network.open(&remote, &call())?;
        session.resolve(&branch("main"))
    };
    named("", "").unwrap();
    named("diffie-hellman-group14-sha256", "rsa-sha2-256").unwrap();
    for (kex, keys, words) in [
        (
            "curve25519-sha256",
            "",
            "no common algorithm (Kex): offered curve25519-sha256",
        ),
        (
            "",
            "ssh-ed25519",
            "no common algorithm (Key): offered ssh-ed25519",
        ),
    ] {
        let error = named(kex, keys).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn limits_and_the_address_policy_apply_to_ssh() {
    let git = GitServer::start().unwrap();
    let (repo, _) = repo(&git);
    let pair = pair();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let remote = remote(&server.url(&repo), login(&pair, &server.known_hosts().unwrap()));
    let limited = Call {
        limits: Limits {
            pack_bytes: 10,
            ..Limits::default()
        },
        ..call()
    };
    let error = fetch(&remote, &branch("main"), &limited)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("the limit of 10 bytes of a pack was reached"),
        "{error}"
    );
    let limited = Call {
        limits: Limits {
            refs_bytes: 10,
            ..Limits::default()
        },
        ..call()
    };
    let error = fetch(&remote, &branch("main"), &limited)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("the limit of 10 bytes of a list of refs was reached"),
        "{error}"
    );
    let policy = AddressPolicy::controller(ClusterServices::default());
    let network = git::Network::new(super::RUNTIME.handle().clone(), policy);
    let refused = network
        .open(&remote, &call())
        .and_then(|mut session| session.resolve(&branch("main")));
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("loopback addresses are not allowed"), "{error}");
}

#[test]
fn proxies_lead_to_ssh_servers_and_their_refusals_are_told() {
    let git = GitServer::start().unwrap();
    let (repo, commit) = repo(&git);
    let pair = pair();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let through = HttpProxy::start("me", "canary").unwrap();
    for (address, words) in [(through.url(), "proxy: 407"), (through.socks_url(), "proxy: ")] {
        let by = |password: &str| {
            let password = Secret::new(password.to_owned());
            let proxy = Proxy::parse(&address, Some("me"), Some(password)).unwrap();
            let login = login(&pair, &server.known_hosts().unwrap());
            remote(&server.url(&repo), login).with_proxy(proxy)
        };
        let asked = through.asked().len();
        let resolved = resolve(&by("canary"), &branch("main"), &call()).unwrap();
        assert_eq!(resolved.commit, commit);
        assert!(through.asked().len() > asked, "{address}");
        let error = failure(&by("canary-wrong")).to_string();
        assert!(error.contains(words) && !error.contains("canary"), "{error}");
    }
}

#[test]
fn silent_and_talkative_servers_are_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ssh://git@{}/r", silent.local_addr().unwrap());
    let call = Call {
        limits: Limits {
            silence: Duration::from_millis(300),
            ..Limits::default()
        },
        ..call()
    };
    let remote = remote(&url, SshLogin::default());
    let error = fetch(&remote, &branch("main"), &call).err().unwrap().to_string();
    assert!(error.contains("the server sent nothing for 0.3 s"), "{error}");
    drop(silent);
    let http = GitServer::start().unwrap();
    let url = format!("{}/r", http.origin().replace("http://", "ssh://git@"));
    let error = failure(&Remote::new(&url).unwrap());
    assert!(
        matches!(error, Error::Protocol { .. } | Error::Network { .. }),
        "{error}"
    );
}
