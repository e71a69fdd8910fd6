//! Who asks Helm repositories, registries and Git repositories, told by flags and by the environment.

mod docker;
mod git;
mod place;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use api::Secret;
use clap::Args;
use oci::{Access, Credentials, Identity};

use self::place::{Place, is_match};

/// Flags with credentials and certificates. Each begins with the place that it is for.
#[derive(Args)]
pub(crate) struct LoginArgs {
    /// The user of a Helm repository
    #[arg(long, value_name = "HOST/PATH=USER", help_heading = "Helm repositories")]
    helm_username: Vec<String>,
    /// The password of a Helm repository
    #[arg(long, value_name = "HOST/PATH=PASSWORD", help_heading = "Helm repositories")]
    helm_password: Vec<String>,
    /// User and password of a Helm repository
    #[arg(
        long,
        value_name = "HOST/PATH=USER:PASSWORD",
        help_heading = "Helm repositories"
    )]
    helm_creds: Vec<String>,
    /// A file with the certificates that a Helm repository is known by
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_ca_file: Vec<String>,
    /// A file with the certificate that a Helm repository is shown
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_cert_file: Vec<String>,
    /// A file with the key of that certificate
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_key_file: Vec<String>,
    /// Trust a Helm repository whatever certificate it shows
    #[arg(long, value_name = "HOST/PATH", help_heading = "Helm repositories")]
    helm_insecure_skip_tls_verify: Vec<String>,

    /// The user of a Git repository
    #[arg(long, value_name = "HOST/PATH=USER", help_heading = "Git repositories")]
    git_username: Vec<String>,
    /// The password of a Git repository, or a token
    #[arg(long, value_name = "HOST/PATH=PASSWORD", help_heading = "Git repositories")]
    git_password: Vec<String>,
    /// A file with the certificates that a Git repository is known by
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Git repositories")]
    git_ca_file: Vec<String>,

    /// The user of a registry
    #[arg(long, value_name = "HOST/PATH=USER", help_heading = "Registries")]
    registry_username: Vec<String>,
    /// The password of a registry
    #[arg(long, value_name = "HOST/PATH=PASSWORD", help_heading = "Registries")]
    registry_password: Vec<String>,
    /// User and password of a registry
    #[arg(long, value_name = "HOST/PATH=USER:PASSWORD", help_heading = "Registries")]
    registry_creds: Vec<String>,
    /// A token that a registry gives others for, as its login prints it
    #[arg(long, value_name = "HOST/PATH=TOKEN", help_heading = "Registries")]
    registry_identity_token: Vec<String>,
    /// A token that a registry takes
    #[arg(long, value_name = "HOST/PATH=TOKEN", help_heading = "Registries")]
    registry_token: Vec<String>,
    /// A file with the certificates that a registry is known by
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Registries")]
    registry_ca_file: Vec<String>,
    /// A file with the certificate that a registry is shown
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Registries")]
    registry_cert_file: Vec<String>,
    /// A file with the key of that certificate
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Registries")]
    registry_key_file: Vec<String>,
    /// Speak http to a registry
    #[arg(long, value_name = "HOST/PATH", help_heading = "Registries")]
    registry_plain_http: Vec<String>,
    /// Trust a registry whatever certificate it shows
    #[arg(long, value_name = "HOST/PATH", help_heading = "Registries")]
    registry_insecure_skip_tls_verify: Vec<String>,
}

/// What kind of place a login is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Helm,
    Registry,
    Git,
}

/// What is known of one place.
#[derive(Debug, Clone, Default)]
struct Login {
    /// The only scheme that it is for; any, if there is none.
    scheme: Option<String>,
    host: String,
    /// A pattern; any path, if there is none.
    path: Option<String>,
    username: String,
    password: Option<Secret<String>>,
    token: Option<Secret<String>>,
    identity_token: Option<Secret<String>>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    insecure: bool,
    pass: bool,
    plain: bool,
}

/// What is known of all places. The first that fits counts.
#[derive(Debug, Default)]
pub(crate) struct Logins(Vec<(Kind, Login)>);

