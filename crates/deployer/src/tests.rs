use std::{collections::BTreeMap, time::Duration};

use api::{
    Artifact, DependencyReference, Fault, KubeConfig, Reason, SourceReference, kluctl::KluctlDeployment,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::core::DynamicObject;
use runtime::ObjectKey;
use serde_json::{Value, json};

use super::*;
use crate::{
    clusters::kubeconfig_in,
    dependencies::{Reader, allow, reader, waits_for},
    references::download_fault,
    sources::hosts::ArtifactHosts,
};

/// A consumer of two kinds of sources.
#[derive(Debug)]
struct Deployments;

impl Consumer for Deployments {
    type Object = KluctlDeployment;

    const SOURCE_KINDS: &'static [SourceKind] = &[SourceKind::GitRepository, SourceKind::Bucket];

    fn source_ref(object: &KluctlDeployment) -> Option<SourceReference> {
        object.spec.source_ref.clone()
    }

    fn depends_on(object: &KluctlDeployment) -> Vec<DependencyReference> {
        object.spec.depends_on.clone()
    }

    fn kube_config(object: &KluctlDeployment) -> Option<&KubeConfig> {
        object.spec.kube_config.as_ref()
    }

    fn service_account_name(object: &KluctlDeployment) -> Option<&str> {
        object.spec.service_account_name.as_deref()
    }

    fn retry_interval(object: &KluctlDeployment) -> Duration {
        object.spec.interval.as_duration()
    }

    fn handled_request(object: &KluctlDeployment) -> Option<&str> {
        object.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }
}

fn manifest(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "flux.kluctl.io/v1alpha1",
        "kind": "KluctlDeployment",
        "metadata": { "name": "shop", "namespace": "apps", "generation": 2 },
        "spec": { "interval": "5m", "sourceRef": { "kind": "GitRepository", "name": "shop" } },
        "status": {
            "observedGeneration": 2,
            "lastAttemptedRevision": "main@sha1:new",
            "conditions": [{ "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded" }],
        },
    });
    change(&mut object);
    object
}

fn typed(change: impl FnOnce(&mut Value)) -> KluctlDeployment {
    serde_json::from_value(manifest(change)).expect("decodes")
}

fn untyped(change: impl FnOnce(&mut Value)) -> DynamicObject {
    serde_json::from_value(manifest(change)).expect("decodes")
}

fn found(url: &str) -> SourceArtifact {
    SourceArtifact {
        source: SourceId {
            kind: SourceKind::GitRepository,
            key: ObjectKey::new("apps", "shop"),
        },
        artifact: Artifact {
            url: url.to_owned(),
            revision: "main@sha1:new".to_owned(),
            ..Artifact::default()
        },
        git: None,
    }
}

#[test]
fn source_kinds_have_resources() {
    let kinds: Vec<_> = SourceKind::ALL
        .iter()
        .map(|kind| kind.resource(kind.preferred_version()))
        .map(|resource| format!("{}.{} {}", resource.plural, resource.api_version, resource.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            "gitrepositories.source.toolkit.fluxcd.io/v1 GitRepository",
            "buckets.source.toolkit.fluxcd.io/v1 Bucket",
            "ocirepositories.source.toolkit.fluxcd.io/v1 OCIRepository",
            "externalartifacts.source.toolkit.fluxcd.io/v1 ExternalArtifact",
            "helmcharts.source.toolkit.fluxcd.io/v1 HelmChart",
        ]
    );
    assert_eq!(SourceKind::named("Bucket"), Some(SourceKind::Bucket));
    assert_eq!(
        SourceKind::named("HelmRepository"),
        None,
        "it has no artifact to deploy"
    );
}

#[test]
fn references_get_the_namespace_of_their_object() {
    let object = typed(|object| {
        object["spec"]["dependsOn"] = json!([{ "name": "a" }, { "name": "b", "namespace": "other" }]);
        object["spec"]["sourceRef"] = json!({ "kind": "Bucket", "name": "shop", "namespace": "" });
    });
    let source = Deployments::source(&object).map(|source| source.to_string());
    assert_eq!(source.as_deref(), Some("Bucket/apps/shop"));
    assert_eq!(
        Deployments::dependencies(&object),
        [ObjectKey::new("apps", "a"), ObjectKey::new("other", "b")]
    );
}

