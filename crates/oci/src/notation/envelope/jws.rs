//! Envelopes in JSON: JWS with one signature.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::content::{AUTHENTIC_SIGNING_TIME, EXPIRY, Envelope, PLUGIN, Raw, SCHEME, SIGNING_TIME, time};
use crate::notation::{
    key::Algorithm,
    rejected::{Rejected, bounded},
};

pub(in super::super) const JWS: &str = "application/jose+json";

#[derive(Deserialize)]
struct Document {
    payload: String,
    protected: String,
    header: Header,
    signature: String,
}

#[derive(Deserialize)]
struct Header {
    x5c: Vec<String>,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Envelope, Rejected> {
    let document: Document = serde_json::from_slice(bytes).map_err(|_| Rejected::Malformed)?;
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| Rejected::Malformed);
    let protected: Map<String, Value> =
        serde_json::from_slice(&decoded(&document.protected)?).map_err(|_| Rejected::Malformed)?;
    let text = |name: &str| match protected.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(Rejected::Malformed),
    };
    let moment = |name: &str| match text(name)? {
        None => Ok(None),
        Some(text) => time(text).map(Some).ok_or(Rejected::Malformed),
    };
    let algorithm = text("alg")?.ok_or(Rejected::Malformed)?;
    let raw = Raw {
        scheme: text(SCHEME)?.map(str::to_owned),
        signing_time: moment(SIGNING_TIME)?,
        authentic_signing_time: moment(AUTHENTIC_SIGNING_TIME)?,
        expiry: moment(EXPIRY)?,
        plugin: text(PLUGIN)?.map(str::to_owned),
        critical: critical(&protected)?,
    };
    let chain = document.header.x5c.iter().map(|der| STANDARD.decode(der));
    Ok(Envelope {
        message: format!("{}.{}", document.protected, document.payload).into_bytes(),
        signature: decoded(&document.signature)?,
        algorithm: Algorithm::of_jws(algorithm).ok_or_else(|| Rejected::Algorithm(bounded(algorithm)))?,
        chain: chain.collect::<Result<_, _>>().map_err(|_| Rejected::Malformed)?,
        content_type: text("cty")?.unwrap_or_default().to_owned(),
        payload: decoded(&document.payload)?,
        attributes: raw.checked()?,
    })
}

/// Returns the names of the critical attributes, all of which must exist.
fn critical(protected: &Map<String, Value>) -> Result<Vec<String>, Rejected> {
    let Some(Value::Array(names)) = protected.get("crit") else {
        return Err(Rejected::Attributes("no attribute is critical"));
    };
    let names = names.iter().map(|name| match name {
        Value::String(name) if protected.contains_key(name) => Ok(name.clone()),
        _ => Err(Rejected::Attributes("a critical attribute is missing")),
    });
    names.collect()
}
