//! Random files of profiles.

use testkit::fuzz;

use crate::aws::{Base, Profiles};

const PIECES: &[&str] = &[
    "[default]\n",
    "[profile a]\n",
    "[profile b]\n",
    "[a]\n",
    "[sso-session s]\n",
    "source_profile = a\n",
    "source_profile = b\n",
    "role_arn = r\n",
    "credential_source = Environment\n",
    "web_identity_token_file = f\n",
    "sso_session = s\n",
    "sso_account_id = 1\n",
    "sso_role_name = x\n",
    "sso_region = y\n",
    "sso_start_url = z\n",
    "aws_access_key_id = k\n",
    "aws_secret_access_key = s3cret\n",
    "credential_process = p\n",
    "=",
    "[",
    "]",
    "\n",
    " ",
    "#",
    ";",
    "é",
];

#[test]
fn fuzz_profiles_end_in_an_answer() {
    fuzz::run("profiles of AWS", |random| {
        let (config, keys) = (random.text(PIECES, 0..20), random.text(PIECES, 0..8));
        random.note("config, credentials", &(&config, &keys));
        let all = Profiles::read(&config, &keys);
        assert!(!format!("{all:?}").contains("s3cret"));
        for name in ["default", "a", "b", "nope"] {
            match all.chain(name) {
                Ok(chain) => {
                    assert!(all.has(name) && chain.roles.len() <= 10);
                    let is_known = !matches!(chain.base, Base::Sso(ref sso) if sso.login.is_empty());
                    assert!(is_known, "{chain:?}");
                }
                Err(error) => assert!(!error.to_string().contains("s3cret"), "{error}"),
            }
        }
    });
}
