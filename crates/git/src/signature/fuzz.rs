//! Damaged objects, signatures and keys.

use testkit::fuzz::{self, Random};

use super::{SignedObject, TrustedKeys};
use crate::{Remote, submodule};

const WORDS: &[&str] = &[
    "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n",
    "gpgsig ",
    "gpgsig-sha256 x\n",
    "-----BEGIN PGP SIGNATURE-----",
    "-----END PGP SIGNATURE-----",
    "-----BEGIN SSH SIGNATURE-----",
    "-----END SSH SIGNATURE-----",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----",
    "-----END PGP PUBLIC KEY BLOCK-----",
    "ssh-ed25519 ",
    "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ",
    "U1NIU0lHAAAAAQ",
    "iHUEABYKAB0WIQ",
    "=ab12",
    "\n",
    "\n\n",
    " ",
    "\n ",
    "#",
    "\u{0}",
    "é",
];

const MODULES: &[&str] = &[
    "[submodule \"a\"]\n",
    "[submodule]\n",
    "path = ",
    "url = ",
    "../",
    "./",
    "a/b",
    "/",
    "https://h/x",
    "git@h:x",
    "ssh://",
    "\"",
    "\\",
    "\n",
    "[include]\n path = /etc/passwd\n",
    "..",
    "%2e%2e",
    "\u{0}",
];

#[test]
fn fuzz_signatures_are_never_made_by_nobody() {
    fuzz::run("git signatures", |random: &mut Random| {
        let object = random.text(WORDS, 0..30);
        let (public, text) = (random.text(WORDS, 0..8), random.text(WORDS, 0..8));
        random.note("object", &object);
        random.note("keys", &(&public, &text));
        let keys = TrustedKeys::parse([("a.asc", public.as_bytes()), ("b.sshpub", text.as_bytes())]).unwrap();
        let commit = SignedObject::of_commit("c".to_owned(), object.as_bytes());
        let tag = SignedObject::of_tag("t".to_owned(), object.as_bytes());
        assert!(commit.verify(&keys).is_err() && tag.verify(&keys).is_err());
        assert!(object.len() >= commit.payload.len() + commit.signature.len());
        assert_eq!(object.len(), tag.payload.len() + tag.signature.len());
    });
}

#[test]
fn fuzz_submodules_stay_on_their_server_and_in_their_directory() {
    fuzz::run("git submodules", |random: &mut Random| {
        let text = random.text(MODULES, 0..20);
        random.note("text", &text);
        for (path, url) in submodule::parse(text.as_bytes()).unwrap_or_default() {
            assert!(!path.is_root() && !path.components().any(|part| part == ".."));
            let base = Remote::new("https://me:pw@git.example.com/org/app").unwrap();
            let Ok(child) = base.submodule(&url) else {
                continue;
            };
            let (url, own) = (child.url(), child.auth().map(|auth| auth.username.as_str()));
            let same =
                url.scheme() == "https" && url.host_str() == Some("git.example.com") && url.port().is_none();
            assert!(same || own != Some("me"), "{url}");
        }
    });
}
