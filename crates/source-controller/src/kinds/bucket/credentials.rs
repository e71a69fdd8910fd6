//! Credentials and certificates from the Secrets of a Bucket. Pure.

use api::{Fault, Reason, Secret, source::BucketSpec};
use bucket::{Service, Settings, azure, gcs, s3};
use cloud::{
    Workload,
    aws::LdapIdentity,
    azure::{Client as Application, Proof},
    gcp,
};
use net::Tls;
use runtime::secret::SecretData;
use url::Url;

use super::spec::{self, Provider};
use crate::{
    proxy,
    source_kind::{SecretRole, SourceSecrets},
};

const UNREADABLE: &str = "failed to get secret ";
const NO_PROXY: &str = "failed to get proxy URL";

/// Returns the fault of an unreadable Secret, in the original's words.
pub(super) fn unreadable(role: SecretRole, fault: Fault) -> Fault {
    let of_sts = || match fault.message.strip_prefix(UNREADABLE) {
        Some(rest) => format!("failed to get STS secret {rest}"),
        None => fault.message.clone(),
    };
    let message = match role {
        SecretRole::Credentials
        | SecretRole::TrustedKeys
        | SecretRole::TrustedRoot
        | SecretRole::ServiceAccount => {
            return fault;
        }
        SecretRole::TokenService => of_sts(),
        SecretRole::Certificates => format!("failed to get TLS config: {}", not_found(&fault.message)),
        SecretRole::Proxy => format!("{NO_PROXY}: {}", not_found(&fault.message)),
        SecretRole::TokenServiceCertificates => {
            format!("failed to get STS TLS config: {}", not_found(&fault.message))
        }
    };
    Fault { message, ..fault }
}

/// Shortens `failed to get secret 'ns/a': secrets "a" not found` to `secret 'ns/a' not found`.
fn not_found(message: &str) -> String {
    let named = message
        .strip_prefix(UNREADABLE)
        .filter(|rest| rest.ends_with(" not found"))
        .and_then(|rest| rest.split_once(": "));
    named.map_or_else(
        || message.to_owned(),
        |(name, _)| format!("secret {name} not found"),
    )
}

pub(super) fn settings(spec: &BucketSpec, secrets: &SourceSecrets) -> Result<Settings, Fault> {
    let provider = spec::provider(spec)?;
    let secret = secrets.get(SecretRole::Credentials);
    let endpoint = |error: bucket::Error| {
        Fault::stall(
            Reason::URLInvalid,
            format!("failed to parse spec.endpoint: {error}"),
        )
    };
    let account = secrets.service_account.as_ref();
    let workload = account.and_then(|account| Some(account.workload.as_ref()?.workload()));
    let service = match provider {
        Provider::Generic | Provider::Aws => {
            let login = s3_login(spec, provider, secrets, workload)?;
            let location = s3::Location::new(&spec.endpoint, login, spec.insecure).map_err(endpoint)?;
            let region = spec.region.as_deref().unwrap_or_default();
            Service::S3(location.with_region(region))
        }
        Provider::Gcp => {
            let login = match (workload, secret) {
                (Some(Workload::Gcp(workload)), _) => gcs::Login::Workload(workload.clone()),
                (_, None) => gcs::Login::Own,
                (_, Some(secret)) => gcs::Login::Key(Box::new(google_key(secret)?)),
            };
            Service::Gcs(gcs::Location::new(&spec.endpoint, login, spec.insecure).map_err(endpoint)?)
        }
        Provider::Azure => {
            let login = match (workload, secret) {
                (Some(Workload::Azure(application)), _) => azure::Login::Application(application.clone()),
                (_, None) => azure::Login::Own { client_id: None },
                (_, Some(secret)) => azure_login(secret, &spec.endpoint)?,
            };
            Service::Azure(azure::Location::new(&spec.endpoint, login).map_err(endpoint)?)
        }
    };
    let proxy = secrets.get(SecretRole::Proxy);
    Ok(Settings {
        name: spec.bucket_name.clone(),
        service,
        tls: tls(secrets.get(SecretRole::Certificates), "failed to get TLS config")?,
        proxy: proxy.map(|secret| proxy::read(secret, NO_PROXY)).transpose()?,
    })
}

fn s3_login(
    spec: &BucketSpec,
    provider: Provider,
    secrets: &SourceSecrets,
    workload: Option<&Workload>,
) -> Result<s3::Login, Fault> {
    let sts = spec.sts.as_ref();
    let sts = sts.map(|sts| spec::token_service(provider, sts)).transpose()?;
    if let Some(secret) = secrets.get(SecretRole::Credentials) {
        let both = (text(secret, "accesskey")?, text(secret, "secretkey")?);
        let (Some(access), Some(key)) = both else {
            return Err(invalid(secret, "required fields 'accesskey' and 'secretkey'"));
        };
        return Ok(s3::keys(&access, Secret::new(key)));
    }
    if let Some(Workload::Aws(token)) = workload {
        let token = token.clone();
        return Ok(s3::Login::Role { token, sts });
    }
    match (provider, sts) {
        (Provider::Aws, sts) => Ok(s3::Login::Own { sts }),
        (_, None) => Ok(s3::Login::Anonymous),
        (_, Some(endpoint)) => Ok(s3::Login::Ldap {
            endpoint,
            identity: ldap(secrets.get(SecretRole::TokenService))?,
            tls: tls(
                secrets.get(SecretRole::TokenServiceCertificates),
                "failed to get STS TLS config",
            )?,
        }),
    }
}

