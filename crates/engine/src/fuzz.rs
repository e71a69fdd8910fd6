//! Names and addresses of tenants, of any length.

use std::path::PathBuf;

use testkit::fuzz;

use crate::{EnvironmentVariables, ExternalAccess, SourceOverride, discriminator};

const PIECES: &[&str] = &[
    "https://", "oci://", "git@", "h.io", ":", "/", "..", ".", "a", "*", "**", "%2e", "@", "?", "#", "é",
    "\0", " ",
];

#[test]
fn fuzz_addresses_and_names_take_bounded_work() {
    fuzz::run("addresses of sources", |random| {
        let address = random.text(PIECES, 0..9).repeat(1 + random.below(500));
        let key = random.text(PIECES, 0..6).repeat(1 + random.below(50));
        random.note("address, key", &(&address, &key));
        let external = ExternalAccess {
            overrides: (0..random.below(20))
                .map(|number| SourceOverride {
                    oci: number % 2 == 0,
                    group: random.flag(),
                    key: format!("{key}{number}"),
                    dir: PathBuf::from("/dir"),
                })
                .collect(),
            ..ExternalAccess::default()
        };
        for oci in [true, false] {
            if let Some(dir) = external.overridden(&address, oci) {
                assert!(dir.starts_with("/dir") && !dir.to_string_lossy().contains("/../"));
            }
        }
        let only =
            EnvironmentVariables::new([(key.clone(), address.clone())]).only(std::slice::from_ref(&key));
        assert!(only.get(&key).is_ok());
        assert_eq!(discriminator::check(&address).is_ok(), {
            let is_label = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !address.is_empty()
                && address.len() <= 63
                && address.chars().all(is_label)
                && address.starts_with(|c: char| c.is_ascii_alphanumeric())
                && address.ends_with(|c: char| c.is_ascii_alphanumeric())
        });
    });
}
