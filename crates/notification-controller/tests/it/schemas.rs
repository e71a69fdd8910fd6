//! The schemas of the kinds, tried field by field at a real API server.

use serde_json::{Value, json};
use testkit::ControlPlane;

const PROVIDERS: &str = "slack discord msteams rocket generic generic-hmac github gitlab bitbucket azuredevops googlechat webex sentry \
    azureeventhub telegram lark matrix opsgenie alertmanager grafana githubdispatch gitea bitbucketserver googlepubsub pagerduty datadog \
    nats zulip otel githubpullrequestcomment gitlabmergerequestcomment giteapullrequestcomment zoom incident.io";
const RECEIVERS: &str =
    "generic generic-hmac github gitlab bitbucket harbor dockerhub quay gcr nexus acr cdevents";

struct Kind {
    plane: &'static ControlPlane,
    namespace: String,
    version: &'static str,
    kind: &'static str,
    spec: Value,
}

impl Kind {
    async fn new(version: &'static str, kind: &'static str, spec: Value) -> Self {
        let plane = ControlPlane::shared_with_crds().await.unwrap();
        let namespace = plane.namespace("schemas").await.unwrap();
        Self {
            plane,
            namespace,
            version,
            kind,
            spec,
        }
    }

    /// Applies the object with these fields in its spec; null removes one. Returns its spec, or the message of the refusal.
    async fn apply(&self, changes: &Value) -> Result<Value, String> {
        let mut spec = self.spec.clone();
        for (key, value) in changes.as_object().unwrap() {
            match value.is_null() {
                true => drop(spec.as_object_mut().unwrap().remove(key)),
                false => spec[key] = value.clone(),
            }
        }
        // Each has a name of its own: defaults apply to new objects only.
        let name = format!("x{:x}", hash(&spec.to_string()));
        let object = json!({
            "apiVersion": format!("notification.toolkit.fluxcd.io/{}", self.version), "kind": self.kind,
            "metadata": {"name": name, "namespace": self.namespace}, "spec": spec,
        });
        let applied = self.plane.apply(object).await;
        applied
            .map(|object| object.data["spec"].clone())
            .map_err(|error| format!("{error:#}"))
    }

    async fn accepts(&self, changes: Value) -> Value {
        self.apply(&changes).await.unwrap()
    }

    /// Checks that the API server refuses the object because of a field, or with the message of a rule.
    async fn refuses(&self, changes: Value, why: &str) {
        let error = self.apply(&changes).await.unwrap_err();
        assert!(error.contains(why), "{changes}: {error}");
    }
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[tokio::test]
async fn fields_of_alerts_have_the_bounds_of_the_original() {
    let source = |more: Value| {
        let mut source = json!({"kind": "Bucket", "name": "*"});
        source
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"eventSources": [source]})
    };
    let spec = json!({"providerRef": {"name": "p"}, "eventSources": []});
    for version in ["v1beta3", "v1beta2", "v1beta1"] {
        let alerts = Kind::new(version, "Alert", spec.clone()).await;
        assert_eq!(alerts.accepts(json!({})).await["eventSeverity"], "info");
        for severity in ["info", "error"] {
            alerts.accepts(json!({"eventSeverity": severity})).await;
        }
        alerts.accepts(json!({"summary": "s".repeat(255)})).await;
        alerts.accepts(source(json!({"name": "n".repeat(253)}))).await;
        alerts
            .accepts(source(json!({"namespace": "n".repeat(253)})))
            .await;
        // The original has an enumeration of kinds, which users patch.
        alerts.accepts(source(json!({"kind": "KluctlDeployment"}))).await;
        let everything = json!({
            "inclusionList": ["a"], "exclusionList": ["b"], "eventMetadata": {"a": "b"}, "suspend": true,
            "eventSources": [{"apiVersion": "v1", "kind": "K", "name": "*", "namespace": "n", "matchLabels": {"a": "b"}}],
        });
        let kept = alerts.accepts(everything.clone()).await;
        for (field, value) in everything.as_object().unwrap() {
            assert_eq!(kept[field], *value, "{version}: {field}");
        }
        for (changes, why) in [
            (json!({"providerRef": null}), "spec.providerRef"),
            (json!({"providerRef": {}}), "spec.providerRef.name"),
            (json!({"eventSources": null}), "spec.eventSources"),
            (json!({"eventSeverity": "warning"}), "spec.eventSeverity"),
            (json!({"summary": "s".repeat(256)}), "spec.summary"),
            (source(json!({"kind": ""})), "spec.eventSources[0].kind"),
            (source(json!({"name": ""})), "spec.eventSources[0].name"),
            (
                source(json!({"name": "n".repeat(254)})),
                "spec.eventSources[0].name",
            ),
            (source(json!({"namespace": ""})), "spec.eventSources[0].namespace"),
            (
                source(json!({"namespace": "n".repeat(254)})),
                "spec.eventSources[0].namespace",
            ),
            (
                json!({"eventSources": [{"kind": "Bucket"}]}),
                "spec.eventSources[0].name",
            ),
            (
                json!({"eventSources": [{"name": "*"}]}),
                "spec.eventSources[0].kind",
            ),
        ] {
            alerts.refuses(changes, why).await;
        }
    }
}

