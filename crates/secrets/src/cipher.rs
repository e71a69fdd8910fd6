//! One encrypted value: `ENC[AES256_GCM,data:...,iv:...,tag:...,type:...]`.

use std::fmt;

use aes_gcm::{
    AesGcm, KeyInit, Nonce,
    aead::{
        Aead, Payload,
        array::ArraySize,
        consts::{U12, U32},
    },
    aes::Aes256,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use zeroize::Zeroizing;

use crate::document::Value;

const BEGIN: &str = "ENC[AES256_GCM,data:";

/// The key of a file's values. It prints as `***` and is overwritten when it is no longer needed.
#[derive(Clone, PartialEq, Eq)]
pub struct DataKey(Zeroizing<[u8; 32]>);

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl DataKey {
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        if bytes.len() != key.len() {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    /// Decrypts a value whose additional data is `path`.
    pub(crate) fn open(&self, text: &str, path: &str) -> Result<Value, &'static str> {
        if text.is_empty() {
            return Ok(Value::Text(String::new()));
        }
        let sealed = Sealed::parse(text).ok_or("it is no value that SOPS encrypted")?;
        let clear = match sealed.iv.len() {
            32 => self.unsealed::<U32>(&sealed, path),
            12 => self.unsealed::<U12>(&sealed, path),
            _ => return Err("its iv has another length than 32 bytes"),
        };
        let clear = clear.ok_or("it was encrypted with another key, under another path, or changed since")?;
        typed(clear, sealed.kind)
    }

    fn unsealed<N: ArraySize>(&self, sealed: &Sealed<'_>, path: &str) -> Option<Vec<u8>> {
        let cipher = AesGcm::<Aes256, N>::new_from_slice(&*self.0).ok()?;
        let nonce = Nonce::<N>::try_from(sealed.iv.as_slice()).ok()?;
        let payload = Payload {
            msg: &sealed.data,
            aad: path.as_bytes(),
        };
        cipher.decrypt(&nonce, payload).ok()
    }
}

struct Sealed<'t> {
    /// The data, followed by the tag.
    data: Vec<u8>,
    iv: Vec<u8>,
    kind: &'t str,
}

impl<'t> Sealed<'t> {
    fn parse(text: &'t str) -> Option<Self> {
        let (data, rest) = text.strip_prefix(BEGIN)?.split_once(",iv:")?;
        let (iv, rest) = rest.split_once(",tag:")?;
        let (tag, rest) = rest.split_once(",type:")?;
        let (kind, _) = rest.rsplit_once(']')?;
        let tag = BASE64_STANDARD.decode(tag).ok().filter(|tag| tag.len() == 16)?;
        let mut data = BASE64_STANDARD.decode(data).ok()?;
        data.extend(tag);
        Some(Self {
            data,
            iv: BASE64_STANDARD.decode(iv).ok()?,
            kind,
        })
    }
}

fn typed(clear: Vec<u8>, kind: &str) -> Result<Value, &'static str> {
    if matches!(kind, "str" | "bytes") {
        return Ok(Value::text(clear));
    }
    let clear = Zeroizing::new(String::from_utf8(clear).map_err(|_| "it is no UTF-8")?);
    let value = match kind {
        "int" => clear.parse().ok().map(Value::Int),
        "float" => go_float(&clear).map(Value::Float),
        "bool" => go_bool(&clear).map(Value::Bool),
        "time" => time(&clear).map(Value::Time),
        "comment" => Some(Value::Comment((*clear).clone())),
        _ => return Err("it has an unknown type"),
    };
    value.ok_or("it is no value of its type")
}

fn go_float(text: &str) -> Option<f64> {
    text.parse().ok()
}

fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Formats a time in RFC 3339, without zeros at the end of its fraction.
pub(crate) fn time(text: &str) -> Option<String> {
    text.parse::<jiff::Timestamp>().ok()?;
    let (date, time) = text.split_once('T')?;
    let zone = time.find(['Z', '+', '-'])?;
    let (time, zone) = time.split_at_checked(zone)?;
    let time = match time.split_once('.') {
        Some((seconds, fraction)) => match fraction.trim_end_matches('0') {
            "" => seconds.to_owned(),
            fraction => format!("{seconds}.{fraction}"),
        },
        None => time.to_owned(),
    };
    let zone = if zone == "+00:00" { "Z" } else { zone };
    Some(format!("{date}T{time}{zone}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_types_match_go() {
        for (clear, kind, value) in [
            ("1", "int", Ok(Value::Int(1))),
            ("1.50", "float", Ok(Value::Float(1.5))),
            ("True", "bool", Ok(Value::Bool(true))),
            ("x", "bool", Err("it is no value of its type")),
            ("x", "comment", Ok(Value::Comment("x".to_owned()))),
            ("x", "x", Err("it has an unknown type")),
            (
                "2020-01-01T10:00:00.500Z",
                "time",
                Ok(Value::Time("2020-01-01T10:00:00.5Z".to_owned())),
            ),
        ] {
            assert_eq!(typed(clear.as_bytes().to_vec(), kind), value, "{clear} {kind}");
        }
        assert_eq!(typed(vec![0xff], "str"), Ok(Value::Bytes(vec![0xff])));
        assert_eq!(typed(vec![0xff], "int"), Err("it is no UTF-8"));
    }

    #[test]
    fn invalid_encrypted_values_are_refused() {
        let key = DataKey::new(&[7; 32]).unwrap();
        assert_eq!(key.open("", ""), Ok(Value::Text(String::new())));
        for (text, why) in [
            ("plain", "it is no value that SOPS encrypted"),
            (
                "ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]",
                "it is no value that SOPS encrypted",
            ),
            (
                "ENC[AES256_GCM,data:AA==,iv:AA==,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]",
                "its iv has another length than 32 bytes",
            ),
            (
                "ENC[AES256_GCM,data:AA==,iv:AAAAAAAAAAAAAAAA,tag:AAAAAAAAAAAAAAAAAAAAAA==,type:str]",
                "it was encrypted with another key, under another path, or changed since",
            ),
        ] {
            assert_eq!(key.open(text, ""), Err(why), "{text}");
        }
        assert_eq!(DataKey::new(&[7; 16]), None);
        assert_eq!(format!("{key:?}"), "***");
    }
}