#[test]
fn check_names_the_invalid_field() {
    type Edit = fn(&mut Value);
    let cases: [(Edit, &str); 11] = [
        (
            |spec| spec["sourceRef"]["name"] = json!("../../other/gitrepositories/x"),
            "spec.sourceRef.name: ",
        ),
        (
            |spec| spec["sourceRef"]["namespace"] = json!("a/b"),
            "spec.sourceRef.namespace: ",
        ),
        (
            |spec| spec["dependsOn"] = json!([{ "name": "a?watch=1" }]),
            "spec.dependsOn[0].name: ",
        ),
        (
            |spec| spec["sourceRef"] = Value::Null,
            "spec.sourceRef: is missing: name the GitRepository or Bucket to deploy",
        ),
        (
            |spec| spec["sourceRef"]["name"] = json!(""),
            "spec.sourceRef.name: \"\": ",
        ),
        (
            |spec| spec["sourceRef"]["kind"] = json!("OCIRepository"),
            "spec.sourceRef.kind: OCIRepository is not supported yet",
        ),
        (
            |spec| spec["sourceRef"]["apiVersion"] = json!("source.toolkit.fluxcd.io/v7"),
            "spec.sourceRef.apiVersion: source.toolkit.fluxcd.io/v7 is not supported yet",
        ),
        (
            |spec| spec["dependsOn"] = json!([{ "name": "a" }, { "name": "shop" }]),
            "spec.dependsOn[1]: apps/shop: ",
        ),
        (
            |spec| spec["serviceAccountName"] = json!("x:kube-system:admin"),
            "spec.serviceAccountName: ",
        ),
        (
            |spec| spec["kubeConfig"] = json!({ "secretRef": { "name": "../x" } }),
            "spec.kubeConfig.secretRef.name: ",
        ),
        (
            |spec| spec["kubeConfig"] = json!({ "secretRef": { "name": "" } }),
            "spec.kubeConfig.secretRef.name: \"\": must name a Secret",
        ),
    ];
    for (edit, expected) in cases {
        let object = typed(|object| edit(&mut object["spec"]));
        let fault = check::<Deployments>(&object).expect_err(expected);
        assert!(fault.message.starts_with(expected), "{fault}");
    }
    let old = typed(|object| {
        object["spec"]["sourceRef"]["apiVersion"] = json!("source.toolkit.fluxcd.io/v1beta1");
        object["spec"]["serviceAccountName"] = json!("");
    });
    assert_eq!(check::<Deployments>(&old), Ok(()));
}

#[test]
fn links_of_an_object_that_does_not_decode_are_read() {
    let poison = |object: &mut Value| {
        object["spec"]["interval"] = json!("99999999999999h");
        object["spec"]["dependsOn"] = json!([{ "name": 7 }, { "name": "db" }]);
        object["status"]["conditions"] = json!([7, { "type": "Ready", "status": "True" }]);
        object["status"]["lastDeployResult"] = json!("x");
    };
    assert!(serde_json::from_value::<KluctlDeployment>(manifest(poison)).is_err());
    let links = Deployments::links(&untyped(poison));
    assert_eq!(
        links,
        Links {
            source: Some(found("").source),
            dependencies: vec![ObjectKey::new("apps", "db")],
            attempted_revision: Some("main@sha1:new".to_owned()),
            reached_revision: Some("main@sha1:new".to_owned()),
            ready: true,
            configs: Vec::new(),
        }
    );
    let empty = untyped(|object| {
        object["spec"] = json!({ "sourceRef": "x", "dependsOn": {} });
        object["status"] = json!([]);
    });
    assert_eq!(Deployments::links(&empty), Links::default());
    let bare = untyped(|object| {
        object["spec"] = Value::Null;
        object["status"] = Value::Null;
    });
    assert_eq!(Deployments::links(&bare), Links::default());
}

#[test]
fn dependency_is_awaited_until_it_is_ready_and_up_to_date() {
    let key = ObjectKey::new("apps", "db");
    let check = |dependency: Option<DynamicObject>| {
        waits_for::<Deployments>(&key, dependency.as_ref(), Some(&found("")))
    };
    let missing = check(None);
    assert_eq!(
        missing.as_deref(),
        Some("unable to get 'apps/db' dependency: it does not exist")
    );
    let not_ready: [fn(&mut Value); 3] = [
        |object| object["status"] = json!({}),
        |object| object["metadata"]["generation"] = json!(3),
        |object| object["status"]["conditions"][0]["status"] = json!("False"),
    ];
    for edit in not_ready {
        let message = check(Some(untyped(edit)));
        assert_eq!(message.as_deref(), Some("dependency 'apps/db' is not ready"));
    }
    let old = |object: &mut Value| object["status"]["lastAttemptedRevision"] = json!("main@sha1:old");
    let message = check(Some(untyped(old)));
    assert_eq!(
        message.as_deref(),
        Some("dependency 'apps/db' is not updated yet")
    );
    for field in ["name", "kind"] {
        let other = untyped(|object| {
            old(object);
            object["spec"]["sourceRef"][field] = json!("Bucket");
        });
        assert_eq!(check(Some(other)), None, "another source");
    }
    let short = untyped(|object| object["status"]["lastAttemptedRevision"] = json!("main/new"));
    assert_eq!(check(Some(short)), None);
    assert_eq!(check(Some(untyped(|_| {}))), None);
}

