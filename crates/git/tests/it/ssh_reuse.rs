//! The requests of a pass share a connection to an OpenSSH server, and nothing else does.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::atomic::Ordering, time::Duration};

use api::Secret;
use git::{Call, Error, Limits, Remote, Selector, SshAlgorithms, SshConnections, SshLogin};
use net::Proxy;
use testkit::{GitServer, HttpProxy, Repo, SshKeyPair, SshOptions, SshServer, eventually};

use super::{NETWORK, RUNTIME, branch, call, fetch, resolve, ssh};

struct Setup {
    git: GitServer,
    repo: Repo,
    pair: SshKeyPair,
    server: SshServer,
}

impl Setup {
    fn new(options: SshOptions<'_>) -> Self {
        let git = GitServer::start().unwrap();
        let (repo, _) = ssh::repo(&git);
        let pair = ssh::pair();
        let server = SshServer::start_with(&git, &[&pair], options).unwrap();
        Self {
            git,
            repo,
            pair,
            server,
        }
    }

    fn login(&self) -> SshLogin {
        ssh::login(&self.pair, &self.server.known_hosts().unwrap())
    }

    fn remote(&self) -> Remote {
        ssh::remote(&self.server.url(&self.repo), self.login())
    }
}

fn sharing(other: &Call) -> Call {
    Call {
        ssh: other.ssh.clone(),
        ..call()
    }
}

#[test]
fn requests_of_a_pass_log_in_once_and_the_connection_ends_with_it() {
    for accepts_protocol in [true, false] {
        let setup = Setup::new(SshOptions {
            accepts_protocol,
            ..SshOptions::default()
        });
        let (pass, remote) = (call(), setup.remote());
        let head = resolve(&remote, &branch("main"), &sharing(&pass)).unwrap();
        let parent = setup.repo.git(&["rev-parse", "main~"]).unwrap();
        let on_branch = Selector {
            branch: Some("main".to_owned()),
            commit: Some(parent.trim().to_owned()),
            ..Selector::default()
        };
        resolve(&remote, &on_branch.reference().unwrap(), &sharing(&pass)).unwrap();
        let fetched = fetch(&remote, &branch("main"), &sharing(&pass)).unwrap();
        assert_eq!((fetched.read("n"), fetched.resolved), ("2".to_owned(), head));
        let submodule = setup.git.repo("submodule").unwrap();
        submodule.commit("first", &[("s", "3")]).unwrap();
        let submodule = remote.submodule(&setup.server.url(&submodule)).unwrap();
        let fetched = fetch(&submodule, &branch("main"), &sharing(&pass)).unwrap();
        assert_eq!(fetched.read("s"), "3");
        assert_eq!(setup.server.logins(), 1, "{}", setup.server.log());
        assert!(!setup.server.log().contains("Received disconnect"));

        drop(pass);
        let closed = eventually("the connection to end", Duration::from_secs(30), || async {
            let log = setup.server.log();
            anyhow::ensure!(log.contains("Received disconnect"), log);
            Ok(())
        });
        RUNTIME.block_on(closed).unwrap();
        resolve(&remote, &branch("main"), &call()).unwrap();
        assert_eq!(setup.server.logins(), 2);
    }
}

#[test]
fn connections_are_shared_by_nothing_but_equal_logins() {
    let git = GitServer::start().unwrap();
    let (repo, _) = ssh::repo(&git);
    let (first, second) = (ssh::pair(), ssh::pair());
    let server = SshServer::start(&git, &[&first, &second]).unwrap();
    let known_hosts = server.known_hosts().unwrap();
    let proxy = HttpProxy::start("me", "canary").unwrap();
    let password = Secret::new("canary".to_owned());
    let proxy = Proxy::parse(&proxy.url(), Some("me"), Some(password)).unwrap();
    let with = |login: SshLogin| ssh::remote(&server.url(&repo), login);
    let own = || ssh::login(&first, &known_hosts);
    let one_host_key = server.known_host("ed25519").unwrap();
    let remotes = [
        with(own()),
        with(ssh::login(&second, &known_hosts)),
        with(SshLogin {
            keys: [own().keys, ssh::login(&second, "").keys].concat(),
            ..own()
        }),
        with(ssh::login(&first, &one_host_key)),
        with(own()).with_proxy(proxy),
    ];
    let pass = call();
    let ask = |remote: &Remote| resolve(remote, &branch("main"), &pass).unwrap();
    for (at, remote) in remotes.iter().enumerate() {
        ask(remote);
        assert_eq!(server.logins(), at + 1, "{remote:?}");
    }
    let mut logins = remotes.len();
    for remote in &remotes {
        ask(remote);
    }
    assert_eq!(server.logins(), logins, "each has its connection");
    let (algorithms, _) = SshAlgorithms::new(&["curve25519-sha256".to_owned()], &[]).unwrap();
    let other = NETWORK.clone().with_ssh_algorithms(algorithms);
    let [remote, ..] = &remotes;
    let resolved = other.open(remote, &pass).unwrap().resolve(&branch("main"));
    resolved.unwrap();
    logins += 1;
    assert_eq!(server.logins(), logins, "other algorithms");

    let refused = with(ssh::login(&ssh::pair(), &known_hosts));
    let error = resolve(&refused, &branch("main"), &pass).unwrap_err();
    assert!(matches!(error, Error::AuthenticationFailed { .. }), "{error}");
    let mistrusted = with(ssh::login(&first, ""));
    let error = resolve(&mistrusted, &branch("main"), &pass).unwrap_err();
    assert!(matches!(error, Error::HostKey { .. }), "{error}");
}

