//! Logins from environment variables.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use remote::ServerKind;

use super::Login;

/// Variable that turns off the verification of certificates for all registries.
const INSECURE_REGISTRIES: &str = "KLUCTL_REGISTRY_DEFAULT_INSECURE_SKIP_TLS_VERIFY";

/// Variables that have the prefix of a login, but set none.
const NOT_LOGINS: [&str; 2] = [INSECURE_REGISTRIES, "KLUCTL_GIT_CACHE_UPDATE_INTERVAL"];

pub(super) fn insecure_registries() -> Result<bool> {
    match std::env::var(INSECURE_REGISTRIES) {
        Ok(value) => parse_switch(INSECURE_REGISTRIES, &value),
        Err(_) => Ok(false),
    }
}

pub(super) fn parse_switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "t" => Ok(true),
        "false" | "0" | "f" | "" => Ok(false),
        _ => Err(anyhow!("{name} must be true or false")),
    }
}

/// Reads the logins of environment variables such as `KLUCTL_HELM_HOST` and `KLUCTL_HELM_1_HOST`.
pub(super) fn of_environment(
    all: impl Iterator<Item = (String, String)>,
) -> Result<Vec<(ServerKind, Login)>> {
    let mut servers = BTreeMap::<(ServerKind, Option<u32>), Login>::new();
    for (name, value) in all {
        let kinds = [
            ("KLUCTL_HELM_", ServerKind::Helm),
            ("KLUCTL_REGISTRY_", ServerKind::Registry),
            ("KLUCTL_GIT_", ServerKind::Git),
        ];
        if NOT_LOGINS.contains(&name.as_str()) {
            continue;
        }
        let Some((rest, kind)) = kinds
            .iter()
            .find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, *kind)))
        else {
            continue;
        };
        let (number, field) = match rest.split_once('_') {
            Some((digits, field)) if digits.parse::<u32>().is_ok() => (digits.parse().ok(), field),
            _ => (None, rest),
        };
        let login = servers.entry((kind, number)).or_default();
        login.set(field, &value).with_context(|| name.clone())?;
    }
    for login in servers.values_mut() {
        // REPOSITORY may contain the host.
        if login.host.is_empty()
            && let Some((host, path)) = login.path.as_deref().and_then(|path| path.split_once('/'))
        {
            (login.host, login.path) = (host.to_owned(), Some(path.to_owned()));
        }
    }
    Ok(servers
        .into_iter()
        .map(|((kind, _), login)| (kind, login))
        .collect())
}
