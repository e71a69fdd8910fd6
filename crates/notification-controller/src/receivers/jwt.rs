//! Signed tokens: read within bounds, and verified with the keys of their issuer only.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum length of a token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// Maximum number of keys of an issuer.
const MAX_KEYS: usize = 100;
/// Maximum size of a part of a key, in bytes: an RSA key of 8192 bits, more than which none verifies.
const MAX_KEY_BYTES: usize = 1024 + 1;
/// Maximum length of the ID and the algorithm of a key, in bytes. Keys with longer ones are left out.
const MAX_NAME: usize = 1024;
/// Maximum time by which a token may come from the future, in seconds.
const LEEWAY: f64 = 300.0;

/// The reason why a token is refused. It never has a part of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    /// It is not a signed token.
    #[error("the token is no JWT")]
    Malformed,
    #[error("the algorithm of the token is not accepted")]
    Algorithm,
    #[error("the issuer has no key with the ID of the token")]
    UnknownKey,
    #[error("the signature of the token is wrong")]
    Signature,
    #[error("the token has another issuer")]
    Issuer,
    #[error("the token has another audience")]
    Audience,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    TooEarly,
}

pub(crate) struct Unverified<'a> {
    algorithm: String,
    key: Option<String>,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

impl<'a> Unverified<'a> {
    pub(crate) fn parse(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed);
        };
        let signed = token.get(..header.len() + 1 + claims.len()).unwrap_or_default();
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Malformed);
        let header: Header = serde_json::from_slice(&bytes(header)?).map_err(|_| TokenError::Malformed)?;
        if header.crit.is_some() {
            return Err(TokenError::Algorithm);
        }
        Ok(Self {
            algorithm: header.alg,
            key: header.kid,
            claims: serde_json::from_slice(&bytes(claims)?).map_err(|_| TokenError::Malformed)?,
            signed,
            signature: bytes(signature)?,
        })
    }

    pub(crate) fn issuer(&self) -> &str {
        self.claims.get("iss").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the claims if one of the keys signed them, and they are for this audience now, in seconds since the epoch.
    pub(crate) fn verify(
        self,
        keys: &KeySet,
        issuers: &[&str],
        audience: &str,
        now: i64,
    ) -> Result<Map<String, Value>, TokenError> {
        if !ALGORITHMS.contains(&self.algorithm.as_str()) {
            return Err(TokenError::Algorithm);
        }
        let wanted = |key: &&Key| self.key.is_none() || key.id == self.key;
        let mut fitting = keys.0.iter().filter(wanted).peekable();
        if fitting.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        if !fitting.any(|key| key.verifies(&self.algorithm, self.signed.as_bytes(), &self.signature)) {
            return Err(TokenError::Signature);
        }
        check(&self.claims, issuers, audience, now)?;
        Ok(self.claims)
    }
}

fn check(claims: &Map<String, Value>, issuers: &[&str], audience: &str, now: i64) -> Result<(), TokenError> {
    let issuer = claims.get("iss").and_then(Value::as_str);
    if !issuer.is_some_and(|issuer| issuers.contains(&issuer)) {
        return Err(TokenError::Issuer);
    }
    let fits = |value: &Value| value.as_str() == Some(audience);
    let meant = match claims.get("aud") {
        Some(Value::Array(all)) => all.iter().any(fits),
        Some(one) => fits(one),
        None => false,
    };
    if audience.is_empty() || !meant {
        return Err(TokenError::Audience);
    }
    #[allow(clippy::cast_precision_loss, reason = "seconds of this age are exact")]
    let now = now as f64;
    let time = |name: &str| claims.get(name).map(|value| value.as_f64().unwrap_or(f64::NAN));
    // A time that is not a number is never in the future.
    if !time("exp").is_some_and(|end| end > now) {
        return Err(TokenError::Expired);
    }
    match time("nbf") {
        Some(start) if start.is_nan() || start > now + LEEWAY => Err(TokenError::TooEarly),
        _ => Ok(()),
    }
}

/// Accepted algorithms: a public key verifies them, so that no issuer's public key can be used as a shared secret.
const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

