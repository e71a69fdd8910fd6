//! Random addresses against credentials, at the limits of their lengths.

use testkit::fuzz::{self, Random};
use url::Url;

use crate::{CredentialEntry, SecretCredentials, ServerAddress, SourceCredentials, UrlCredentials};

const PIECES: &[&str] = &[
    "https://", "http://", "oci://", "ssh://", "git@", "h.io", "evil.io", ":443", ":8443", ":", "/", "..",
    "/a", "/b", "%2e", "@", "?", "#", "*", "**", "é",
];

fn address(random: &mut Random) -> String {
    match random.flag() {
        true => random.text(PIECES, 0..9),
        false => {
            let path = random
                .text(&["/a", "/b", "/..", "/%2e%2e", "a"], 0..6)
                .repeat(1 + random.below(300));
            let scheme = random.pick(&["https", "http", "oci"]);
            let host = random.pick(&["h.io", "H.IO", "h.io:443", "evil.io", "h.io.evil.io"]);
            format!("{scheme}://{host}{path}")
        }
    }
}

#[test]
fn fuzz_credentials_go_to_their_server_only() {
    fuzz::run("addresses and credentials", |random| {
        let (own, asked, id) = (address(random), address(random), *random.pick(&["", "id"]));
        random.note("own, asked, id", &(&own, &asked, id));
        let values = [
            ("url", own.as_str()),
            ("credentialsId", id),
            ("password", "s3cret"),
        ];
        let mut all = UrlCredentials::default();
        let entry = |key: &str| {
            let found = values.iter().find(|(name, _)| *name == key);
            found.map(|(_, value)| value.as_bytes())
        };
        let is_valid = all.add_helm(entry).is_ok() && !own.is_empty();
        let access = all.helm(&asked, Some("id")).unwrap();
        if is_valid && access.credentials.is_some() {
            let (own, asked) = (Url::parse(&own).unwrap(), Url::parse(&asked).unwrap());
            assert_eq!(
                own.origin().ascii_serialization(),
                asked.origin().ascii_serialization()
            );
            assert_eq!(
                (own.scheme(), own.port_or_known_default()),
                (asked.scheme(), asked.port_or_known_default())
            );
            assert!(
                own.host_str()
                    .unwrap()
                    .eq_ignore_ascii_case(asked.host_str().unwrap())
            );
        }
        let host = ServerAddress::parse(&own).map_or_else(|| own.clone(), |server| server.host);
        let pattern = random
            .text(&["*", "**", "?", "/", "a"], 0..6)
            .repeat(1 + random.below(200));
        let secret = CredentialEntry {
            host: host.clone(),
            path: Some(pattern),
            values: [("password".to_owned(), b"s3cret".to_vec().into())].into(),
        };
        let of_secrets = SecretCredentials {
            git: vec![secret; 1 + random.below(30)],
            ..SecretCredentials::default()
        };
        if let Ok((Some(_), _)) = of_secrets.git(&asked) {
            let asked = ServerAddress::parse(&asked).unwrap();
            let hosts = [asked.host, asked.host_with_port];
            assert!(hosts.iter().any(|other| other.eq_ignore_ascii_case(&host)));
        }
    });
}