#[test]
fn references_to_other_namespaces_can_be_blocked() {
    let second = Duration::from_secs(1);
    let blocked = ReferenceRules {
        cross_namespace: false,
        requeue_dependency: second,
    };
    let allow = |rules: ReferenceRules, namespace: &str| {
        rules.allow(
            "apps",
            "GitRepository",
            &ObjectKey::new(namespace, "shop"),
            second,
        )
    };
    let message =
        "can't access 'GitRepository/flux-system/shop', cross-namespace references have been blocked";
    assert_eq!(
        allow(blocked, "flux-system"),
        Err(Fault::wait(second, Reason::AccessDenied, message))
    );
    assert_eq!(allow(blocked, "apps"), Ok(()));
    let open = ReferenceRules {
        cross_namespace: true,
        ..blocked
    };
    assert_eq!(allow(open, "flux-system"), Ok(()));
}

#[test]
fn dependencies_in_other_namespaces_are_blocked_if_their_content_is_read() {
    let blocked = ReferenceRules {
        cross_namespace: false,
        requeue_dependency: Duration::from_secs(1),
    };
    let object = typed(|_| {});
    for (reference, target) in [
        (json!({ "name": "a" }), None),
        (json!({ "name": "a", "ready": false }), None),
        (json!({ "name": "a", "kind": "KluctlDeployment" }), None),
        (
            json!({ "name": "a", "readyExpr": "true" }),
            Some("KluctlDeployment/other/a"),
        ),
        (
            json!({ "name": "a", "apiVersion": "v1", "kind": "Secret" }),
            Some("Secret/other/a"),
        ),
    ] {
        let reference: DependencyReference = serde_json::from_value(reference).unwrap();
        let allowed = |namespace: &str| {
            let key = ObjectKey::new(namespace, "a");
            allow::<Deployments>(blocked, &object, &reference, &key).map_err(|fault| fault.message)
        };
        let refused = target
            .map(|target| format!("can't access '{target}', cross-namespace references have been blocked"));
        assert_eq!(allowed("other").err(), refused, "{reference:?}");
        assert_eq!(allowed("apps"), Ok(()));
    }
}

#[test]
fn account_of_a_remote_cluster_reads_nothing_of_the_own_one() {
    let target = |kind: &str, namespace: &str| {
        let api_version = match kind {
            "KluctlDeployment" => "flux.kluctl.io/v1alpha1",
            _ => "v1",
        };
        let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a", "namespace": namespace } });
        ::objects::ObjectRef::of(&yaml::Value::from_json(object)).unwrap()
    };
    let account = |object: &mut Value| object["spec"]["serviceAccountName"] = json!("deployer");
    let local = typed(account);
    let remote = typed(|object| {
        account(object);
        object["spec"]["kubeConfig"] = json!({ "secretRef": { "name": "cluster" } });
    });
    for (kind, namespace, expected) in [
        ("KluctlDeployment", "apps", Reader::Controller),
        ("KluctlDeployment", "other", Reader::DefaultAccount),
        ("ConfigMap", "apps", Reader::DefaultAccount),
    ] {
        let target = target(kind, namespace);
        assert_eq!(
            reader::<Deployments>(&remote, &target),
            expected,
            "{kind} {namespace}"
        );
        let own = Reader::Account(Some("deployer"));
        assert_eq!(reader::<Deployments>(&local, &target), own, "{kind} {namespace}");
    }
}