impl Logins {
    /// Those of flags, then those of the environment.
    pub(crate) fn new(args: &LoginArgs) -> Result<Self> {
        let mut all = of_flags(args)?;
        all.extend(of_environment(std::env::vars())?);
        all.extend(git::of_files()?);
        all.extend(docker::of_file()?);
        Ok(Self(all))
    }

    /// Those of registries in a file as Docker writes it, or in the one that programs share.
    pub(crate) fn of_registries(file: Option<&Path>) -> Result<Self> {
        match file {
            Some(file) => docker::of_path(file).map(Self),
            None => docker::of_file().map(Self),
        }
    }

    /// How an address is reached.
    pub(crate) fn access(&self, address: &str) -> Result<Access> {
        let kind = match address.split_once("://") {
            Some(("oci", _)) => Kind::Registry,
            _ => Kind::Helm,
        };
        let found = self.find(kind, address);
        found.map_or_else(|| Ok(Access::default()), Login::access)
    }

    fn find(&self, kind: Kind, address: &str) -> Option<&Login> {
        let place = Place::of(address)?;
        let mut logins = self.0.iter().filter(|(of, _)| *of == kind);
        let (_, login) = logins.find(|(_, login)| login.fits(&place))?;
        Some(login)
    }
}

impl Login {
    fn of_place(place: &str) -> Self {
        let (host, path) = place
            .split_once('/')
            .map_or((place, None), |(host, path)| (host, Some(path)));
        Self {
            host: host.to_owned(),
            path: path.map(str::to_owned).filter(|path| !path.is_empty()),
            ..Self::default()
        }
    }

    fn fits(&self, place: &Place) -> bool {
        let is_host = [&place.host, &place.whole]
            .iter()
            .any(|host| self.host.eq_ignore_ascii_case(host));
        let is_scheme = self.scheme.as_ref().is_none_or(|scheme| *scheme == place.scheme);
        let path = self.path.as_deref();
        is_host && is_scheme && path.is_none_or(|path| is_match(path.as_bytes(), place.path.as_bytes()))
    }

    fn access(&self) -> Result<Access> {
        let credentials = match (&self.token, &self.identity_token, &self.password) {
            (Some(token), ..) => Some(Credentials::Bearer(token.clone())),
            (None, Some(token), _) => Some(Credentials::Identity(token.clone())),
            (None, None, Some(password)) => Some(Credentials::Basic {
                username: self.username.clone(),
                password: password.clone(),
            }),
            (None, None, None) => None,
        };
        let identity = identity(self.certificate.as_deref(), self.key.as_deref());
        Ok(Access {
            credentials,
            pass_credentials: self.pass,
            ca: read(self.ca.as_deref())?,
            identity: identity.with_context(|| self.host.clone())?,
            insecure_skip_verify: self.insecure,
            plain_http: self.plain,
        })
    }

    /// Sets a field by the name that the environment has for it.
    fn set(&mut self, field: &str, value: &str) -> Result<()> {
        let yes = || match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "t" => Ok(true),
            "false" | "0" | "f" | "" => Ok(false),
            _ => Err(anyhow!("{field} is true or false")),
        };
        match field {
            "HOST" => value.clone_into(&mut self.host),
            "PATH" | "REPOSITORY" => self.path = Some(value.to_owned()).filter(|path| !path.is_empty()),
            "USERNAME" => value.clone_into(&mut self.username),
            "PASSWORD" => self.password = Some(Secret::new(value.to_owned())),
            "CREDS" => {
                let (user, password) = value
                    .split_once(':')
                    .ok_or_else(|| anyhow!("a user and a password have a colon between them"))?;
                user.clone_into(&mut self.username);
                self.password = Some(Secret::new(password.to_owned()));
            }
            "IDENTITY_TOKEN" => self.identity_token = Some(Secret::new(value.to_owned())),
            "TOKEN" => self.token = Some(Secret::new(value.to_owned())),
            "CA_FILE" | "CA_BUNDLE" => self.ca = Some(value.into()),
            "CERT_FILE" => self.certificate = Some(value.into()),
            "KEY_FILE" => self.key = Some(value.into()),
            "INSECURE_SKIP_TLS_VERIFY" => self.insecure = yes()?,
            "PASS_CREDENTIALS_ALL" => self.pass = yes()?,
            "PLAIN_HTTP" => self.plain = yes()?,
            _ => bail!("{field} is not supported"),
        }
        Ok(())
    }
}