#[derive(Debug, Clone, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug, Clone)]
struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    public: Public,
}

#[derive(Debug, Clone)]
enum Public {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl KeySet {
    /// Parses a document of keys (JWKS); keys of other uses and types are left out.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = serde_json::from_slice(json).ok()?;
        let keys = document.keys.iter().take(MAX_KEYS).filter_map(key);
        Some(Self(keys.collect()))
    }
}

fn key(json: &Value) -> Option<Key> {
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let bytes = |name: &str| {
        let decoded = URL_SAFE_NO_PAD.decode(text(name)?.trim_end_matches('=')).ok();
        decoded.filter(|bytes| bytes.len() <= MAX_KEY_BYTES)
    };
    if ["kid", "alg"]
        .iter()
        .any(|name| text(name).is_some_and(|text| text.len() > MAX_NAME))
    {
        return None;
    }
    if text("use").is_some_and(|usage| usage != "sig") {
        return None;
    }
    // Uncompressed, as the curves require it.
    let point = |size: usize| {
        let (x, y) = (bytes("x")?, bytes("y")?);
        (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
    };
    let public = match (text("kty")?, text("crv")) {
        ("RSA", _) => Public::Rsa {
            n: bytes("n")?,
            e: bytes("e")?,
        },
        ("EC", Some("P-256")) => Public::P256(point(32)?),
        ("EC", Some("P-384")) => Public::P384(point(48)?),
        ("OKP", Some("Ed25519")) => Public::Ed25519(bytes("x")?),
        _ => return None,
    };
    Some(Key {
        id: text("kid").map(str::to_owned),
        algorithm: text("alg").map(str::to_owned),
        public,
    })
}

impl Key {
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        if self.algorithm.as_deref().is_some_and(|own| own != algorithm) {
            return false;
        }
        let verified = match &self.public {
            Public::Rsa { n, e } => {
                let parameters = match algorithm {
                    "RS256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    "RS384" => &signature::RSA_PKCS1_2048_8192_SHA384,
                    "RS512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    "PS256" => &signature::RSA_PSS_2048_8192_SHA256,
                    "PS384" => &signature::RSA_PSS_2048_8192_SHA384,
                    "PS512" => &signature::RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            Public::P256(point) if algorithm == "ES256" => {
                UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Public::P384(point) if algorithm == "ES384" => {
                UnparsedPublicKey::new(&signature::ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            Public::Ed25519(point) if algorithm == "EdDSA" => {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(message, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
    };
    use serde_json::json;
    use testkit::fuzz;

    use super::*;

    const ISSUER: &str = "https://issuer.example";

    struct Signer {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
            Self { pair, random }
        }

        fn keys(&self) -> KeySet {
            let point = self.pair.public_key().as_ref();
            let [x, y] = [&point[1..33], &point[33..]].map(|part| URL_SAFE_NO_PAD.encode(part));
            let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": x, "y": y}, {"kty": "oct", "k": "AAAA"}]});
            KeySet::parse(keys.to_string().as_bytes()).unwrap()
        }

        fn token(&self, header: &Value, claims: &Value) -> String {
            let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
            let signed = format!("{header}.{claims}");
            let signature = self.pair.sign(&self.random, signed.as_bytes()).unwrap();
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
        }
    }

    fn header() -> Value {
        json!({"alg": "ES256", "kid": "k"})
    }

    fn claims() -> Value {
        json!({"iss": ISSUER, "aud": "weir", "exp": 2000, "sub": "s"})
    }

    fn verify(keys: &KeySet, token: &str) -> Result<Map<String, Value>, TokenError> {
        Unverified::parse(token)?.verify(keys, &[ISSUER], "weir", 1000)
    }

    #[test]
    fn only_claims_for_this_audience_and_time_are_accepted() {
        let signer = Signer::new();
        let keys = signer.keys();
        let with = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            verify(&keys, &signer.token(&header(), &claims)).err()
        };
        assert_eq!(with("sub", json!("x")), None);
        assert_eq!(with("aud", json!(["other", "weir"])), None);
        assert_eq!(with("nbf", json!(1100)), None);
        for aud in [
            json!("other"),
            json!(["other"]),
            json!([]),
            json!(null),
            json!({"weir": 1}),
            json!(""),
        ] {
            assert_eq!(with("aud", aud), Some(TokenError::Audience));
        }
        for iss in [json!("https://issuer.example/"), json!(null), json!([ISSUER])] {
            assert_eq!(with("iss", iss), Some(TokenError::Issuer));
        }
        for exp in [json!(1000), json!(-1), json!(null), json!("2000")] {
            assert_eq!(with("exp", exp), Some(TokenError::Expired));
        }
        for nbf in [json!(1301), json!("0")] {
            assert_eq!(with("nbf", nbf), Some(TokenError::TooEarly));
        }
    }

    #[test]
    fn keys_that_are_too_large_for_their_algorithm_are_left_out() {
        let rsa = |bytes: usize, kid: usize| {
            let n = URL_SAFE_NO_PAD.encode(vec![1; bytes]);
            json!({"kty": "RSA", "kid": "k".repeat(kid), "n": n, "e": "AQAB"})
        };
        let keys = json!({"keys": [rsa(1024, 8), rsa(100_000, 8), rsa(256, 100_000)]});
        let keys = KeySet::parse(keys.to_string().as_bytes()).unwrap();
        assert_eq!(keys.0.len(), 1);
        let many = json!({"keys": vec![rsa(256, 8); 10_000]});
        assert_eq!(
            KeySet::parse(many.to_string().as_bytes()).unwrap().0.len(),
            MAX_KEYS
        );
    }

    #[test]
    fn tokens_of_other_algorithms_and_keys_are_refused() {
        let signer = Signer::new();
        let keys = signer.keys();
        let with = |header: Value| verify(&keys, &signer.token(&header, &claims())).err();
        for (algorithm, expected) in [
            ("none", TokenError::Algorithm),
            ("HS256", TokenError::Algorithm),
            ("", TokenError::Algorithm),
            ("RS256", TokenError::Signature),
            ("ES384", TokenError::Signature),
        ] {
            assert_eq!(
                with(json!({"alg": algorithm, "kid": "k"})),
                Some(expected),
                "{algorithm}"
            );
        }
        assert_eq!(with(json!({"alg": "ES256"})), None);
        assert_eq!(
            with(json!({"alg": "ES256", "kid": "other"})),
            Some(TokenError::UnknownKey)
        );
        assert_eq!(
            with(json!({"alg": "ES256", "crit": ["b64"]})),
            Some(TokenError::Algorithm)
        );
        let stranger = Signer::new().token(&header(), &claims());
        assert_eq!(verify(&keys, &stranger), Err(TokenError::Signature));
        let token = signer.token(&header(), &claims());
        let (signed, _) = token.rsplit_once('.').unwrap();
        for token in [
            signed.to_owned(),
            format!("{signed}."),
            format!("{token}.x"),
            "a".repeat(20_000),
            String::new(),
        ] {
            assert!(
                matches!(
                    verify(&keys, &token),
                    Err(TokenError::Malformed | TokenError::Signature)
                ),
                "{token}"
            );
        }
    }

    #[test]
    fn fuzz_damaged_tokens_are_never_accepted() {
        let signer = Signer::new();
        let keys = signer.keys();
        let good = signer.token(&header(), &claims());
        fuzz::run("tokens", |random| {
            let mut bytes = good.clone().into_bytes();
            random.damage(&mut bytes, 3);
            let token = String::from_utf8_lossy(&bytes).into_owned();
            random.note("token", &token);
            if token != good {
                // The last character of a signature has unused bits.
                assert!(
                    verify(&keys, &token).is_err()
                        || token.get(..good.len() - 1) == good.get(..good.len() - 1)
                );
            }
            let mut document =
                json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k", "x": "AA", "y": "AA"}]});
            random.damage_json(
                &mut document,
                &[
                    "RSA", "EC", "OKP", "kty", "n", "e", "x", "P-384", "Ed25519", "crv",
                ],
                4,
            );
            if let Some(keys) = KeySet::parse(document.to_string().as_bytes()) {
                assert!(verify(&keys, &good).is_err());
            }
        });
    }
}
