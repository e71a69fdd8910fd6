//! A signer with the libraries of the Notary Project themselves.

use std::{
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    gobuild::{Recipe, program},
    registry::{PASSWORD, Registry, USER},
};

static RECIPE: Recipe = Recipe {
    module: "notation",
    packages: &["./."],
    programs: &["notation"],
    tags: "",
    seconds: 20,
};

/// Media type of envelopes in JSON.
pub const JWS: &str = "application/jose+json";
/// Media type of envelopes in CBOR.
pub const COSE: &str = "application/cose";
/// Name of the signers, as trust policies write it.
pub const SUBJECT: &str = r"C=US, ST=WA, O=Example\, Inc., CN=signer";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NotarySigner {
    /// Key and certificates in base64.
    key: String,
    chain: Vec<String>,
}

#[derive(Deserialize)]
struct Signed {
    envelope: String,
}

impl NotarySigner {
    /// Finds the program in the cache, or builds it.
    pub fn resolve() -> Result<PathBuf> {
        program("notation", &RECIPE, "github.com/notaryproject/notation-go")
    }

    /// Makes a signer of an authority, whose root is the last of three certificates. Their keys are ECDSA P-256.
    pub fn new() -> Result<Self> {
        Self::with(&json!({"authorities": 2}))
    }

    /// Makes a signer by a request of the program (`newRequest` in `hack/notation/main.go`).
    pub fn with(request: &Value) -> Result<Self> {
        Ok(serde_json::from_value(run("new", request)?)?)
    }

    /// Makes other certificates for the same key, by a request of the program.
    pub fn again(&self, request: &Value) -> Result<Self> {
        Self::with(&merged(json!({"key": self.key}), request)?)
    }

    /// Returns the certificates in DER, the signer's first.
    pub fn chain(&self) -> Result<Vec<Vec<u8>>> {
        let chain = self.chain.iter().map(|der| STANDARD.decode(der));
        Ok(chain.collect::<Result<_, _>>()?)
    }

    pub fn root_pem(&self) -> Result<String> {
        let root = self.chain.last().context("the chain is empty")?;
        Ok(format!(
            "-----BEGIN CERTIFICATE-----\n{root}\n-----END CERTIFICATE-----\n"
        ))
    }

    /// Signs a descriptor as the library does; `request` has further fields of `signRequest` in `hack/notation/main.go`.
    pub fn sign(&self, media_type: &str, target: &Value, request: &Value) -> Result<Vec<u8>> {
        let whole = json!({
            "identity": self,
            "mediaType": media_type,
            "payload": {"targetArtifact": target},
            "scheme": "notary.x509",
        });
        let signed: Signed = serde_json::from_value(run("sign", &merged(whole, request)?)?)?;
        Ok(STANDARD.decode(signed.envelope)?)
    }

    /// Signs an artifact in a registry without TLS, and pushes the signature, as the command line of Notation does.
    pub async fn push(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
        media_type: &str,
    ) -> Result<()> {
        let request = json!({
            "identity": self,
            "mediaType": media_type,
            "reference": format!("{}/{repository}@{digest}", registry.host()),
            "username": USER,
            "password": PASSWORD,
        });
        tokio::task::spawn_blocking(move || run("push", &request)).await??;
        Ok(())
    }
}

fn merged(mut request: Value, more: &Value) -> Result<Value> {
    let (fields, more) = request
        .as_object_mut()
        .zip(more.as_object())
        .context("a request is no map")?;
    fields.extend(more.clone());
    Ok(request)
}

fn run(command: &str, request: &Value) -> Result<Value> {
    let mut child = Command::new(NotarySigner::resolve()?)
        .arg(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().context("it has no input")?;
    input.write_all(request.to_string().as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "notation {command}: {}", said.trim_end());
    Ok(serde_json::from_slice(&output.stdout)?)
}
