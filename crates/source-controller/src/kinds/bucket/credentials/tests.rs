use api::Class;

use super::*;
use crate::kinds::bucket::tests::{ldap as ldap_sts, spec};

type Data<'a> = &'a [(&'a str, &'a str)];

fn secrets(given: &[(SecretRole, Data<'_>)]) -> SourceSecrets {
    let secret = |(role, pairs): &(SecretRole, Data<'_>)| {
        let pairs: Vec<(&str, &[u8])> = pairs
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        (*role, SecretData::of("ns/dummy", &pairs))
    };
    given.iter().map(secret).collect()
}

fn of(provider: &str, endpoint: &str, given: &[(SecretRole, Data<'_>)]) -> Result<Settings, Fault> {
    let spec = spec(|spec| {
        spec.provider = Some(provider.to_owned());
        spec.endpoint = endpoint.to_owned();
        let has_sts = given.iter().any(|(role, _)| *role == SecretRole::TokenService);
        spec.sts = has_sts.then(ldap_sts).flatten();
    });
    settings(&spec, &secrets(given))
}

const AZURE: &str = "https://shop.blob.core.windows.net";
const GOOGLE: &str = "storage.googleapis.com";

#[test]
fn credentials_are_those_of_the_provider() {
    use SecretRole::{Credentials, TokenService};

    let keys: Data<'_> = &[("accesskey", "a"), ("secretkey", "canary")];
    let google =
        r#"{"type":"authorized_user","client_id":"c","client_secret":"canary","refresh_token":"canary"}"#;
    let application: Data<'_> = &[
        ("tenantId", "t"),
        ("clientId", "c"),
        ("clientSecret", "canary"),
        ("authorityHost", "https://login.test"),
    ];
    for (provider, endpoint, given, expected) in [
        ("generic", "h", &[][..], "login: Anonymous"),
        ("generic", "h", &[(Credentials, keys)], "login: Keys("),
        (
            "generic",
            "h",
            &[(TokenService, &[("username", "u"), ("password", "canary")])],
            "login: Ldap {",
        ),
        ("aws", "s3.amazonaws.com", &[(Credentials, keys)], "login: Keys("),
        ("aws", "s3.amazonaws.com", &[], "login: Own { sts: None }"),
        ("gcp", GOOGLE, &[], "login: Own"),
        (
            "gcp",
            GOOGLE,
            &[(Credentials, &[("serviceaccount", google)])],
            "login: Key(User(c))",
        ),
        ("azure", AZURE, &[], "login: Own { client_id: None }"),
        (
            "azure",
            AZURE,
            &[(Credentials, &[("clientId", "c")])],
            "Own { client_id: Some(\"c\") }",
        ),
        (
            "azure",
            AZURE,
            &[(Credentials, &[("accountKey", "Y2FuYXJ5")])],
            "account: \"shop\"",
        ),
        (
            "azure",
            AZURE,
            &[(Credentials, &[("sasKey", "?sig=canary")])],
            "login: Sas(",
        ),
        (
            "azure",
            AZURE,
            &[(Credentials, application)],
            "login: Application(",
        ),
    ] {
        let found =
            of(provider, endpoint, given).unwrap_or_else(|fault| panic!("{provider} {expected}: {fault}"));
        let output = format!("{found:?}");
        assert!(
            output.contains(expected) && !output.contains("canary"),
            "{output}"
        );
    }
}

/// The messages of the original, apart from the namespace.
#[test]
fn incomplete_secrets_are_named_with_what_is_missing() {
    use SecretRole::{Certificates, Credentials, Proxy, TokenService};

    let keys = "invalid 'dummy' secret data: required fields 'accesskey' and 'secretkey'";
    let ldap = "invalid 'dummy' secret data for 'ldap' STS provider: required fields username, password";
    for (provider, endpoint, given, expected) in [
        ("generic", "h", &[(Credentials, &[][..])][..], keys),
        ("aws", "h", &[(Credentials, &[("accesskey", "canary")])], keys),
        ("generic", "h", &[(TokenService, &[("username", "canary")])], ldap),
        (
            "generic",
            "h",
            &[(Certificates, &[("tls.crt", "canary")])],
            "failed to get TLS config: secret 'ns/dummy' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'",
        ),
        (
            "generic",
            "h",
            &[(Proxy, &[])],
            "failed to get proxy URL: secret 'ns/dummy': key 'address' not found",
        ),
        (
            "gcp",
            GOOGLE,
            &[(Credentials, &[("other", "canary")])],
            "invalid 'dummy' secret data: required fields 'serviceaccount'",
        ),
        (
            "azure",
            AZURE,
            &[(Credentials, &[("authorityHost", "https://login.test")])],
            "invalid 'dummy' secret data: requires a 'clientId', 'accountKey' or 'sasKey' field",
        ),
        (
            "azure",
            AZURE,
            &[(Credentials, &[("accountKey", "canary!")])],
            "invalid 'dummy' secret data: accountKey is not base64",
        ),
    ] {
        let fault = of(provider, endpoint, given).unwrap_err();
        assert_eq!(
            (fault.class, fault.reason),
            (Class::Retry, Reason::AuthenticationFailed)
        );
        assert!(
            fault.message.starts_with(expected) && !fault.message.contains("canary"),
            "{fault}"
        );
    }
}

#[test]
fn endpoints_that_cannot_work_stall() {
    for (provider, endpoint) in [
        ("generic", "https://h"),
        ("generic", "h/path"),
        ("gcp", "minio.test"),
        ("azure", "shop"),
        ("azure", "https://minio.test"),
    ] {
        let fault = of(provider, endpoint, &[]).unwrap_err();
        assert_eq!(
            (fault.class, fault.reason),
            (Class::Stall, Reason::URLInvalid),
            "{fault}"
        );
        assert!(
            fault.message.starts_with("failed to parse spec.endpoint: "),
            "{fault}"
        );
    }
}

#[test]
fn missing_secrets_are_named_by_their_role() {
    let read = Fault::retry(
        Reason::AuthenticationFailed,
        "failed to get secret 'ns/dummy': secrets \"dummy\" not found",
    );
    for (role, expected) in [
        (
            SecretRole::Credentials,
            "failed to get secret 'ns/dummy': secrets \"dummy\" not found",
        ),
        (
            SecretRole::Certificates,
            "failed to get TLS config: secret 'ns/dummy' not found",
        ),
        (
            SecretRole::Proxy,
            "failed to get proxy URL: secret 'ns/dummy' not found",
        ),
        (
            SecretRole::TokenService,
            "failed to get STS secret 'ns/dummy': secrets \"dummy\" not found",
        ),
        (
            SecretRole::TokenServiceCertificates,
            "failed to get STS TLS config: secret 'ns/dummy' not found",
        ),
    ] {
        assert_eq!(unreadable(role, read.clone()).message, expected);
    }
}

#[tokio::test]
async fn service_accounts_come_before_the_identity_of_the_controller() {
    use std::collections::BTreeMap;

    use cloud::{Ambient, Cloud, WorkloadIdentity, WorkloadLogin};

    use crate::source_kind::ServiceAccountData;

    let pool = "projects/1/locations/global/workloadIdentityPools/p/providers/k";
    let annotations: BTreeMap<String, String> = [
        ("eks.amazonaws.com/role-arn", "arn:aws:iam::1:role/r"),
        ("azure.workload.identity/client-id", "c"),
        ("azure.workload.identity/tenant-id", "t"),
        ("gcp.auth.fluxcd.io/workload-identity-provider", pool),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    for (cloud, endpoint, expected) in [
        (Cloud::Aws, "s3.amazonaws.com", Some("login: Role {")),
        (Cloud::Azure, AZURE, Some("Federated(***)")),
        (Cloud::Azure, "https://evil.test", None),
        (Cloud::Gcp, GOOGLE, Some("login: Workload(")),
        (Cloud::Gcp, "evil.test", None),
    ] {
        let identity = WorkloadIdentity::read(cloud, &annotations, &Ambient::default())
            .await
            .unwrap();
        let token = Secret::new("canary".to_owned());
        let mut secrets = secrets(&[]);
        secrets.service_account = Some(ServiceAccountData {
            workload: Some(WorkloadLogin::new("ns/sa", identity, token)),
            ..ServiceAccountData::default()
        });
        let spec = spec(|spec| {
            spec.provider = Some(cloud.name().to_owned());
            spec.endpoint = endpoint.to_owned();
        });
        let output = match settings(&spec, &secrets) {
            Ok(settings) => format!("{settings:?}"),
            Err(fault) => {
                assert_eq!(expected, None, "{fault}");
                continue;
            }
        };
        assert!(
            output.contains(expected.unwrap()) && !output.contains("canary"),
            "{output}"
        );
    }
}