fn ldap(secret: Option<&SecretData>) -> Result<LdapIdentity, Fault> {
    const REQUIRED: &str = "required fields username, password";
    let missing = |name: &str| {
        let message = format!("invalid '{name}' secret data for 'ldap' STS provider: {REQUIRED}");
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    let Some(secret) = secret else {
        let message = format!("the STS provider 'ldap' needs spec.sts.secretRef: {REQUIRED}");
        return Err(Fault::stall(Reason::InvalidSTSConfiguration, message));
    };
    match (text(secret, "username")?, text(secret, "password")?) {
        (Some(username), Some(password)) => Ok(LdapIdentity {
            username,
            password: Secret::new(password),
        }),
        _ => Err(missing(short(secret))),
    }
}

fn google_key(secret: &SecretData) -> Result<gcp::Credentials, Fault> {
    let key = secret.bytes(&["serviceaccount"]);
    let key = key.ok_or_else(|| invalid(secret, "required fields 'serviceaccount'"))?;
    gcp::Credentials::parse(key).map_err(|error| invalid(secret, &format!("serviceaccount: {error}")))
}

/// Returns the first kind of credentials that is complete, in the original's order.
fn azure_login(secret: &SecretData, endpoint: &str) -> Result<azure::Login, Fault> {
    const NEEDED: &str = "requires a 'clientId', 'accountKey' or 'sasKey' field, a combination of 'tenantId', 'clientId' and \
                          'clientSecret', or 'tenantId', 'clientId' and 'clientCertificate'";
    secret.refuse(
        &[
            ("clientCertificatePassword", "an encrypted client certificate"),
            ("clientCertificateSendChain", "the certificate chain in tokens"),
        ],
        "a certificate and its key as PEM in 'clientCertificate'",
    )?;
    let field = |name: &str| text(secret, name);
    let (tenant, client_id) = (field("tenantId")?, field("clientId")?);
    let proof = match (field("clientSecret")?, field("clientCertificate")?) {
        (Some(password), _) => Some(Proof::Secret(Secret::new(password))),
        (None, Some(pem)) => Some(Proof::Certificate(Secret::new(pem))),
        (None, None) => None,
    };
    let authority = field("authorityHost")?.map(|url| Url::parse(&url)).transpose();
    let authority = authority.map_err(|_| invalid(secret, "authorityHost is not a URL"))?;
    match (tenant, client_id, proof) {
        (Some(tenant), Some(client_id), Some(proof)) => {
            return Ok(azure::Login::Application(Box::new(Application {
                tenant,
                client_id,
                proof,
                authority,
            })));
        }
        (None, client_id @ Some(_), None) if authority.is_none() => {
            return Ok(azure::Login::Own { client_id });
        }
        _ => {}
    }
    if let Some(key) = field("accountKey")? {
        let account = azure::Location::account(endpoint).unwrap_or_default();
        let key = azure::AccountKey::new(&account, &key);
        let key = key.ok_or_else(|| invalid(secret, "accountKey is not base64"))?;
        return Ok(azure::Login::AccountKey(key));
    }
    if let Some(sas) = field("sasKey")? {
        let sas = sas.trim().trim_start_matches('?').to_owned();
        return Ok(azure::Login::Sas(Secret::new(sas)));
    }
    Err(invalid(secret, NEEDED))
}

fn tls(secret: Option<&SecretData>, failed: &str) -> Result<Tls, Fault> {
    let Some(secret) = secret else {
        return Ok(Tls::default());
    };
    let refused = || {
        let message = format!(
            "{failed}: secret '{}' must contain either 'ca.crt' or both 'tls.crt' and 'tls.key'",
            secret.name()
        );
        Fault::retry(Reason::AuthenticationFailed, message)
    };
    let identity = secret.identity().map_err(|_| refused())?;
    if secret.ca().is_none() && identity.is_none() {
        return Err(refused());
    }
    let identity = identity.map(|(certificate, key)| {
        let both = [certificate, b"\n", key.expose().as_slice()].concat();
        Secret::new(both)
    });
    Ok(Tls {
        identity,
        ..Tls::with_ca(secret.ca())
    })
}

/// Returns the trimmed string at a key; `None` if it is missing or empty.
fn text(secret: &SecretData, key: &str) -> Result<Option<String>, Fault> {
    let found = secret
        .string(key)
        .map_err(|_| invalid(secret, &format!("{key} is not UTF-8")))?;
    Ok(found)
}

fn invalid(secret: &SecretData, why: &str) -> Fault {
    let message = format!("invalid '{}' secret data: {why}", short(secret));
    Fault::retry(Reason::AuthenticationFailed, message)
}

fn short(secret: &SecretData) -> &str {
    let name = secret.name();
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests;
