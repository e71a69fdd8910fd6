//! Keys and certificates, with the time and randomness of the environment.

use std::{any::Any, net::IpAddr, rc::Rc, time::Duration};

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, SanType, SerialNumber,
};
use tree::Budget;

use super::{
    arguments::{any, int, list, text},
    context::Context,
    encoding::from_base64,
    keys::{Key, decode_pem, encode_pem},
    table::{Answer, Entry, fixed},
};
use crate::template::{FormatError, FunctionError};
use crate::{Object, Value, template::Type};

const CERTIFICATE: Type = Type::Object("sprig.certificate");
const NAMED: &[Type] = &[Type::String, Type::List, Type::List, Type::Int];
const NAMED_WITH_KEY: &[Type] = &[Type::String, Type::List, Type::List, Type::Int, Type::String];
const SIGNED: &[Type] = &[Type::String, Type::List, Type::List, Type::Int, CERTIFICATE];
const SIGNED_WITH_KEY: &[Type] = &[
    Type::String,
    Type::List,
    Type::List,
    Type::Int,
    CERTIFICATE,
    Type::String,
];

pub(super) const TABLE: &[Entry] = &[
    fixed("genPrivateKey", &[Type::String], private_key),
    fixed("buildCustomCert", &[Type::String, Type::String], custom),
    fixed("genCA", &[Type::String, Type::Int], |context, arguments| {
        authority(context, arguments, &Key::rsa(context, 2048)?)
    }),
    fixed(
        "genCAWithKey",
        &[Type::String, Type::Int, Type::String],
        |context, arguments| authority(context, arguments, &given_key(text(arguments, 2))?),
    ),
    fixed("genSelfSignedCert", NAMED, |context, arguments| {
        self_signed(context, arguments, &Key::rsa(context, 2048)?)
    }),
    fixed(
        "genSelfSignedCertWithKey",
        NAMED_WITH_KEY,
        |context, arguments| self_signed(context, arguments, &given_key(text(arguments, 4))?),
    ),
    fixed("genSignedCert", SIGNED, |context, arguments| {
        signed(context, arguments, &Key::rsa(context, 2048)?)
    }),
    fixed("genSignedCertWithKey", SIGNED_WITH_KEY, |context, arguments| {
        signed(context, arguments, &given_key(text(arguments, 5))?)
    }),
];

struct Certificate {
    cert: String,
    key: String,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificate")
            .field("cert", &self.cert)
            .finish_non_exhaustive()
    }
}

impl Object for Certificate {
    fn type_name(&self) -> &str {
        "sprig.certificate"
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::string(self.cert.as_str())),
            "Key" => Some(Value::string(self.key.as_str())),
            _ => None,
        }
    }

    fn call(&self, _: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        None
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn data(&self) -> Option<Value> {
        Some(Value::dict([
            ("Cert", Value::string(self.cert.as_str())),
            ("Key", Value::string(self.key.as_str())),
        ]))
    }

    fn print(&self, _: &Budget) -> Result<String, FormatError> {
        Ok(format!("{{{} {}}}", self.cert, self.key))
    }
}

fn given_key(pem: &str) -> Result<Key, FunctionError> {
    Key::parse(pem).map_err(|error| format!("parsing private key: {error}").into())
}

fn private_key(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let key = match text(arguments, 0) {
        "" | "rsa" => Key::rsa(context, 4096)?,
        "ecdsa" => Key::ecdsa(context)?,
        "ed25519" => Key::ed25519(context),
        "dsa" => return Err("keys for DSA are not supported: use rsa, ecdsa or ed25519".into()),
        other => return Ok(Value::string(format!("Unknown type {other}"))),
    };
    Ok(Value::string(key.pem()))
}

