//! Signatures of commits and tags, made by Git with GnuPG and OpenSSH.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

use api::{condition_type as types, source::GitRepository};
use serde_json::{Value, json};
use testkit::{GitServer, SshKeyPair, git::Repo};

use super::{TestNamespace, condition, is_done, ready};

/// Options of Git that sign with a key.
struct Signer {
    options: Vec<String>,
    public: String,
    home: Option<tempfile::TempDir>,
}

impl Signer {
    fn ssh() -> Self {
        let pair = SshKeyPair::generate("-t ed25519", "").unwrap();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("key");
        fs::write(&path, &pair.private).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        Self {
            options: vec![
                "gpg.format=ssh".to_owned(),
                format!("user.signingKey={}", path.display()),
            ],
            public: pair.public,
            home: Some(home),
        }
    }

    fn pgp() -> Self {
        let home = tempfile::Builder::new().prefix("g").tempdir_in("/tmp").unwrap();
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let program = home.path().join("gpg");
        let script = format!(
            "#!/bin/sh\nexec gpg --homedir '{}' --batch --quiet --pinentry-mode loopback --passphrase '' \"$@\"\n",
            home.path().display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let run = |args: &[&str]| {
            let output = Command::new(&program).args(args).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).unwrap()
        };
        run(&[
            "--quick-generate-key",
            "me <me@example.com>",
            "ed25519",
            "sign",
            "never",
        ]);
        Self {
            options: vec![
                format!("gpg.program={}", program.display()),
                "user.signingKey=me@example.com".to_owned(),
            ],
            public: run(&["--armor", "--export"]),
            home: Some(home),
        }
    }

    fn git(&self, repo: &Repo, args: &[&str]) -> String {
        let mut all = vec!["-c", "user.name=me", "-c", "user.email=me@example.com"];
        for option in &self.options {
            all.extend(["-c", option]);
        }
        all.extend(args);
        repo.git(&all).unwrap().trim().to_owned()
    }

    /// Makes a signed commit of the files of `main`, and puts it on a branch.
    fn commit(&self, repo: &Repo, branch: &str) -> String {
        let tree = repo.rev("main^{tree}").unwrap();
        let commit = self.git(repo, &["commit-tree", "-S", "-m", "signed", &tree]);
        repo.branch(branch, &commit).unwrap();
        commit
    }

    /// Makes a signed tag, and returns its hash.
    fn tag(&self, repo: &Repo, name: &str, commit: &str) -> String {
        self.git(repo, &["tag", "-s", "-m", "release", name, commit]);
        repo.rev(&format!("refs/tags/{name}")).unwrap()
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let home: Option<PathBuf> = self.home.as_ref().map(|home| home.path().to_owned());
        let _ = Command::new("gpgconf")
            .args(["--kill", "all"])
            .env("GNUPGHOME", home.unwrap_or_default())
            .status();
    }
}

fn spec(reference: &Value, mode: &str, secret: &str) -> Value {
    json!({"ref": reference, "verify": {"mode": mode, "secretRef": {"name": secret}}})
}

fn verified(object: &GitRepository) -> (String, String, String) {
    let found = condition(object, types::SOURCE_VERIFIED).unwrap();
    (
        found.status.as_str().to_owned(),
        found.reason.clone(),
        found.message.clone(),
    )
}

