use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use super::*;

fn run(program: &str, home: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .env("GNUPGHOME", home)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {args:?}");
    output.stdout
}

fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("g").tempdir_in("/tmp").unwrap()
}

const GPG: &[&str] = &[
    "--batch",
    "--quiet",
    "--no-tty",
    "--pinentry-mode",
    "loopback",
    "--passphrase",
    "",
];

fn gpg(home: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    run("gpg", home, &[GPG, args].concat(), input)
}

const OF_2020: &[&str] = &["--faked-system-time", "20200101T000000"];

struct Signer {
    home: tempfile::TempDir,
    public: Vec<u8>,
    id: String,
}

impl Signer {
    fn pgp(algorithm: &str, usage: &str) -> Self {
        Self::with(&[], algorithm, usage, "never")
    }

    fn with(clock: &[&str], algorithm: &str, usage: &str, expires: &str) -> Self {
        let home = home();
        let generate = [
            "--quick-generate-key",
            "me <me@example.com>",
            algorithm,
            usage,
            expires,
        ];
        gpg(home.path(), &[clock, &generate].concat(), b"");
        let listed = gpg(home.path(), &["--list-keys", "--with-colons"], b"");
        let listed = String::from_utf8(listed).unwrap();
        let fingerprint = listed.lines().find_map(|line| line.strip_prefix("fpr:::::::::"));
        let fingerprint = fingerprint.unwrap().trim_end_matches(':').to_owned();
        if usage == "cert" {
            gpg(
                home.path(),
                &["--quick-add-key", &fingerprint, algorithm, "sign", "never"],
                b"",
            );
        }
        let public = gpg(home.path(), &["--armor", "--export"], b"");
        let id = fingerprint[24..].to_owned();
        Self { home, public, id }
    }

    fn sign(&self, payload: &[u8]) -> String {
        let args = ["--armor", "--detach-sign"];
        String::from_utf8(gpg(self.home.path(), &args, payload)).unwrap()
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let _ = Command::new("gpgconf")
            .args(["--kill", "all"])
            .env("GNUPGHOME", self.home.path())
            .status();
    }
}

fn ssh(home: &Path, args: &[&str]) -> (Vec<u8>, impl Fn(&[u8], &str) -> String) {
    let key = home.join("key");
    let base = ["-q", "-N", "", "-f", key.to_str().unwrap()];
    run("ssh-keygen", home, &[&base, args].concat(), b"");
    let public = fs::read(home.join("key.pub")).unwrap();
    let (home, key) = (home.to_owned(), key.to_str().unwrap().to_owned());
    (public, move |payload: &[u8], namespace: &str| {
        let args = ["-q", "-Y", "sign", "-n", namespace, "-f", &key];
        String::from_utf8(run("ssh-keygen", &home, &args, payload)).unwrap()
    })
}

const PAYLOAD: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nsubject\n\nbody\n";

fn commit(payload: &[u8], signature: &str) -> SignedObject {
    let text = std::str::from_utf8(payload).unwrap();
    let (headers, message) = text.split_once("\n\n").unwrap();
    let folded = signature.trim_end_matches('\n').replace('\n', "\n ");
    let object = format!("{headers}\ngpgsig {folded}\n\n{message}");
    SignedObject::of_commit("id".to_owned(), object.as_bytes())
}

fn keys(entries: &[(&str, &[u8])]) -> TrustedKeys {
    TrustedKeys::parse(entries.iter().copied()).unwrap()
}

#[test]
fn commits_and_tags_signed_by_openpgp_are_verified() {
    if testkit::skipped::lacks("gpg", "signatures by OpenPGP") {
        return;
    }
    for (algorithm, usage) in [
        ("ed25519", "sign"),
        ("rsa2048", "sign"),
        ("ed25519", "cert"),
        ("nistp256", "sign"),
    ] {
        let signer = Signer::pgp(algorithm, usage);
        let trusted = keys(&[("author.asc", &signer.public)]);
        let signature = signer.sign(PAYLOAD);
        let signed = commit(PAYLOAD, &signature);
        assert_eq!(signed.payload, PAYLOAD);
        assert_eq!(
            signed.verify(&trusted),
            Ok(signer.id.clone()),
            "{algorithm} {usage}"
        );
        let tag = [PAYLOAD, signature.as_bytes()].concat();
        assert_eq!(
            SignedObject::of_tag("t".to_owned(), &tag).verify(&trusted),
            Ok(signer.id.clone())
        );
        let garbage = format!("\n {signature}garbage\n");
        assert_eq!(
            SignedObject {
                signature: garbage,
                ..signed.clone()
            }
            .verify(&trusted),
            Ok(signer.id.clone())
        );
        let changed = commit(&PAYLOAD.replace("subject", "evil"), &signature);
        assert_eq!(changed.verify(&trusted), Err(Unverified::NoMatch("key rings")));
    }
}