fn custom(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let decoded = |index: usize, what: &str| {
        from_base64(text(arguments, index))
            .map(|bytes| go::bytes::to_string(&bytes))
            .map_err(|_| format!("unable to decode base64 {what}"))
    };
    let (cert, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
    decode_pem(&cert).ok_or("unable to decode certificate")?;
    Key::parse(&key).map_err(|error| format!("error parsing private key: {error}"))?;
    Ok(Value::Object(Rc::new(Certificate { cert, key })))
}

fn parameters(context: &Context<'_>, name: &str, days: i64) -> CertificateParams {
    let mut serial = [0; 16];
    context.environment.fill(&mut serial);
    let (now, _) = context.environment.now();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let start = epoch + Duration::from_secs(now.clamp(0, 100_000_000_000).unsigned_abs());
    let valid = Duration::from_secs(days.clamp(-1_000_000, 1_000_000).unsigned_abs() * 86_400);
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    let mut parameters = CertificateParams::default();
    parameters.not_before = start;
    parameters.not_after = if days < 0 { start - valid } else { start + valid };
    parameters.serial_number = Some(SerialNumber::from_slice(&serial));
    parameters.distinguished_name = subject;
    parameters.is_ca = IsCa::NoCa;
    parameters.custom_extensions = vec![no_authority()];
    parameters.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    parameters.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    parameters
}

/// Returns the basic constraints of a certificate that is not a CA. rcgen would add a key identifier, which Go omits.
fn no_authority() -> CustomExtension {
    let mut extension = CustomExtension::from_oid_content(&[2, 5, 29, 19], vec![0x30, 0]);
    extension.set_criticality(true);
    extension
}

/// Returns the parameters of functions that also take IP addresses and DNS names.
fn named(context: &Context<'_>, arguments: &[Value]) -> Result<CertificateParams, FunctionError> {
    let mut parameters = parameters(context, text(arguments, 0), int(arguments, 3));
    let print = |value: &Value| crate::template::print(std::slice::from_ref(value), context.budget);
    let (addresses, names) = (list(arguments, 1), list(arguments, 2));
    context.items(addresses.len() + names.len())?;
    for name in names.iter() {
        let Value::String(text) = name else {
            return Err(format!(
                "error processing alternate dns name: {} is not a string",
                print(name)?
            )
            .into());
        };
        context.strings(1, text.len())?;
        let name = text
            .as_ref()
            .try_into()
            .map_err(|_| format!("error processing alternate dns name: {text}"))?;
        parameters.subject_alt_names.push(SanType::DnsName(name));
    }
    for address in addresses.iter() {
        let Value::String(text) = address else {
            return Err(format!("error parsing ip: {} is not a string", print(address)?).into());
        };
        let address: IpAddr = text.parse().map_err(|_| format!("error parsing ip: {text}"))?;
        parameters.subject_alt_names.push(SanType::IpAddress(address));
    }
    Ok(parameters)
}

/// The cost of a signature by a given key, in steps.
const SIGNATURE: u64 = 1_000_000;

/// Returns the pair of a key that is about to sign.
fn signing(context: &Context<'_>, key: &Key) -> Result<rcgen::KeyPair, FunctionError> {
    context.work(SIGNATURE)?;
    key.pair()
}

fn made(certificate: Result<rcgen::Certificate, rcgen::Error>, key: &Key) -> Answer {
    let certificate = certificate.map_err(|error| format!("error creating certificate: {error}"))?;
    let cert = encode_pem("CERTIFICATE", certificate.der());
    Ok(Value::Object(Rc::new(Certificate { cert, key: key.pem() })))
}

fn authority(context: &Context<'_>, arguments: &[Value], key: &Key) -> Answer {
    let mut parameters = parameters(context, text(arguments, 0), int(arguments, 1));
    parameters.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    parameters.custom_extensions.clear();
    parameters.key_usages.push(KeyUsagePurpose::KeyCertSign);
    made(parameters.self_signed(&signing(context, key)?), key)
}

fn self_signed(context: &Context<'_>, arguments: &[Value], key: &Key) -> Answer {
    made(
        named(context, arguments)?.self_signed(&signing(context, key)?),
        key,
    )
}

fn signed(context: &Context<'_>, arguments: &[Value], key: &Key) -> Answer {
    let authority = match any(arguments, 4) {
        Value::Object(object) => object.as_any().and_then(<dyn Any>::downcast_ref::<Certificate>),
        _ => None,
    };
    let authority = authority.ok_or("unable to decode certificate")?;
    decode_pem(&authority.cert).ok_or("unable to decode certificate")?;
    let signer = Key::parse(&authority.key).map_err(|error| format!("error parsing private key: {error}"))?;
    let issuer = Issuer::from_ca_cert_pem(&authority.cert, signing(context, &signer)?)
        .map_err(|error| format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))?;
    let mut parameters = named(context, arguments)?;
    parameters.use_authority_key_identifier_extension = true;
    made(parameters.signed_by(&key.pair()?, &issuer), key)
}
