//! OCIRepository with a real registry.

use api::{condition_type as types, conditions, source::OCIRepository};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    Authority, HttpProxy, Registry, Sigstore,
    archive::tar_gz,
    controller::Launch,
    registry::{Login, PASSWORD, Signer, USER},
    wait_for,
};

use super::{Files, TIMEOUT, TestNamespace, fetch_artifact};

const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
const REPOSITORY: &str = "org/app";

/// A namespace with a controller, and a registry.
struct Setup {
    namespace: TestNamespace,
    registry: Registry,
    api: Api<OCIRepository>,
}

impl Setup {
    async fn start(login: Login, authority: Option<Authority>) -> Self {
        Self::start_with(login, authority, |launch| launch).await
    }

    async fn start_with(
        login: Login,
        authority: Option<Authority>,
        change: impl FnOnce(Launch) -> Launch,
    ) -> Self {
        let namespace = TestNamespace::start_with(change).await;
        let api = Api::namespaced(namespace.plane.client().await.unwrap(), &namespace.namespace);
        let registry = Registry::start(login, authority).await.unwrap();
        Self {
            namespace,
            registry,
            api,
        }
    }

    fn url(&self) -> String {
        format!("oci://{}/{REPOSITORY}", self.registry.host())
    }

    async fn push(&self, tag: &str, files: &[(&str, &[u8])]) -> String {
        push_to(&self.registry, tag, files).await
    }

    async fn apply(&self, name: &str, spec: Value) {
        let mut whole = json!({"url": self.url(), "interval": "1h"});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository",
            "metadata": {"name": name, "namespace": self.namespace.namespace}, "spec": whole,
        });
        self.namespace.plane.apply(object).await.unwrap();
    }

    async fn patch(&self, name: &str, patch: Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        self.api.patch(name, &params, &patch).await.unwrap();
    }

    async fn request(&self, name: &str, value: &str) -> OCIRepository {
        let annotations = json!({"reconcile.fluxcd.io/requestedAt": value});
        self.patch(name, json!({"metadata": {"annotations": annotations}}))
            .await;
        self.wait(name, "the request to be handled", |object| {
            let status = object.status.as_ref();
            status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(value)
        })
        .await
    }

    async fn wait(
        &self,
        name: &str,
        what: &str,
        condition: impl FnMut(&OCIRepository) -> bool,
    ) -> OCIRepository {
        let waited = wait_for(&self.api, name, what, TIMEOUT, condition).await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.namespace.controller.log()))
    }

    async fn wait_ready(&self, name: &str) -> OCIRepository {
        self.wait(name, "it to be ready", |object| {
            let observed = object
                .status
                .as_ref()
                .and_then(|status| status.observed_generation);
            observed == object.metadata.generation
                && condition(object, types::READY).is_some_and(|ready| ready.is_true())
                && condition(object, types::RECONCILING).is_none()
        })
        .await
    }

    /// Waits until the object failed with this reason and a message that contains this string.
    async fn wait_failed(&self, name: &str, reason: &str, text: &str) -> OCIRepository {
        let what = format!("it to fail with {reason}: {text}");
        self.wait(name, &what, |object| {
            condition(object, types::READY).is_some_and(|ready| {
                ready.is_false() && ready.reason == reason && ready.message.contains(text)
            })
        })
        .await
    }

    async fn docker_secret(&self, name: &str, password: &str) {
        let auths = json!({"auths": {self.registry.host(): {"username": USER, "password": password}}});
        self.namespace
            .secret(name, json!({".dockerconfigjson": auths.to_string()}))
            .await;
    }
}

/// Pushes files as an artifact of the repository `org/app`.
pub(super) async fn push_to(registry: &Registry, tag: &str, files: &[(&str, &[u8])]) -> String {
    let archive = tar_gz(files);
    let pushed = registry.push(REPOSITORY, tag, [CONFIG, CONTENT], &archive);
    pushed.await.unwrap()
}

pub(super) fn condition<'a>(object: &'a OCIRepository, name: &str) -> Option<&'a api::Condition> {
    conditions::get(&object.status.as_ref()?.conditions, name)
}

fn artifact_of(object: &OCIRepository) -> api::Artifact {
    object.status.as_ref().unwrap().artifact.clone().unwrap()
}