/// What a file of certificates or keys holds.
pub(crate) fn read(file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    let read = |file: &Path| std::fs::read(file).with_context(|| format!("read {}", file.display()));
    file.map(read).transpose()
}

/// What a client shows.
pub(crate) fn identity(certificate: Option<&Path>, key: Option<&Path>) -> Result<Option<Identity>> {
    Ok(match (read(certificate)?, read(key)?) {
        (Some(certificate), Some(key)) => Some(Identity {
            certificate,
            key: Secret::new(key),
        }),
        (None, None) => None,
        _ => bail!("a client's certificate and its key go together"),
    })
}

fn of_flags(args: &LoginArgs) -> Result<Vec<(Kind, Login)>> {
    use Kind::{Git, Helm, Registry};
    let with_values = [
        (Helm, "USERNAME", &args.helm_username),
        (Helm, "PASSWORD", &args.helm_password),
        (Helm, "CREDS", &args.helm_creds),
        (Helm, "CA_FILE", &args.helm_ca_file),
        (Helm, "CERT_FILE", &args.helm_cert_file),
        (Helm, "KEY_FILE", &args.helm_key_file),
        (Git, "USERNAME", &args.git_username),
        (Git, "PASSWORD", &args.git_password),
        (Git, "CA_FILE", &args.git_ca_file),
        (Registry, "USERNAME", &args.registry_username),
        (Registry, "PASSWORD", &args.registry_password),
        (Registry, "CREDS", &args.registry_creds),
        (Registry, "IDENTITY_TOKEN", &args.registry_identity_token),
        (Registry, "TOKEN", &args.registry_token),
        (Registry, "CA_FILE", &args.registry_ca_file),
        (Registry, "CERT_FILE", &args.registry_cert_file),
        (Registry, "KEY_FILE", &args.registry_key_file),
    ];
    let switches = [
        (
            Helm,
            "INSECURE_SKIP_TLS_VERIFY",
            &args.helm_insecure_skip_tls_verify,
        ),
        (Registry, "PLAIN_HTTP", &args.registry_plain_http),
        (
            Registry,
            "INSECURE_SKIP_TLS_VERIFY",
            &args.registry_insecure_skip_tls_verify,
        ),
    ];
    let mut places = BTreeMap::<(Kind, String), Login>::new();
    let mut set = |kind, place: &str, field: &str, value: &str| {
        let login = places.entry((kind, place.to_owned()));
        login.or_insert_with(|| Login::of_place(place)).set(field, value)
    };
    for (kind, field, texts) in with_values {
        for text in texts {
            // The text may be a password.
            let (place, value) = text.split_once('=').ok_or_else(|| {
                let flag = format!("{kind:?}-{field}").to_lowercase().replace('_', "-");
                anyhow!("--{flag} is HOST/PATH=VALUE")
            })?;
            set(kind, place, field, value)?;
        }
    }
    for (kind, field, texts) in switches {
        for place in texts {
            set(kind, place, field, "true")?;
        }
    }
    // A place with a path is more exact than its host.
    let (exact, hosts) = places
        .into_iter()
        .partition::<Vec<_>, _>(|(_, login)| login.path.is_some());
    Ok(exact
        .into_iter()
        .chain(hosts)
        .map(|((kind, _), login)| (kind, login))
        .collect())
}