#[test]
fn openpgp_keys_that_are_unknown_expired_revoked_or_not_for_signing_do_not_count() {
    if testkit::skipped::lacks("gpg", "signatures by OpenPGP") {
        return;
    }
    let (signer, other) = (Signer::pgp("ed25519", "sign"), Signer::pgp("ed25519", "sign"));
    let signed = commit(PAYLOAD, &signer.sign(PAYLOAD));
    let none = Err(Unverified::NoMatch("key rings"));
    assert_eq!(signed.verify(&keys(&[("a.asc", &other.public)])), none);
    let both = keys(&[("a.asc", &other.public), ("b", &signer.public)]);
    assert_eq!(signed.verify(&both), Ok(signer.id.clone()));

    let expired = Signer::with(OF_2020, "ed25519", "sign", "1d");
    let sign = [OF_2020, &["--armor", "--detach-sign"]].concat();
    let signature = String::from_utf8(gpg(expired.home.path(), &sign, PAYLOAD)).unwrap();
    let old = commit(PAYLOAD, &signature);
    assert_eq!(old.verify(&keys(&[("a.asc", &expired.public)])), none);
    let revoked = fs::read_dir(signer.home.path().join("openpgp-revocs.d")).unwrap();
    let revocation = fs::read_to_string(revoked.flatten().next().unwrap().path()).unwrap();
    gpg(
        signer.home.path(),
        &["--import"],
        revocation.replace(":---", "---").as_bytes(),
    );
    let public = gpg(signer.home.path(), &["--armor", "--export"], b"");
    assert_eq!(signed.verify(&keys(&[("a.asc", &public)])), none);
}

#[test]
fn commits_signed_by_ssh_are_verified() {
    for args in [
        &["-t", "ed25519"][..],
        &["-t", "ecdsa", "-b", "256"],
        &["-t", "rsa", "-b", "3072"],
    ] {
        let home = home();
        let (public, sign) = ssh(home.path(), args);
        let shown = run("ssh-keygen", home.path(), &["-l", "-f", "key.pub"], b"");
        let shown = String::from_utf8(shown).unwrap();
        let fingerprint = shown.split(' ').nth(1).unwrap().to_owned();
        let trusted = keys(&[("me.sshpub", &public)]);
        let signature = sign(PAYLOAD, "git");
        assert_eq!(
            commit(PAYLOAD, &signature).verify(&trusted),
            Ok(fingerprint),
            "{args:?}"
        );
        let none = Err(Unverified::NoMatch("authorized keys"));
        assert_eq!(commit(PAYLOAD, &sign(PAYLOAD, "file")).verify(&trusted), none);
        assert_eq!(
            commit(&PAYLOAD.replace("body", "evil"), &signature).verify(&trusted),
            none
        );
        let cut = signature.split("-----END").next().unwrap();
        let malformed = Err(Unverified::Malformed(
            "unable to unarmor SSH signature".to_owned(),
        ));
        assert_eq!(commit(PAYLOAD, cut).verify(&trusted), malformed);
    }
}

#[test]
fn missing_and_malformed_keys_are_named_by_kind() {
    let pgp = "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n";
    let ssh = "-----BEGIN SSH SIGNATURE-----\nx\n-----END SSH SIGNATURE-----\n";
    let message = |signature: &str, entries: &[(&str, &[u8])]| {
        commit(PAYLOAD, signature)
            .verify(&keys(entries))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(pgp, &[]),
        "PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)"
    );
    assert_eq!(
        message(ssh, &[]),
        "SSH signature detected but no SSH public keys found in secret (keys with .sshpub suffix)"
    );
    assert!(message(pgp, &[("a.asc", b"x")]).starts_with("unable to read armored key ring: "));
    assert!(message(ssh, &[("a.sshpub", b"x y")]).starts_with("unable to parse authorized key"));
    assert_eq!(
        message("-----BEGIN SIGNED MESSAGE-----\n", &[]),
        "unsupported signature type: x509"
    );
    assert_eq!(
        message("-----BEGIN PGP MESSAGE-----\n", &[]),
        "unsupported signature type: unknown"
    );
    let unsigned = SignedObject::of_commit("id".to_owned(), PAYLOAD);
    assert!(!unsigned.is_signed());
    let error = unsigned.verify(&TrustedKeys::default()).unwrap_err();
    assert_eq!(error.to_string(), "unsupported signature type: empty");
}

#[test]
fn fingerprint_of_the_keys_changes_with_names_and_content() {
    let of = |entries: &[(&str, &[u8])]| keys(entries).fingerprint().to_owned();
    let first = of(&[("a", b"1"), ("b", b"2")]);
    assert_eq!(first, of(&[("b", b"2"), ("a", b"1")]));
    assert_ne!(first, of(&[("a", b"1")]));
    assert_ne!(first, of(&[("a", b"12"), ("b", b"")]));
}

#[test]
fn signed_objects_are_bounded_before_they_are_hashed() {
    let keys = keys(&[("a.sshpub", b"")]);
    let large = [b"tree x\n\n".as_slice(), &vec![b'a'; PAYLOAD_BYTES]].concat();
    let error = commit(&large, SSH).verify(&keys).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the signed object has more than 16777216 bytes"
    );
}