#[test]
fn artifact_url_must_lead_to_a_file_of_the_source() {
    let hosts = ArtifactHosts::new(
        &[
            "storage".to_owned(),
            "source-controller.flux-system.svc.cluster.local".to_owned(),
        ],
        "",
    );
    let minute = Duration::from_secs(60);
    for url in [
        "http://source-controller.flux-system.svc.cluster.local./gitrepository/apps/shop/1a2b.tar.gz",
        "https://storage:9090/gitrepository/apps/shop/shop-1.0.0+build~1.tgz",
        "http://127.0.0.1:8080/1a2b.tar.gz",
        "http://localhost:8080/1a2b.tar.gz",
        "http://[::1]:8080/1a2b.tar.gz",
    ] {
        assert_eq!(found(url).check_url(&hosts, minute), Ok(()), "{url}");
    }
    for url in [
        "",
        "no URL",
        "http://storage",
        "http://storage/gitrepository/apps/shop",
        "http://storage/gitrepository/apps/shop/",
        "http://storage/gitrepository/apps/shop/a/b.tar.gz",
        "http://storage/gitrepository/victim/shop/1.tar.gz",
        "http://storage/gitrepository/apps/other/1.tar.gz",
        "http://storage/bucket/apps/shop/1.tar.gz",
        "http://storage/x/gitrepository/apps/shop/1.tar.gz",
        "http://storage/gitrepository/apps/shop/../../victim/shop/1.tar.gz",
        "http://storage/gitrepository/apps/shop/%2e%2e/%2e%2e/victim/shop/1.tar.gz",
        "http://storage/gitrepository/apps/shop/..%2f..%2fvictim%2fshop%2f1.tar.gz",
        "http://storage/gitrepository/apps/shop/..\\..\\victim\\shop\\1.tar.gz",
        "http://storage/gitrepository/apps/shop/1.tar.gz?file=/gitrepository/victim/shop/1.tar.gz",
        "http://169.254.169.254/latest/meta-data",
        "http://storage/1.tar.gz",
        "http://127.0.0.1:8080/",
        "http://127.0.0.1:8080/%2e%2e",
        "http://127.0.0.1:8080/1.tar.gz?file=2",
        "http://127.0.0.1:8080/x/1.tar.gz",
        "http://127.0.0.1:8080/gitrepository/victim/shop/1.tar.gz",
    ] {
        let fault = found(url).check_url(&hosts, minute).expect_err(url);
        assert_eq!(fault.reason, Reason::ArtifactFailed, "{url}");
        assert!(
            fault.message.contains("/gitrepository/apps/shop/<file>"),
            "{fault}"
        );
    }
    for url in [
        "http://169.254.169.254/gitrepository/apps/shop/1.tar.gz",
        "http://source-controller.tenant.svc/gitrepository/apps/shop/1.tar.gz",
    ] {
        let fault = found(url).check_url(&hosts, minute).expect_err(url);
        assert!(fault.message.contains("--artifact-hosts"), "{fault}");
    }
    let secret = found("http://user:s3cret@storage/x")
        .check_url(&hosts, minute)
        .expect_err("refused");
    assert!(!secret.message.contains("s3cret"), "{secret}");
}

#[test]
fn download_is_retried_soon_and_a_wrong_artifact_after_the_interval() {
    let hour = Duration::from_secs(3600);
    let url = || "http://source/a.tar.gz".to_owned();
    let lost = download_fault(&artifact::Error::NotFound { url: url() }, hour);
    assert_eq!(lost.class, api::Class::Wait(Duration::from_secs(15)));
    let wanted = "sha256:a".to_owned();
    let wrong = download_fault(&artifact::Error::DigestMismatch { url: url(), wanted }, hour);
    assert_eq!(
        (wrong.class, wrong.reason),
        (api::Class::Wait(hour), Reason::PrepareFailed)
    );
    assert!(
        wrong.message.starts_with("failed download of artifact: "),
        "{wrong}"
    );
}

#[test]
fn cluster_identity_compares_address_and_authority() {
    let identity = |server: &str, authority: Option<&[u8]>| ClusterIdentity {
        server: server.to_owned(),
        authority: authority.map(|bytes| vec![bytes.to_vec()]),
    };
    let local = identity("https://10.0.0.1", Some(b"ca"));
    assert!(local.may_be(&identity("https://10.0.0.1", None)));
    assert!(local.may_be(&identity("https://api.example.com", Some(b"ca"))));
    assert!(!local.may_be(&identity("https://api.example.com", Some(b"other"))));
    assert!(!identity("https://a", None).may_be(&identity("https://b", None)));
}

#[test]
fn kubeconfig_is_read_from_its_key() {
    let secret = |pairs: &[(&str, &str)]| {
        let data = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret {
            data: Some(data.collect::<BTreeMap<_, _>>()),
            ..Secret::default()
        }
    };
    let both = secret(&[("value", "a"), ("value.yaml", "b"), ("own", "c"), ("empty", "")]);
    assert_eq!(kubeconfig_in(&both, None), Ok(&b"a"[..]));
    assert_eq!(kubeconfig_in(&both, Some("")), Ok(&b"a"[..]));
    assert_eq!(kubeconfig_in(&both, Some("own")), Ok(&b"c"[..]));
    assert_eq!(kubeconfig_in(&both, Some("empty")), Err("empty"));
    let yaml = secret(&[("value.yaml", "b")]);
    assert_eq!(kubeconfig_in(&yaml, None), Ok(&b"b"[..]));
    assert_eq!(kubeconfig_in(&secret(&[]), None), Err("value"));
}
