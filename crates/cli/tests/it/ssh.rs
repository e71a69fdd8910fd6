//! Repositories over SSH, with the keys and known hosts of the user.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;
use testkit::{GitServer, Repo, SshAgent, SshKeyPair, SshServer};

use crate::program::{MAP, files};

/// A user with a home directory, and a server with a project.
struct User {
    home: TempDir,
    key: SshKeyPair,
    server: SshServer,
    repo: Repo,
    git: GitServer,
}

impl User {
    fn new() -> Self {
        let git = GitServer::start().unwrap();
        let repo = git.repo("base").unwrap();
        let project = [
            ("deployment.yaml", "deployments: [{path: cm}]\n"),
            ("cm/map.yaml", MAP),
            ("kustomization.yaml", "resources: [cm/map.yaml]\n"),
        ];
        repo.commit("one", &project).unwrap();
        let key = SshKeyPair::generate("-t ed25519", "").unwrap();
        let server = SshServer::start(&git, &[&key]).unwrap();
        Self {
            home: tempfile::tempdir().unwrap(),
            key,
            server,
            repo,
            git,
        }
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.home.path().join(".ssh").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn knows_the_host(&self) {
        self.write("known_hosts", &self.server.known_hosts().unwrap());
    }

    fn url(&self) -> String {
        self.server.url(&self.repo)
    }

    fn weir(&self, dir: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(words)
            .current_dir(dir)
            .env("HOME", self.home.path())
            .env_remove("SSH_AUTH_SOCK")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// Renders a project that includes a repository.
    fn render(&self, url: &str, flags: &[&str], variables: &[(&str, &str)]) -> Output {
        let include = format!("deployments:\n- git: '{url}'\n");
        let dir = files(&[(".kluctl.yaml", ""), ("deployment.yaml", &include)]);
        let words = [&["render", "--offline-kubernetes", "--print-all"][..], flags].concat();
        self.weir(dir.path(), &words, variables)
    }
}

#[track_caller]
fn renders(output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("name: m"),
        "{stderr}"
    );
}

#[track_caller]
fn fails(output: &Output, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for words in words {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(!stderr.contains("PRIVATE KEY"), "{stderr}");
}

#[test]
fn includes_over_ssh_use_the_keys_and_known_hosts_of_the_user() {
    let user = User::new();
    user.write("id_ed25519", &user.key.private);
    let (unknown, add) = (
        "knownhosts: key is unknown: [127.0.0.1]:",
        "add the key to ~/.ssh/known_hosts",
    );
    fails(&user.render(&user.url(), &[], &[]), &[unknown, " SHA256:", add]);
    let lax = [("KLUCTL_SSH_DISABLE_STRICT_HOST_KEY_CHECKING", "true")];
    renders(&user.render(&user.url(), &[], &lax));
    user.knows_the_host();
    renders(&user.render(&user.url(), &[], &[]));

    let port = user.server.address().port();
    let config = format!(
        "Host work\n HostName 127.0.0.1\n Port {port}\n User {}\n",
        user.server.user()
    );
    user.write("config", &config);
    renders(&user.render(&format!("work:{}", user.repo.path().display()), &[], &[]));

    let other = user.key.public.rsplit_once(' ').unwrap().0.to_owned();
    user.write("known_hosts", &format!("[127.0.0.1]:{port} {other}\n"));
    let changed = ["knownhosts: key mismatch", "ssh-keygen -R"];
    fails(&user.render(&user.url(), &[], &[]), &changed);
}

#[test]
fn render_logs_in_once_for_all_repositories_of_a_server() {
    let user = User::new();
    user.write("id_ed25519", &user.key.private);
    user.knows_the_host();
    let other = user.git.repo("other").unwrap();
    other.commit("one", &[("deployment.yaml", "vars: []\n")]).unwrap();
    let include = format!("{}'\n- git: '{}", user.url(), user.server.url(&other));
    renders(&user.render(&include, &[], &[]));
    assert_eq!(user.server.logins(), 1, "{}", user.server.log());
}

#[test]
fn keys_come_from_the_agent_flags_and_variables() {
    let user = User::new();
    user.knows_the_host();
    let none = "there is no key";
    let remedy = "use --git-ssh-key-file, or add a key to the SSH agent";
    fails(&user.render(&user.url(), &[], &[]), &[none, remedy]);
    let agent = SshAgent::start(&[&user.key]).unwrap();
    let socket = [("SSH_AUTH_SOCK", agent.socket().to_str().unwrap())];
    renders(&user.render(&user.url(), &[], &socket));

    user.write("other/key", &user.key.private);
    user.write("other/hosts", &user.server.known_hosts().unwrap());
    user.write("known_hosts", "");
    let (address, dir) = (user.server.address(), user.home.path().join(".ssh/other"));
    let flags = [
        format!("--git-ssh-key-file={address}={}/key", dir.display()),
        format!("--git-ssh-known-hosts-file={address}={}/hosts", dir.display()),
    ];
    renders(&user.render(&user.url(), &[&flags[0], &flags[1]], &[]));
    let (key, hosts) = (dir.join("key"), dir.join("hosts"));
    let variables = [
        ("KLUCTL_GIT_HOST", "*"),
        ("KLUCTL_GIT_USERNAME", "*"),
        ("KLUCTL_GIT_SSH_KEY", key.to_str().unwrap()),
        ("SSH_KNOWN_HOSTS", hosts.to_str().unwrap()),
    ];
    renders(&user.render(&user.url(), &[], &variables));

    user.knows_the_host();
    let encrypted = SshKeyPair::generate("-t ed25519 -a 1", "canary").unwrap();
    let wrong = SshKeyPair::generate("-t ecdsa -b 256", "").unwrap();
    user.write("id_ed25519", &encrypted.private);
    user.write("id_ecdsa", &wrong.private);
    let words = [
        "ssh: unable to authenticate as",
        "id_ecdsa)",
        "id_ed25519 (it has a password: add it to the SSH agent with ssh-add)",
    ];
    fails(&user.render(&user.url(), &[], &[]), &words);
}

#[test]
fn kustomizations_include_repositories_over_ssh() {
    let user = User::new();
    user.write("id_ed25519", &user.key.private);
    user.knows_the_host();
    let kustomization = format!("resources: ['{}']\n", user.url());
    let dir = files(&[("kustomization.yaml", &kustomization)]);
    let output = user.weir(dir.path(), &["kustomize", "build"], &[]);
    renders(&output);
}