/// `KLUCTL_HELM_HOST`, `KLUCTL_HELM_1_HOST` and their like.
fn of_environment(all: impl Iterator<Item = (String, String)>) -> Result<Vec<(Kind, Login)>> {
    let mut places = BTreeMap::<(Kind, Option<u32>), Login>::new();
    for (name, value) in all {
        let kinds = [
            ("KLUCTL_HELM_", Kind::Helm),
            ("KLUCTL_REGISTRY_", Kind::Registry),
            ("KLUCTL_GIT_", Kind::Git),
        ];
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
        let login = places.entry((kind, number)).or_default();
        login.set(field, &value).with_context(|| name.clone())?;
    }
    for login in places.values_mut() {
        // A registry may be named with its repository.
        if login.host.is_empty()
            && let Some((host, path)) = login.path.as_deref().and_then(|path| path.split_once('/'))
        {
            (login.host, login.path) = (host.to_owned(), Some(path.to_owned()));
        }
    }
    Ok(places
        .into_iter()
        .map(|((kind, _), login)| (kind, login))
        .collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        logins: LoginArgs,
    }

    fn flags(flags: &[&str]) -> Logins {
        let args = Cli::parse_from(std::iter::once(&"weir").chain(flags));
        Logins(of_flags(&args.logins).unwrap())
    }

    fn user(access: &Access) -> &str {
        match &access.credentials {
            Some(Credentials::Basic { username, .. }) => username,
            Some(Credentials::Bearer(_) | Credentials::Identity(_)) => "(token)",
            None => "",
        }
    }

    #[test]
    fn a_login_is_for_its_place_alone() {
        let logins = flags(&[
            "--helm-creds=h:8080=all:p",
            "--helm-username=h:8080/a/*=some",
            "--helm-password=h:8080/a/*=p",
            "--registry-token=h/x=t",
            "--registry-plain-http=h/x",
        ]);
        for (address, expected) in [
            ("https://h:8080", "all"),
            ("https://u:p@H:8080/b?x", "all"),
            ("https://h:8080/a/b/", "some"),
            ("https://h:8080/a/b/c", "all"),
            ("https://h/a/b", ""),
            // What is read in two ways goes where it is sent.
            ("https://other\\@h:8080/a/b", ""),
            ("https://other?@h:8080/a/b", ""),
            ("https://other#@h:8080/a/b", ""),
            ("https://h:8080/a/x/../../b", "all"),
            ("https://h:8080/z/../a/b", "some"),
            ("oci://h:8080/a/b", ""),
            ("oci://h/x", "(token)"),
            ("oci://h/y", ""),
        ] {
            assert_eq!(user(&logins.access(address).unwrap()), expected, "{address}");
        }
        assert!(logins.access("oci://h/x").unwrap().plain_http);
        let shown = format!("{logins:?}");
        assert!(!shown.contains("\"p\"") && !shown.contains("\"t\""), "{shown}");
    }

    #[test]
    fn the_environment_has_logins_too() {
        let set = [
            ("KLUCTL_HELM_HOST", "a"),
            ("KLUCTL_HELM_USERNAME", "one"),
            ("KLUCTL_HELM_PASSWORD", "p"),
            ("KLUCTL_HELM_1_HOST", "b"),
            ("KLUCTL_HELM_1_USERNAME", "two"),
            ("KLUCTL_HELM_1_PASSWORD", "p"),
            ("KLUCTL_HELM_1_INSECURE_SKIP_TLS_VERIFY", "true"),
            ("KLUCTL_REGISTRY_2_REPOSITORY", "c/**"),
            ("KLUCTL_REGISTRY_2_TOKEN", "t"),
            ("KLUCTL_OTHER", "x"),
        ];
        let vars = |set: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = set
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            of_environment(pairs.into_iter())
        };
        let logins = Logins(vars(&set).unwrap());
        assert_eq!(user(&logins.access("https://a/x").unwrap()), "one");
        let two = logins.access("https://b/x").unwrap();
        assert!(user(&two) == "two" && two.insecure_skip_verify);
        assert_eq!(user(&logins.access("oci://c/x/y").unwrap()), "(token)");
        let known = Logins(
            vars(&[
                ("KLUCTL_REGISTRY_HOST", "h"),
                ("KLUCTL_REGISTRY_IDENTITY_TOKEN", "x"),
            ])
            .unwrap(),
        );
        let credentials = known.access("oci://h/a").unwrap().credentials;
        assert_eq!(
            credentials,
            Some(Credentials::Identity(Secret::new("x".to_owned())))
        );
        let error = vars(&[("KLUCTL_REGISTRY_PASSPHRASE", "s3cret")]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "KLUCTL_REGISTRY_PASSPHRASE: PASSPHRASE is not supported"
        );
    }

    #[test]
    fn flags_without_a_place_are_refused_without_their_value() {
        let args = Cli::parse_from(["weir", "--helm-password", "s3cret"]);
        let error = of_flags(&args.logins).unwrap_err().to_string();
        assert_eq!(error, "--helm-password is HOST/PATH=VALUE");
    }
}
