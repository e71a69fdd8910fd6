//! Profiles of `~/.aws/config` and `~/.aws/credentials`.

use std::collections::HashMap;

use api::Secret;

use super::{Assume, Credentials, Sso};
use crate::Error;

const WHAT: &str = "profile of AWS";
/// Default name of a session in logs.
const SESSION: &str = "weir";
const MAX_CHAIN: usize = 10;

type Section = HashMap<String, String>;

#[derive(Default)]
pub struct Profiles {
    profiles: HashMap<String, Section>,
    sessions: HashMap<String, Section>,
}

impl std::fmt::Debug for Profiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.profiles.keys()).finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub base: Base,
    pub roles: Vec<Assume>,
    pub region: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    Keys(Credentials),
    WebIdentity {
        role_arn: String,
        session: String,
        file: String,
    },
    Sso(Sso),
    Environment,
    Instance,
    Container,
}

impl Profiles {
    /// Reads both files; `credentials` has precedence. Invalid lines are skipped, as the AWS CLI does.
    #[must_use]
    pub fn read(config: &str, credentials: &str) -> Self {
        let mut all = Self::default();
        for (name, section) in sections(config) {
            if let Some(session) = name.strip_prefix("sso-session ") {
                all.sessions
                    .entry(session.trim().to_owned())
                    .or_default()
                    .extend(section);
            } else if let Some(name) = name
                .strip_prefix("profile ")
                .or((name == "default").then_some("default"))
            {
                all.profiles
                    .entry(name.trim().to_owned())
                    .or_default()
                    .extend(section);
            }
        }
        for (name, section) in sections(credentials) {
            all.profiles.entry(name.to_owned()).or_default().extend(section);
        }
        all
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.profiles.contains_key(name)
    }

    /// Returns the steps that lead to the credentials of a profile.
    ///
    /// # Errors
    /// Fails when the profile is missing, invalid, or needs a program or a code from a device.
    pub fn chain(&self, name: &str) -> Result<Chain, Error> {
        let mut roles = Vec::new();
        let mut seen = vec![name];
        let base = loop {
            let current = seen.last().copied().unwrap_or(name);
            let section = self.section(current)?;
            match section.get("role_arn") {
                Some(_) if seen.len() > 1 && keys(section).is_some() => break self.base(current, section)?,
                Some(role) => match self.role(current, section, role)? {
                    Role::Itself(base) => break base,
                    Role::For(assume, base) => {
                        roles.push(assume);
                        break base;
                    }
                    Role::Behind(assume, next) => {
                        roles.push(assume);
                        if next == current {
                            break self.base(current, section)?;
                        }
                        if seen.contains(&next) || seen.len() >= MAX_CHAIN {
                            let why = format!("{name}: source_profile leads round in circles");
                            return Err(Error::credentials(WHAT, why));
                        }
                        seen.push(next);
                    }
                },
                None => break self.base(current, section)?,
            }
        };
        roles.reverse();
        Ok(Chain {
            base,
            roles,
            region: self.section(name)?.get("region").cloned(),
        })
    }

    fn section(&self, name: &str) -> Result<&Section, Error> {
        let found = self.profiles.get(name);
        found.ok_or_else(|| Error::credentials(WHAT, format!("there is none of the name {name}")))
    }

    fn role<'p>(&self, name: &str, section: &'p Section, role: &str) -> Result<Role<'p>, Error> {
        let get = |key: &str| section.get(key).map(String::as_str);
        let refused = |why: &str| Err(Error::credentials(WHAT, format!("{name}: {why}")));
        let session = get("role_session_name").unwrap_or(SESSION).to_owned();
        if let Some(file) = get("web_identity_token_file") {
            return Ok(Role::Itself(Base::WebIdentity {
                role_arn: role.to_owned(),
                session,
                file: file.to_owned(),
            }));
        }
        if get("mfa_serial").is_some() {
            return refused("mfa_serial is not supported: nobody is asked for a code; use a profile of SSO");
        }
        let assume = Assume {
            role_arn: role.to_owned(),
            session,
            external_id: get("external_id").map(str::to_owned),
        };
        match (get("source_profile"), get("credential_source")) {
            (Some(next), None) => Ok(Role::Behind(assume, next)),
            (None, Some("Environment")) => Ok(Role::For(assume, Base::Environment)),
            (None, Some("Ec2InstanceMetadata")) => Ok(Role::For(assume, Base::Instance)),
            (None, Some("EcsContainer")) => Ok(Role::For(assume, Base::Container)),
            (None, Some(_)) => {
                refused("credential_source is Environment, Ec2InstanceMetadata or EcsContainer")
            }
            (Some(_), Some(_)) => refused("only one of source_profile and credential_source can be set"),
            (None, None) => {
                refused("role_arn needs source_profile, credential_source or web_identity_token_file")
            }
        }
    }

    fn base(&self, name: &str, section: &Section) -> Result<Base, Error> {
        if let Some(keys) = keys(section) {
            return Ok(Base::Keys(keys));
        }
        let wrong = |why: &str| Error::credentials(WHAT, format!("{name}: {why}"));
        if let Some(account) = section.get("sso_account_id") {
            let session = section.get("sso_session");
            let login = match session {
                Some(session) => self
                    .sessions
                    .get(session)
                    .ok_or_else(|| wrong("there is no [sso-session] of that name"))?,
                None => section,
            };
            let text = |from: &Section, key: &str| {
                let found = from.get(key).cloned();
                found.ok_or_else(|| wrong(&format!("{key} is missing")))
            };
            let start = text(login, "sso_start_url")?;
            return Ok(Base::Sso(Sso {
                account: account.clone(),
                role: text(section, "sso_role_name")?,
                region: text(login, "sso_region")?,
                login: session.cloned().unwrap_or(start),
            }));
        }
        Err(wrong(match section.contains_key("credential_process") {
            true => "credential_process is not supported: no programs are run",
            false => "it has no keys, no role and no login",
        }))
    }
}