#[test]
fn servers_with_one_session_a_connection_are_fetched_from() {
    let setup = Setup::new(SshOptions {
        config: "MaxSessions 1",
        ..SshOptions::default()
    });
    let (pass, remote) = (call(), setup.remote());
    for _ in 0..3 {
        resolve(&remote, &branch("main"), &pass).unwrap();
        fetch(&remote, &branch("main"), &pass).unwrap();
    }
    assert_eq!(setup.server.logins(), 1, "one request ends before the next");
    let mut open = NETWORK.open(&remote, &pass).unwrap();
    open.resolve(&branch("main")).unwrap();
    resolve(&remote, &branch("main"), &pass).unwrap();
    assert_eq!(setup.server.logins(), 2, "requests at the same time");
    open.resolve(&branch("main")).unwrap();
}

#[test]
fn connections_that_the_server_ends_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let seen = format!("{}/$PPID", dir.path().display());
    let run = r#"eval "$SSH_ORIGINAL_COMMAND""#;
    for command in [
        format!("{run}; kill -9 $PPID"),
        format!("if [ -e {seen} ]; then kill -9 $PPID; fi; touch {seen}; {run}"),
        format!("if [ -e {seen} ]; then exit 1; fi; touch {seen}; {run}"),
        format!("if [ -e {seen} ]; then echo no more >&2; exit 1; fi; touch {seen}; {run}"),
    ] {
        let setup = Setup::new(SshOptions {
            config: &format!("ForceCommand {command}"),
            ..SshOptions::default()
        });
        let (pass, remote) = (call(), setup.remote());
        for request in 1..=3 {
            let fetched = fetch(&remote, &branch("main"), &pass);
            let fetched =
                fetched.unwrap_or_else(|error| panic!("{command}: {error}\n{}", setup.server.log()));
            assert_eq!(fetched.read("n"), "2");
            assert_eq!(setup.server.logins(), request, "{command}");
        }
        // Killed at once, the server doesn't pass on the program's messages.
        if command.starts_with(run) {
            continue;
        }
        let missing = format!("{}-missing", setup.server.url(&setup.repo));
        let error = resolve(&ssh::remote(&missing, setup.login()), &branch("main"), &pass).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{command}: {error}");
    }
}

#[test]
fn request_that_ends_early_breaks_no_other() {
    let setup = Setup::new(SshOptions::default());
    let (pass, remote) = (SshConnections::default(), setup.remote());
    let of_pass = || Call {
        ssh: pass.clone(),
        ..call()
    };
    let (cancelled, other) = (of_pass(), of_pass());
    let open = |call: &Call| {
        let mut session = NETWORK.open(&remote, call).unwrap();
        let head = session.resolve(&branch("main")).unwrap();
        (session, head)
    };
    let ((mut first, head), (mut second, _)) = (open(&cancelled), open(&other));
    assert_eq!(setup.server.logins(), 2, "at the same time");
    cancelled.cancelled.store(true, Ordering::Relaxed);
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let error = first.fetch(&head, dirs[0].path()).unwrap_err();
    assert!(matches!(error, Error::Cancelled { .. }), "{error}");
    second.fetch(&head, dirs[1].path()).unwrap();
    drop((first, second));
    fetch(&remote, &branch("main"), &of_pass()).unwrap();
    assert_eq!(setup.server.logins(), 2, "that of the second is kept");

    let limited = Call {
        limits: Limits {
            pack_bytes: 10,
            ..Limits::default()
        },
        ..of_pass()
    };
    let error = fetch(&remote, &branch("main"), &limited).err().unwrap();
    assert!(
        error.to_string().contains("the limit of 10 bytes of a pack"),
        "{error}"
    );
    let fetched = fetch(&remote, &branch("main"), &of_pass()).unwrap();
    assert_eq!(fetched.read("n"), "2");
    let stopped = Call {
        timeout: Duration::ZERO,
        ..of_pass()
    };
    let error = resolve(&remote, &branch("main"), &stopped).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    fetch(&remote, &branch("main"), &of_pass()).unwrap();
}
