//! Envelopes in CBOR: COSE with one signature.

use super::content::{AUTHENTIC_SIGNING_TIME, EXPIRY, Envelope, PLUGIN, Raw, SCHEME, SIGNING_TIME};
use crate::notation::{
    cbor::{Value, head},
    key::Algorithm,
    rejected::Rejected,
};

pub(in super::super) const COSE: &str = "application/cose";

/// Tags of an envelope, and of a time in seconds since 1970.
const SIGN1: u64 = 18;
const TIME: u64 = 1;
const ALGORITHM: Value<'static> = Value::Int(1);
const CRITICAL: Value<'static> = Value::Int(2);
const CONTENT_TYPE: Value<'static> = Value::Int(3);
const CHAIN: Value<'static> = Value::Int(33);

pub(super) fn parse(bytes: &[u8]) -> Result<Envelope, Rejected> {
    let document = Value::parse(bytes).ok_or(Rejected::Malformed)?;
    let Value::Tag(SIGN1, document) = &document else {
        return Err(Rejected::Malformed);
    };
    let Some([signed, unsigned, payload, signature]) = document.list() else {
        return Err(Rejected::Malformed);
    };
    let content = |value: &Value<'_>| value.bytes().map(<[u8]>::to_vec).ok_or(Rejected::Malformed);
    let raw_attributes = signed.bytes().ok_or(Rejected::Malformed)?;
    let protected = Value::parse(raw_attributes).ok_or(Rejected::Malformed)?;
    let number = protected.get(&ALGORITHM).and_then(Value::int);
    let number = number.ok_or(Rejected::Malformed)?;
    let chain = unsigned.get(&CHAIN).and_then(Value::list).unwrap_or_default();
    let payload = content(payload)?;
    let content_type = protected.get(&CONTENT_TYPE).and_then(Value::text);
    Ok(Envelope {
        message: message(raw_attributes, &payload),
        signature: content(signature)?,
        algorithm: Algorithm::of_cose(number).ok_or_else(|| Rejected::Algorithm(number.to_string()))?,
        chain: chain.iter().map(content).collect::<Result<_, _>>()?,
        content_type: content_type.unwrap_or_default().to_owned(),
        payload,
        attributes: attributes(&protected)?.checked()?,
    })
}

/// Returns the signed bytes: a list of a context, the signed attributes, no external data, and the payload.
fn message(attributes: &[u8], payload: &[u8]) -> Vec<u8> {
    let context = b"Signature1";
    let mut out = Vec::new();
    head(4, 4, &mut out);
    for (kind, content) in [(3, &context[..]), (2, attributes), (2, &[]), (2, payload)] {
        head(kind, content.len(), &mut out);
        out.extend_from_slice(content);
    }
    out
}

fn attributes(protected: &Value<'_>) -> Result<Raw, Rejected> {
    let text = |name: &str| match protected.get(&Value::Text(name)) {
        None => Ok(None),
        Some(value) => value.text().map(Some).ok_or(Rejected::Malformed),
    };
    let moment = |name: &str| match protected.get(&Value::Text(name)) {
        None => Ok(None),
        Some(Value::Tag(TIME, seconds)) => seconds.int().map(Some).ok_or(Rejected::Malformed),
        Some(_) => Err(Rejected::Malformed),
    };
    let names = protected.get(&CRITICAL).and_then(Value::list);
    let names = names.ok_or(Rejected::Attributes("no attribute is critical"))?;
    let critical = names.iter().map(|label| match (protected.get(label), label) {
        (None, _) => Err(Rejected::Attributes("a critical attribute is missing")),
        // These labels are known to every reader.
        (Some(_), Value::Int(1..=3)) => Ok(None),
        (Some(_), Value::Int(number)) => Ok(Some(number.to_string())),
        (Some(_), Value::Text(name)) => Ok(Some((*name).to_owned())),
        (Some(_), _) => Err(Rejected::Malformed),
    });
    let critical: Vec<Option<String>> = critical.collect::<Result<_, _>>()?;
    Ok(Raw {
        scheme: text(SCHEME)?.map(str::to_owned),
        signing_time: moment(SIGNING_TIME)?,
        authentic_signing_time: moment(AUTHENTIC_SIGNING_TIME)?,
        expiry: moment(EXPIRY)?,
        plugin: text(PLUGIN)?.map(str::to_owned),
        critical: critical.into_iter().flatten().collect(),
    })
}