fn mode(object: &GitRepository) -> Option<&str> {
    object.status.as_ref()?.source_verification_mode.as_deref()
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_and_tags_are_verified_by_openpgp_and_ssh() {
    if testkit::skipped::lacks("gpg", "signatures by OpenPGP") {
        return;
    }
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("signed").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let (pgp, ssh) = (Signer::pgp(), Signer::ssh());
    setup.secret("pgp", json!({"me.asc": pgp.public})).await;
    setup.secret("ssh", json!({"me.sshpub": ssh.public})).await;
    setup
        .secret("both", json!({"me.asc": pgp.public, "me.sshpub": ssh.public}))
        .await;
    for (name, signer, secret) in [("pgp", &pgp, "pgp"), ("ssh", &ssh, "ssh")] {
        let commit = signer.commit(&repo, name);
        let tag_name = format!("v-{name}");
        let tag = signer.tag(&repo, &tag_name, &commit);
        setup
            .apply(name, &repo.url(), spec(&json!({"branch": name}), "HEAD", secret))
            .await;
        let object = setup.wait_ready(name).await;
        let (status, reason, message) = verified(&object);
        assert_eq!(
            (status.as_str(), reason.as_str(), mode(&object)),
            ("True", "Succeeded", Some("HEAD"))
        );
        assert!(
            message.starts_with(&format!(
                "verified signature of\n\t- commit '{commit}' with key '"
            )),
            "{message}"
        );
        let by_tag = json!({"tag": tag_name});
        for (wanted, lines) in [("Tag", 1), ("TagAndHEAD", 2)] {
            setup
                .apply(name, &repo.url(), spec(&by_tag, wanted, secret))
                .await;
            let object = setup
                .wait(name, wanted, |object| {
                    is_done(object) && mode(object) == Some(wanted)
                })
                .await;
            let message = verified(&object).2;
            let first = format!("verified signature of\n\t- tag '{tag_name}@{tag}' with key '");
            assert!(
                message.starts_with(&first) && message.lines().count() == lines + 1,
                "{message}"
            );
        }
    }
    // A tag by one, its commit by the other.
    let commit = repo.rev("ssh").unwrap();
    pgp.tag(&repo, "1.0.0", &commit);
    setup
        .apply(
            "mixed",
            &repo.url(),
            spec(&json!({"semver": "1.x"}), "TagAndHEAD", "both"),
        )
        .await;
    let message = verified(&setup.wait_ready("mixed").await).2;
    assert!(
        message.contains("tag '1.0.0@") && message.contains("'SHA256:"),
        "{message}"
    );

    setup.patch("mixed", json!({"spec": {"verify": null}})).await;
    let object = setup
        .wait("mixed", "no verification", |object| {
            is_done(object) && mode(object).is_none()
        })
        .await;
    assert!(condition(&object, types::SOURCE_VERIFIED).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_by_a_trusted_key_is_not_served() {
    if testkit::skipped::lacks("gpg", "signatures by OpenPGP") {
        return;
    }
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("unsigned").unwrap();
    let plain = repo.commit("first", &[("a", "b")]).unwrap();
    repo.tag("light", &plain).unwrap();
    let annotated = repo.annotated_tag("annotated", &plain, "text").unwrap();
    let (pgp, ssh, other) = (Signer::pgp(), Signer::ssh(), Signer::pgp());
    let by_pgp = pgp.commit(&repo, "pgp");
    let by_ssh = ssh.commit(&repo, "ssh");
    other.tag(&repo, "other", &by_pgp);
    setup.secret("pgp", json!({"me.asc": pgp.public})).await;
    setup.secret("ssh", json!({"me.sshpub": ssh.public})).await;
    setup
        .secret("bad", json!({"me.asc": "x", "me.sshpub": "x"}))
        .await;
    let tag = |name: &str| json!({"tag": name});
    let branch = |name: &str| json!({"branch": name});
    let cases = [
        (
            "plain",
            branch("main"),
            "HEAD",
            "pgp",
            "InvalidCommitSignature",
            format!(
                "signature verification of commit '{plain}' failed: unable to verify Git commit: unsupported signature type: empty"
            ),
        ),
        (
            "light",
            tag("light"),
            "Tag",
            "pgp",
            "InvalidGitObject",
            format!("cannot verify signature of tag 'light@{plain}' since it is not signed"),
        ),
        (
            "annotated",
            tag("annotated"),
            "Tag",
            "pgp",
            "InvalidGitObject",
            format!("cannot verify signature of tag 'annotated@{annotated}' since it is not signed"),
        ),
        (
            "other",
            tag("other"),
            "TagAndHEAD",
            "pgp",
            "InvalidTagSignature",
            "unable to verify Git tag: unable to verify payload with any of the given key rings".to_owned(),
        ),
        (
            "kind",
            branch("pgp"),
            "head",
            "ssh",
            "InvalidCommitSignature",
            "PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)"
                .to_owned(),
        ),
        (
            "kind2",
            branch("ssh"),
            "HEAD",
            "pgp",
            "InvalidCommitSignature",
            format!(
                "signature verification of commit '{by_ssh}' failed: unable to verify Git commit: SSH signature detected but no SSH"
            ),
        ),
        (
            "malformed",
            branch("pgp"),
            "HEAD",
            "bad",
            "InvalidCommitSignature",
            "unable to read armored key ring: ".to_owned(),
        ),
        (
            "malformed2",
            branch("ssh"),
            "HEAD",
            "bad",
            "InvalidCommitSignature",
            "unable to parse authorized key".to_owned(),
        ),
        (
            "missing",
            branch("pgp"),
            "HEAD",
            "none",
            "VerificationError",
            "public keys secret error: failed to get secret".to_owned(),
        ),
        (
            "mode",
            branch("pgp"),
            "Tag",
            "pgp",
            "InvalidVerificationMode",
            "cannot verify tag object's signature if a tag reference is not specified".to_owned(),
        ),
    ];
    for (name, reference, mode, secret, _, _) in &cases {
        setup
            .apply(name, &repo.url(), spec(reference, mode, secret))
            .await;
    }
    for (name, _, _, _, reason, message) in &cases {
        let object = setup.wait_failed(name, reason, message).await;
        let (status, found, text) = verified(&object);
        assert_eq!((status.as_str(), found.as_str()), ("False", *reason), "{name}");
        assert!(text.contains(message.as_str()), "{name}: {text}");
        assert!(object.status.as_ref().unwrap().artifact.is_none(), "{name}");
        assert_eq!(
            condition(&object, types::STALLED).is_some(),
            *name == "mode",
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_keys_are_noticed_though_the_commit_stays() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("rotation").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let (old, new) = (Signer::ssh(), Signer::ssh());
    old.commit(&repo, "main");
    setup.secret("keys", json!({"me.sshpub": old.public})).await;
    setup
        .apply(
            "rotation",
            &repo.url(),
            spec(&json!({"branch": "main"}), "HEAD", "keys"),
        )
        .await;
    setup.wait_ready("rotation").await;
    setup.secret("keys", json!({"me.sshpub": new.public})).await;
    setup.request("rotation", "1").await;
    let message = "unable to verify payload with any of the given authorized keys";
    let object = setup
        .wait_failed("rotation", "InvalidCommitSignature", message)
        .await;
    assert!(
        object.status.as_ref().unwrap().artifact.is_some(),
        "the last one stays"
    );
    setup.secret("keys", json!({"me.sshpub": old.public})).await;
    setup.request("rotation", "2").await;
    let object = setup
        .wait("rotation", "it to recover", |object| ready(object, "True"))
        .await;
    assert_eq!(verified(&object).0, "True");
}