#[tokio::test]
async fn fields_of_providers_have_the_bounds_of_the_original() {
    let spec = json!({"type": "generic"});
    let providers = Kind::new("v1beta3", "Provider", spec).await;
    for name in PROVIDERS.split_whitespace() {
        providers.accepts(json!({"type": name})).await;
    }
    for duration in ["15s", "500ms", "1m30s", "0.5m"] {
        providers.accepts(json!({"timeout": duration})).await;
    }
    providers.accepts(json!({"interval": "1h"})).await;
    for field in ["address", "channel", "username"] {
        providers.accepts(json!({field: "x".repeat(2048)})).await;
        providers
            .refuses(json!({field: "x".repeat(2049)}), &format!("spec.{field}"))
            .await;
    }
    for kind in [
        "github",
        "gitlab",
        "gitea",
        "bitbucketserver",
        "bitbucket",
        "azuredevops",
    ] {
        providers
            .accepts(json!({"type": kind, "commitStatusExpr": "'x'"}))
            .await;
    }
    for proxy in ["http://proxy:3128", "https://proxy"] {
        providers.accepts(json!({"proxy": proxy})).await;
    }
    for (changes, why) in [
        (json!({"type": null}), "spec.type"),
        (json!({"type": "Slack"}), "spec.type"),
        (json!({"type": "carrier-pigeon"}), "spec.type"),
        (json!({"timeout": "1h"}), "spec.timeout"),
        (json!({"timeout": "15"}), "spec.timeout"),
        (json!({"timeout": "-1s"}), "spec.timeout"),
        (json!({"interval": "1d"}), "spec.interval"),
        (json!({"proxy": "socks5://proxy"}), "spec.proxy"),
        (json!({"proxy": "proxy:3128"}), "spec.proxy"),
        (json!({"secretRef": {}}), "spec.secretRef.name"),
        (json!({"certSecretRef": {}}), "spec.certSecretRef.name"),
        (json!({"proxySecretRef": {}}), "spec.proxySecretRef.name"),
        (
            json!({"type": "slack", "commitStatusExpr": "'x'"}),
            "commitStatusExpr",
        ),
        (
            json!({"type": "githubdispatch", "commitStatusExpr": "'x'"}),
            "commitStatusExpr",
        ),
    ] {
        providers.refuses(changes, why).await;
    }
}

#[tokio::test]
async fn fields_of_receivers_have_the_bounds_of_the_original() {
    let resources = json!([{"kind": "Bucket", "name": "x"}]);
    let spec = json!({"type": "generic", "secretRef": {"name": "s"}, "resources": resources});
    let receivers = Kind::new("v1", "Receiver", spec).await;
    for name in RECEIVERS.split_whitespace() {
        let kept = receivers.accepts(json!({"type": name})).await;
        assert_eq!(kept["interval"], "10m", "{name}");
    }
    for interval in ["500ms", "30s", "5m", "1h30m"] {
        receivers.accepts(json!({"interval": interval})).await;
    }
    let validation = json!({"expression": "true", "message": "m"});
    let oidc = |issuer: &str, more: Value| {
        let mut provider = json!({"issuerURL": issuer, "validations": [validation]});
        provider
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"type": "generic-oidc", "secretRef": null, "oidcProviders": [provider]})
    };
    let (issuer, none) = ("https://issuer.example", json!({}));
    receivers.accepts(oidc(issuer, none.clone())).await;
    receivers
        .accepts(oidc("http://issuer.example", none.clone()))
        .await;
    receivers
        .accepts(oidc(
            issuer,
            json!({"audience": "a", "variables": [{"name": "v", "expression": "1"}]}),
        ))
        .await;
    let mut twice = oidc(issuer, none.clone());
    let first = twice["oidcProviders"][0].clone();
    twice["oidcProviders"].as_array_mut().unwrap().push(first);
    let mut with_secret = oidc(issuer, none);
    with_secret["secretRef"] = json!({"name": "s"});
    let of_generic = json!({"oidcProviders": [{"issuerURL": issuer, "validations": [validation]}]});
    for (changes, why) in [
        (json!({"type": "gitea"}), "spec.type"),
        (json!({"resources": null}), "spec.resources"),
        (
            json!({"resources": [{"kind": "Bucket"}]}),
            "spec.resources[0].name",
        ),
        (
            json!({"resources": [{"kind": "Bucket", "name": ""}]}),
            "spec.resources[0].name",
        ),
        (json!({"interval": "1d"}), "spec.interval"),
        (
            json!({"secretRef": null}),
            "secretRef is required unless type is 'generic-oidc'",
        ),
        (
            json!({"type": "generic-oidc", "secretRef": null}),
            "oidcProviders must have an entry when type is 'generic-oidc'",
        ),
        (
            of_generic,
            "oidcProviders may only be set when type is 'generic-oidc'",
        ),
        (
            with_secret,
            "secretRef must not be set when type is 'generic-oidc'",
        ),
        (oidc("issuer.example", json!({})), "issuerURL"),
        (oidc(issuer, json!({"validations": []})), "validations"),
        (
            oidc(
                issuer,
                json!({"validations": [{"expression": "", "message": "m"}]}),
            ),
            "expression",
        ),
        (twice, "duplicate entries"),
    ] {
        receivers.refuses(changes, why).await;
    }
}

#[tokio::test]
async fn columns_show_age_readiness_and_message() {
    let alert = json!({"providerRef": {"name": "p"}, "eventSources": []});
    let receiver = json!({"type": "generic", "secretRef": {"name": "s"}, "resources": [{"kind": "Bucket", "name": "x"}]});
    for (version, kind, spec) in [
        ("v1beta3", "Alert", alert),
        ("v1beta3", "Provider", json!({"type": "generic"})),
        ("v1", "Receiver", receiver),
    ] {
        let kind = Kind::new(version, kind, spec).await;
        kind.accepts(json!({})).await;
        let resource = format!(
            "{}s.{version}.notification.toolkit.fluxcd.io",
            kind.kind.to_lowercase()
        );
        let args = ["get", &resource, "--namespace", &kind.namespace];
        let shown = kind.plane.kubectl(&args).await.unwrap();
        let head: Vec<_> = shown.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head, ["NAME", "AGE", "READY", "STATUS"], "{resource}");
    }
}