/// Credentials that a role is assumed with.
enum Role<'p> {
    Itself(Base),
    For(Assume, Base),
    Behind(Assume, &'p str),
}

fn keys(section: &Section) -> Option<Credentials> {
    Some(Credentials {
        access_key_id: section.get("aws_access_key_id")?.clone(),
        secret_access_key: Secret::new(section.get("aws_secret_access_key")?.clone()),
        session_token: section.get("aws_session_token").cloned().map(Secret::new),
    })
}

/// Returns the sections of a file. Indented lines belong to settings that are maps, and are skipped.
fn sections(text: &str) -> Vec<(&str, Section)> {
    let mut found: Vec<(&str, Section)> = Vec::new();
    for line in text.lines() {
        let bare = line.split(" #").next().unwrap_or_default();
        let bare = bare.split(" ;").next().unwrap_or_default().trim_end();
        if bare.starts_with([' ', '\t', '#', ';']) {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            found.push((name.trim(), Section::new()));
        } else if let (Some((key, value)), Some((_, section))) = (bare.split_once('='), found.last_mut()) {
            section.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    for (_, section) in &mut found {
        section.retain(|_, value| !value.is_empty());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
[default]
region = eu-central-1 # near
[profile keys]
aws_access_key_id = fromconfig
[profile role]
role_arn = arn:aws:iam::1:role/outer
source_profile = inner
external_id = x1
s3 =
  max_concurrent_requests = 1
[profile inner]
role_arn = arn:aws:iam::1:role/inner
source_profile = keys
role_session_name = me
[profile self]
role_arn = arn:aws:iam::1:role/self
source_profile = self
[profile web]
role_arn = arn:aws:iam::1:role/web
web_identity_token_file = /token
[profile ecs]
role_arn = arn:aws:iam::1:role/ecs
credential_source = EcsContainer
[profile a]
role_arn = r
source_profile = b
[profile b]
role_arn = r
source_profile = a
[profile mfa]
role_arn = r
source_profile = keys
mfa_serial = s
[profile process]
credential_process = /bin/s3cret
[profile sso]
sso_session = corp
sso_account_id = 12
sso_role_name = dev
[sso-session corp]
sso_region = us-west-2
sso_start_url = https://corp.example.com/start
[profile old]
sso_start_url = https://old.example.com/start
sso_region = us-east-1
sso_account_id = 13
sso_role_name = ops
[profile lost]
sso_session = nope
sso_account_id = 1
[profile nothing]
region = x
[profile alone]
role_arn = r
";

    const KEYS: &str = "[keys]\naws_access_key_id=AKID\naws_secret_access_key = s3cret\n\n[self]\naws_access_key_id=S\naws_secret_access_key=s3cret\n";

    #[test]
    fn profiles_resolve_to_credential_chains() {
        let all = Profiles::read(CONFIG, KEYS);
        let shown = |name: &str| match all.chain(name) {
            Ok(chain) => {
                let base = match &chain.base {
                    Base::Keys(keys) => keys.access_key_id.clone(),
                    Base::WebIdentity { role_arn, file, .. } => format!("{role_arn} by {file}"),
                    Base::Sso(sso) => format!("{}/{} {} {}", sso.account, sso.role, sso.region, sso.login),
                    other => format!("{other:?}"),
                };
                let roles = chain.roles.iter().map(|role| {
                    let id = role.external_id.as_deref().unwrap_or("-");
                    format!(
                        " > {} {} {id}",
                        role.role_arn.trim_start_matches("arn:aws:iam::1:role/"),
                        role.session
                    )
                });
                base + &roles.collect::<String>()
            }
            Err(error) => {
                let error = error.to_string();
                assert!(!error.contains("s3cret"), "{error}");
                error
            }
        };
        for (name, expected) in [
            ("keys", "AKID"),
            ("role", "AKID > inner me - > outer weir x1"),
            ("self", "S > self weir -"),
            ("web", "arn:aws:iam::1:role/web by /token"),
            ("ecs", "Container > ecs weir -"),
            ("sso", "12/dev us-west-2 corp"),
            ("old", "13/ops us-east-1 https://old.example.com/start"),
        ] {
            assert_eq!(shown(name), expected, "{name}");
        }
        for (name, expected) in [
            ("a", "leads round in circles"),
            ("mfa", "mfa_serial is not supported"),
            ("process", "no programs are run"),
            ("lost", "no [sso-session]"),
            ("nothing", "it has no keys"),
            ("alone", "role_arn needs source_profile"),
            ("unknown", "there is none of the name unknown"),
        ] {
            assert!(shown(name).contains(expected), "{name}: {}", shown(name));
        }
        assert!(all.has("default") && !all.has("profile keys"));
        assert_eq!(all.profiles["default"]["region"], "eu-central-1");
        assert!(!format!("{all:?}").contains("s3cret"));
    }

    /// Malformed files end in an error, not in a panic or a loop.
    #[test]
    fn malformed_files_give_no_credentials() {
        for text in [
            "",
            "[",
            "[]\n=\n",
            "x=1",
            "[profile a]\nrole_arn\n",
            "[profile \u{fffd}]\n a=b\n[default]\n=x",
        ] {
            let all = Profiles::read(text, text);
            for name in all.profiles.keys() {
                assert!(all.chain(name).is_err(), "{text:?}");
            }
        }
    }
}
