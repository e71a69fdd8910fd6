//! Signed tokens: read within bounds, and verified with the keys of their issuer only.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Header, Validation,
    dangerous::insecure_decode_claims, decode, decode_header, jwk,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::signatures;

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
    token: &'a str,
    header: Header,
    claims: Map<String, Value>,
}

impl<'a> Unverified<'a> {
    pub(crate) fn parse(token: &'a str) -> Result<Self, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Malformed);
        }
        let header = decode_header(token).map_err(|_| match has_other_algorithm(token) {
            true => TokenError::Algorithm,
            false => TokenError::Malformed,
        })?;
        if header.crit.is_some() {
            return Err(TokenError::Algorithm);
        }
        Ok(Self {
            token,
            header,
            claims: insecure_decode_claims(token).map_err(|_| TokenError::Malformed)?,
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
        let Header { alg, kid, .. } = &self.header;
        // Otherwise an issuer's public key could be used as a shared secret.
        if alg.family() == AlgorithmFamily::Hmac {
            return Err(TokenError::Algorithm);
        }
        let wanted = |key: &&Key| kid.is_none() || key.id == *kid;
        let mut fitting = keys.0.iter().filter(wanted).peekable();
        if fitting.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        if !fitting.any(|key| key.verifies(self.token, *alg)) {
            return Err(TokenError::Signature);
        }
        check(&self.claims, issuers, audience, now)?;
        Ok(self.claims)
    }
}

/// Returns true if the header of a token has an algorithm that the library doesn't know: it can't read such headers.
fn has_other_algorithm(token: &str) -> bool {
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header: Value = serde_json::from_slice(&header).unwrap_or_default();
    let algorithm = header.get("alg").and_then(Value::as_str);
    algorithm.is_some_and(|name| name.parse::<Algorithm>().is_err())
}

/// Checks claims as `go-oidc` does: an issuer is one string, tokens end in time, and may start [`LEEWAY`] too early.
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

#[derive(Debug, Clone, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug, Clone)]
struct Key {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    public: DecodingKey,
}

impl KeySet {
    /// Parses a document of keys (JWKS); keys of other uses and types are left out.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<Value>,
        }
        let document: Document = serde_json::from_slice(json).ok()?;
        let keys = document.keys.into_iter().take(MAX_KEYS).filter_map(key);
        Some(Self(keys.collect()))
    }
}

fn key(mut json: Value) -> Option<Key> {
    // Some issuers pad numbers.
    for name in ["n", "e", "x", "y"] {
        if let Some(Value::String(number)) = json.get_mut(name) {
            number.truncate(number.trim_end_matches('=').len());
        }
    }
    let name = |name: &str| json.get(name).and_then(Value::as_str);
    let (id, algorithm) = (name("kid").map(str::to_owned), name("alg").map(str::to_owned));
    if [&id, &algorithm]
        .into_iter()
        .flatten()
        .any(|name| name.len() > MAX_NAME)
    {
        return None;
    }
    let parsed: jwk::Jwk = serde_json::from_value(json).ok()?;
    let usage = &parsed.common.public_key_use;
    if !matches!(usage, None | Some(jwk::PublicKeyUse::Signature)) {
        return None;
    }
    let public = DecodingKey::from_jwk(&parsed).ok()?;
    let is_small = match public.kind() {
        DecodingKeyKind::SecretOrDer(point) => point.len() <= MAX_KEY_BYTES,
        DecodingKeyKind::RsaModulusExponent { n, e } => n.len().max(e.len()) <= MAX_KEY_BYTES,
    };
    let is_public = public.family() != AlgorithmFamily::Hmac;
    let algorithm = algorithm.map(|name| name.parse()).transpose().ok()?;
    (is_small && is_public).then_some(Key {
        id,
        algorithm,
        public,
    })
}

impl Key {
    fn verifies(&self, token: &str, algorithm: Algorithm) -> bool {
        if self.algorithm.is_some_and(|own| own != algorithm) {
            return false;
        }
        signatures::install();
        // Claims are checked afterwards, with the time and the leeway of this module.
        let mut validation = Validation::new(algorithm);
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        decode::<Map<String, Value>>(token, &self.public, &validation).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;
    use ring::{
        rand::SystemRandom,
        rsa::PublicKeyComponents,
        signature::{
            ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
            KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
        },
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
    fn keys_verify_signatures_of_their_own_algorithms_only() {
        let random = SystemRandom::new();
        let pem = include_str!("../../../cloud/fixtures/rsa.pem");
        let key: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        let rsa = RsaKeyPair::from_pkcs8(&STANDARD.decode(key).unwrap()).unwrap();
        let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let ed = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let algorithm = &ECDSA_P384_SHA384_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let ec = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let public = rsa.public();
        let n = encode(&PublicKeyComponents::<Vec<u8>>::from(public).n);
        let point = ec.public_key().as_ref();
        let keys = json!({"keys": [
            {"kty": "RSA", "kid": "rsa", "use": "sig", "n": format!("{n}=="), "e": "AQAB"},
            {"kty": "RSA", "kid": "pss", "alg": "PS256", "n": n, "e": "AQAB"},
            {"kty": "RSA", "kid": "enc", "use": "enc", "n": n, "e": "AQAB"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(ed.public_key().as_ref())},
            {"kty": "EC", "crv": "P-384", "kid": "ec", "x": encode(&point[1..49]), "y": encode(&point[49..])},
            {"kty": "AKP", "kid": "new", "pub": "AAAA"},
        ]});
        let keys = KeySet::parse(keys.to_string().as_bytes()).unwrap();
        let token = |algorithm: &str, key: &str| {
            let header = json!({"alg": algorithm, "kid": key}).to_string();
            let signed = format!(
                "{}.{}",
                encode(header.as_bytes()),
                encode(claims().to_string().as_bytes())
            );
            let by_rsa = |padding: &'static dyn RsaEncoding| {
                let mut signature = vec![0; public.modulus_len()];
                rsa.sign(padding, &random, signed.as_bytes(), &mut signature)
                    .unwrap();
                signature
            };
            let signature = match algorithm {
                "RS256" => by_rsa(&RSA_PKCS1_SHA256),
                "PS256" => by_rsa(&RSA_PSS_SHA256),
                "EdDSA" => ed.sign(signed.as_bytes()).as_ref().to_vec(),
                _ => ec.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            };
            format!("{signed}.{}", encode(&signature))
        };
        let all = ["RS256", "PS256", "EdDSA", "ES384", "ES256"];
        for (key, accepted) in [
            ("rsa", &["RS256", "PS256"][..]),
            ("pss", &["PS256"]),
            ("ed", &["EdDSA"]),
            ("ec", &["ES384"]),
        ] {
            for algorithm in all {
                let expected = (!accepted.contains(&algorithm)).then_some(TokenError::Signature);
                let found = verify(&keys, &token(algorithm, key)).err();
                assert_eq!(found, expected, "{key} {algorithm}");
            }
        }
        for key in ["enc", "new"] {
            assert_eq!(
                verify(&keys, &token("RS256", key)).err(),
                Some(TokenError::UnknownKey)
            );
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
        for odd in [json!({"alg": "ES256", "kid": 5}), json!({"kid": "k"}), json!([])] {
            assert_eq!(with(odd), Some(TokenError::Malformed));
        }
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