async fn files(object: &OCIRepository) -> Files {
    fetch_artifact(&artifact_of(object)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_versions_and_digests_become_artifacts() {
    let setup = Setup::start(Login::Anonymous, None).await;
    let first = setup
        .push("1.0.0", &[("app.yaml", b"first\n"), ("a.png", b"x")])
        .await;
    let second = setup.push("1.1.0", &[("app.yaml", b"second\n")]).await;
    let candidate = setup.push("1.2.0-rc.1", &[("app.yaml", b"candidate\n")]).await;
    let latest = setup.push("latest", &[("app.yaml", b"latest\n")]).await;
    for (name, reference, revision, content) in [
        ("none", json!({}), format!("latest@{latest}"), "latest\n"),
        (
            "tag",
            json!({"tag": "1.0.0"}),
            format!("1.0.0@{first}"),
            "first\n",
        ),
        (
            "semver",
            json!({"semver": ">=1.0.0", "tag": "x"}),
            format!("1.1.0@{second}"),
            "second\n",
        ),
        (
            "filter",
            json!({"semver": ">=1.0.0-0", "semverFilter": ".*-rc.*"}),
            format!("1.2.0-rc.1@{candidate}"),
            "candidate\n",
        ),
        (
            "digest",
            json!({"digest": first, "semver": "*"}),
            first.clone(),
            "first\n",
        ),
    ] {
        setup
            .apply(name, json!({"insecure": true, "ref": reference}))
            .await;
        let object = setup.wait_ready(name).await;
        let artifact = artifact_of(&object);
        assert_eq!(artifact.revision, revision, "{name}");
        let message = format!("stored artifact for digest '{revision}'");
        for kind in [types::READY, types::ARTIFACT_IN_STORAGE] {
            assert_eq!(condition(&object, kind).unwrap().message, message, "{name}");
        }
        let unpacked = files(&object).await;
        assert_eq!(unpacked.names("."), ["app.yaml"], "{name}");
        assert_eq!(unpacked.read("app.yaml"), content, "{name}");
        let event = setup.namespace.wait_event(name, "NewArtifact").await;
        assert_eq!(
            event.2,
            format!(
                "stored artifact with revision '{revision}' from '{}'",
                setup.url()
            )
        );
    }
    for (name, reference, reason, message) in [
        (
            "no-tag",
            json!({"tag": "nothing"}),
            "OCIArtifactPullFailed",
            "failed to determine artifact digest: ",
        ),
        (
            "no-version",
            json!({"semver": ">=9"}),
            "ReadOperationFailed",
            "': no match found for semver: >=9",
        ),
    ] {
        setup
            .apply(name, json!({"insecure": true, "ref": reference}))
            .await;
        let object = setup.wait_failed(name, reason, message).await;
        let failed = condition(&object, types::FETCH_FAILED).unwrap();
        assert_eq!((failed.is_true(), failed.reason.as_str()), (true, reason));
        assert_eq!(object.status.unwrap().observed_generation, Some(-1));
    }
    setup
        .apply("tagged", json!({"url": format!("{}:v1", setup.url())}))
        .await;
    let object = setup
        .wait_failed("tagged", "URLInvalid", "URL must not contain a tag; remove ':v1'")
        .await;
    assert!(condition(&object, types::STALLED).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_follows_tag_selector_and_ignore_rules_alone() {
    let setup = Setup::start(Login::Anonymous, None).await;
    let registry = &setup.registry;
    let first = tar_gz(&[("one/a.yaml", b"a"), ("two/b.yaml", b"b")]);
    let (config, files_layer, other) = (
        registry.push_blob(REPOSITORY, CONFIG, b"{}").await.unwrap(),
        registry.push_blob(REPOSITORY, CONTENT, &first).await.unwrap(),
        registry
            .push_blob(REPOSITORY, "text/plain", b"as it is")
            .await
            .unwrap(),
    );
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
        "layers": [files_layer, other],
        "annotations": {
            "org.opencontainers.image.source": "https://git.test/app.git",
            "org.opencontainers.image.revision": "main@sha1:1",
        },
    });
    let digest = registry.push_manifest(REPOSITORY, "v1", &manifest).await.unwrap();
    let spec = |more: Value| {
        let mut spec = json!({"insecure": true, "ref": {"tag": "v1"}});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        spec
    };
    setup.apply("app", spec(json!({}))).await;
    let object = setup.wait_ready("app").await;
    let artifact = artifact_of(&object);
    assert_eq!(files(&object).await.names("."), ["one", "two"]);
    let source = &artifact.metadata["org.opencontainers.image.source"];
    assert_eq!(source, "https://git.test/app.git");
    let event = setup.namespace.wait_event("app", "NewArtifact").await;
    assert_eq!(
        event.2,
        format!(
            "stored artifact with revision 'v1@{digest}' from '{}', origin source 'https://git.test/app.git', origin revision \
             'main@sha1:1'",
            setup.url()
        )
    );
    // Nothing moved: the artifact stays untouched, its file too.
    let path = setup.namespace.controller.storage_path().join(&artifact.path);
    let modified = || path.metadata().unwrap().modified().unwrap();
    let before = modified();
    let again = setup.request("app", "1").await;
    assert_eq!((artifact_of(&again), modified()), (artifact.clone(), before));

    setup.apply("app", spec(json!({"ignore": "/one\n"}))).await;
    let object = setup.wait_ready("app").await;
    assert_eq!(files(&object).await.names("."), ["two"]);
    assert_eq!(object.status.unwrap().observed_ignore.as_deref(), Some("/one\n"));

    let selector = json!({"mediaType": "text/plain", "operation": "copy"});
    setup.apply("app", spec(json!({"layerSelector": selector}))).await;
    let object = setup
        .wait("app", "the other layer", |object| {
            let status = object.status.as_ref();
            status.is_some_and(|status| status.observed_layer_selector.is_some())
        })
        .await;
    let copied = artifact_of(&object);
    let body = reqwest::get(&copied.url).await.unwrap().bytes().await.unwrap();
    assert_eq!(
        (body.as_ref(), copied.revision),
        (&b"as it is"[..], format!("v1@{digest}"))
    );

    setup
        .apply("app", spec(json!({"layerSelector": {"mediaType": "a/b"}})))
        .await;
    let message = "failed to find layer with media type 'a/b' in artifact";
    let failed = setup
        .wait_failed("app", "OCIArtifactLayerOperationFailed", message)
        .await;
    assert!(failed.status.as_ref().unwrap().artifact.is_some());
    setup
        .apply("app", spec(json!({"layerSelector": {"mediaType": "text/plain"}})))
        .await;
    setup
        .wait_failed(
            "app",
            "OCIArtifactLayerOperationFailed",
            "the layer has the media type 'text/plain'; choose another one by spec.layerSelector.mediaType",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_layers_are_refused_by_name() {
    let setup = Setup::start(Login::Anonymous, None).await;
    setup.push("escape", &[("../../escape", b"x")]).await;
    setup
        .apply("escape", json!({"insecure": true, "ref": {"tag": "escape"}}))
        .await;
    let failed = setup
        .wait_failed(
            "escape",
            "OCIArtifactLayerOperationFailed",
            "leads out of its directory",
        )
        .await;
    assert_eq!(failed.status.unwrap().artifact, None);
    setup.push("good", &[("a.yaml", b"x")]).await;
    setup
        .apply("good", json!({"insecure": true, "ref": {"tag": "good"}}))
        .await;
    setup.wait_ready("good").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn private_registries_need_credentials_and_their_authority() {
    let authority = Authority::new(&["127.0.0.1"]).unwrap();
    let setup = Setup::start(Login::Basic, Some(authority)).await;
    let digest = setup.push("latest", &[("a.yaml", b"x")]).await;
    let revision = format!("latest@{digest}");
    setup.docker_secret("login", PASSWORD).await;
    setup.docker_secret("wrong", "wr0ng").await;
    let ca = setup.registry.ca_pem().to_owned();
    setup.namespace.secret("ca", json!({"ca.crt": ca})).await;
    setup.namespace.secret("old-ca", json!({"caFile": ca})).await;
    setup.namespace.secret("no-ca", json!({"cacert": ca})).await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "puller", "namespace": setup.namespace.namespace},
        "imagePullSecrets": [{"name": "gone"}, {"name": "login"}],
    });
    setup.namespace.plane.apply(account).await.unwrap();
    let (login, ca) = (json!({"name": "login"}), json!({"name": "ca"}));
    for (name, spec) in [
        ("secret", json!({"secretRef": login, "certSecretRef": ca})),
        (
            "old",
            json!({"secretRef": login, "certSecretRef": {"name": "old-ca"}}),
        ),
        (
            "account",
            json!({"serviceAccountName": "puller", "certSecretRef": ca}),
        ),
        ("insecure", json!({"secretRef": login, "insecure": true})),
    ] {
        setup.apply(name, spec).await;
        assert_eq!(
            artifact_of(&setup.wait_ready(name).await).revision,
            revision,
            "{name}"
        );
    }
    let generate = format!("failed to generate transport for '{}': ", setup.url());
    for (name, spec, reason, message) in [
        (
            "anonymous",
            json!({"certSecretRef": ca}),
            "OCIArtifactPullFailed",
            "401 Unauthorized".to_owned(),
        ),
        (
            "refused",
            json!({"certSecretRef": ca, "secretRef": {"name": "wrong"}}),
            "OCIArtifactPullFailed",
            "check the credentials in the secret of spec.secretRef".to_owned(),
        ),
        (
            "missing",
            json!({"certSecretRef": ca, "secretRef": {"name": "gone"}}),
            "AuthenticationFailed",
            format!(
                "failed to get credential: failed to get secret '{}/gone': ",
                setup.namespace.namespace
            ),
        ),
        (
            "no-account",
            json!({"certSecretRef": ca, "serviceAccountName": "gone"}),
            "AuthenticationFailed",
            "failed to get credential: failed to get service account '".to_owned(),
        ),
        (
            "untrusted",
            json!({"secretRef": login}),
            "OCIArtifactPullFailed",
            "add the registry's CA to the secret of spec.certSecretRef as ca.crt".to_owned(),
        ),
        (
            "no-ca",
            json!({"secretRef": login, "certSecretRef": {"name": "no-ca"}}),
            "AuthenticationFailed",
            generate.clone(),
        ),
        (
            "lost-ca",
            json!({"secretRef": login, "certSecretRef": {"name": "gone"}}),
            "AuthenticationFailed",
            generate.clone(),
        ),
        (
            "lost-proxy",
            json!({"secretRef": login, "proxySecretRef": {"name": "gone"}}),
            "AuthenticationFailed",
            "failed to get proxy address: ".to_owned(),
        ),
    ] {
        setup.apply(name, spec).await;
        let failed = setup.wait_failed(name, reason, &message).await;
        let text = serde_json::to_string(&failed).unwrap();
        assert!(!text.contains("wr0ng") && !text.contains(PASSWORD), "{text}");
    }
    let log = setup.namespace.controller.log();
    assert!(
        !log.contains("wr0ng") && !log.contains(PASSWORD),
        "a password is logged"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_that_ask_for_client_certificates_get_them() {
    let clients = Authority::new(&["client"]).unwrap();
    let authority = Authority::new(&["127.0.0.1"]).unwrap().asking_for(&clients);
    let setup = Setup::start(Login::Anonymous, Some(authority)).await;
    setup.push("latest", &[("a.yaml", b"x")]).await;
    let ca = setup.registry.ca_pem().to_owned();
    let (crt, key) = (&clients.server_pem, &clients.server_key_pem);
    let both = json!({"ca.crt": ca, "tls.crt": crt, "tls.key": key});
    setup.namespace.secret("both", both).await;
    setup.namespace.secret("ca", json!({"ca.crt": ca})).await;
    setup
        .apply("both", json!({"certSecretRef": {"name": "both"}}))
        .await;
    setup.wait_ready("both").await;
    setup.apply("ca", json!({"certSecretRef": {"name": "ca"}})).await;
    let hint = "add tls.crt and tls.key to the secret of spec.certSecretRef";
    setup.wait_failed("ca", "OCIArtifactPullFailed", hint).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_of_the_registry_is_asked_for_with_the_secret() {
    let setup = Setup::start(Login::Token, None).await;
    setup.push("latest", &[("a.yaml", b"x")]).await;
    setup.docker_secret("login", PASSWORD).await;
    let spec = json!({"insecure": true, "secretRef": {"name": "login"}});
    setup.apply("token", spec).await;
    setup.wait_ready("token").await;
    assert!(setup.registry.tokens_given() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_of_the_secret_is_used() {
    let authority = Authority::new(&["127.0.0.1"]).unwrap();
    let setup = Setup::start(Login::Anonymous, Some(authority)).await;
    setup.push("latest", &[("a.yaml", b"x")]).await;
    let proxy = HttpProxy::start("proxy", "pr0xy").unwrap();
    let secret = json!({"address": proxy.url(), "username": "proxy", "password": "pr0xy"});
    setup.namespace.secret("proxy", secret).await;
    let spec = json!({"insecure": true, "proxySecretRef": {"name": "proxy"}});
    setup.apply("proxied", spec).await;
    setup.wait_ready("proxied").await;
    assert!(!proxy.asked().is_empty(), "the proxy was not asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_verified_before_anything_is_stored() {
    let setup = Setup::start(Login::Anonymous, None).await;
    let (signer, stranger) = (Signer::new().unwrap(), Signer::new().unwrap());
    let namespace = &setup.namespace;
    let key = |signer: &Signer| json!({"cosign.pub": signer.public_pem(), "readme": "x"});
    namespace.secret("keys", key(&signer)).await;
    namespace.secret("other", key(&stranger)).await;
    let spec = |tag: &str, keys: &str| {
        let verify = json!({"provider": "cosign", "secretRef": {"name": keys}});
        json!({"insecure": true, "ref": {"tag": tag}, "verify": verify})
    };
    let signed = setup.push("signed", &[("a.yaml", b"signed")]).await;
    signer.sign(&setup.registry, REPOSITORY, &signed).await.unwrap();
    let bundled = setup.push("bundled", &[("a.yaml", b"bundled")]).await;
    signer
        .attach(&setup.registry, REPOSITORY, &bundled)
        .await
        .unwrap();
    setup.push("unsigned", &[("a.yaml", b"unsigned")]).await;
    for (tag, digest) in [("signed", &signed), ("bundled", &bundled)] {
        setup.apply(tag, spec(tag, "keys")).await;
        let object = setup.wait_ready(tag).await;
        let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
        assert_eq!(
            (
                verified.is_true(),
                verified.reason.as_str(),
                verified.message.as_str()
            ),
            (
                true,
                "Succeeded",
                format!("verified signature of revision {tag}@{digest}").as_str()
            )
        );
        assert!(object.status.unwrap().source_verification_fingerprint.is_some());
    }
    let no_match =
        "failed to verify the signature using provider 'cosign': no matching signatures were found for '";
    for (name, tag, keys) in [("unsigned", "unsigned", "keys"), ("stranger", "signed", "other")] {
        setup.apply(name, spec(tag, keys)).await;
        let object = setup.wait_failed(name, "VerificationError", no_match).await;
        let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
        assert!(verified.is_false() && object.status.as_ref().unwrap().artifact.is_none());
    }
    // A key that isn't trusted any more ends the trust, though nothing else changed.
    namespace.secret("keys", key(&stranger)).await;
    setup.request("bundled", "1").await;
    setup.wait_failed("bundled", "VerificationError", no_match).await;
    namespace.secret("keys", key(&signer)).await;
    setup.request("bundled", "2").await;
    setup.wait_ready("bundled").await;
    // A tag that moves to something unsigned doesn't replace the served revision.
    setup.push("signed", &[("a.yaml", b"evil")]).await;
    setup.request("signed", "1").await;
    let object = setup.wait_failed("signed", "VerificationError", no_match).await;
    assert_eq!(artifact_of(&object).revision, format!("signed@{signed}"));
    assert!(condition(&object, types::ARTIFACT_OUTDATED).is_some());
    assert_eq!(files(&object).await.read("a.yaml"), "signed");
    // Without verification, the condition goes.
    setup.patch("signed", json!({"spec": {"verify": null}})).await;
    let object = setup.wait_ready("signed").await;
    assert_eq!(condition(&object, types::SOURCE_VERIFIED), None);
    assert_eq!(files(&object).await.read("a.yaml"), "evil");
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_by_identities_are_verified_by_the_trusted_root() {
    const ISSUER: &str = "https://token.actions.example.com";
    const WORKFLOW: &str = "https://git.example.com/org/app/.github/workflows/release.yaml@refs/tags/v1";
    let (own, other) = (Sigstore::new().unwrap(), Sigstore::new().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trusted_root.json");
    std::fs::write(&file, other.trusted_root()).unwrap();
    let flag = format!("--sigstore-trusted-root={}", file.display());
    let setup = Setup::start_with(Login::Anonymous, None, |launch| launch.flag(&flag)).await;
    let root = |sigstore: &Sigstore| json!({"trusted_root.json": sigstore.trusted_root()});
    setup.namespace.secret("root", root(&own)).await;
    setup.namespace.secret("empty", json!({"x": "y"})).await;
    let spec = |tag: &str, root: Option<&str>, subject: &str| {
        let identities =
            json!([{"issuer": "^https://nobody", "subject": ".*"}, {"issuer": ISSUER, "subject": subject}]);
        let mut verify = json!({"provider": "cosign", "matchOIDCIdentity": identities});
        if let Some(root) = root {
            verify["trustedRootSecretRef"] = json!({"name": root});
        }
        json!({"insecure": true, "ref": {"tag": tag}, "verify": verify})
    };
    let signed = setup.push("signed", &[("a.yaml", b"signed")]).await;
    let bundled = setup.push("bundled", &[("a.yaml", b"bundled")]).await;
    let stamped = setup.push("stamped", &[("a.yaml", b"stamped")]).await;
    let elsewhere = setup.push("elsewhere", &[("a.yaml", b"elsewhere")]).await;
    setup.push("unsigned", &[("a.yaml", b"unsigned")]).await;
    let registry = &setup.registry;
    own.sign(registry, REPOSITORY, &signed, ISSUER, WORKFLOW)
        .await
        .unwrap();
    own.attach(registry, REPOSITORY, &bundled, ISSUER, WORKFLOW)
        .await
        .unwrap();
    own.attach_with_timestamp(registry, REPOSITORY, &stamped, ISSUER, WORKFLOW)
        .await
        .unwrap();
    other
        .sign(registry, REPOSITORY, &elsewhere, ISSUER, WORKFLOW)
        .await
        .unwrap();
    let release = "^https://git.example.com/org/app/.*@refs/tags/";
    for (tag, root) in [
        ("signed", Some("root")),
        ("bundled", Some("root")),
        ("stamped", Some("root")),
        ("elsewhere", None),
    ] {
        setup.apply(tag, spec(tag, root, release)).await;
        let object = setup.wait_ready(tag).await;
        assert!(condition(&object, types::SOURCE_VERIFIED).unwrap().is_true());
    }
    for (name, tag, root, subject, expected) in [
        (
            "stranger",
            "signed",
            Some("root"),
            "refs/heads/main",
            "the identity of the signer",
        ),
        (
            "root",
            "elsewhere",
            Some("root"),
            release,
            "no log of the trusted root has the signature",
        ),
        (
            "flag",
            "signed",
            None,
            release,
            "no log of the trusted root has the signature",
        ),
        (
            "none",
            "unsigned",
            Some("root"),
            release,
            "no matching signatures were found for '",
        ),
        (
            "no-secret",
            "signed",
            Some("gone"),
            release,
            "failed to get secret",
        ),
        (
            "no-key",
            "signed",
            Some("empty"),
            release,
            "key 'trusted_root.json' not found",
        ),
    ] {
        setup.apply(name, spec(tag, root, subject)).await;
        let object = setup.wait_failed(name, "VerificationError", expected).await;
        let verified = condition(&object, types::SOURCE_VERIFIED).unwrap();
        assert!(
            verified.is_false()
                && verified
                    .message
                    .starts_with("failed to verify the signature using provider 'cosign keyless'"),
            "{verified:?}"
        );
        assert!(object.status.unwrap().artifact.is_none(), "{name}");
    }
    setup.apply("pattern", spec("signed", None, "(")).await;
    setup
        .wait_failed(
            "pattern",
            "InvalidSpec",
            "spec.verify.matchOIDCIdentity[1].subject",
        )
        .await;
    // Another root ends the trust, though nothing else changed.
    setup.namespace.secret("root", root(&other)).await;
    setup.request("signed", "1").await;
    setup
        .wait_failed("signed", "VerificationError", "no log of the trusted root")
        .await;
}
