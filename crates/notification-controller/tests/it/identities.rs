//! Identities of clouds instead of credentials: of ServiceAccounts, for the services of their clouds alone.

use serde_json::{Value, json};
use testkit::{
    Answer, CloudIdentities, HttpProxy, Received, WebhookSink,
    controller::Launch,
    identities::{APPLICATION, GOOGLE_ACCOUNT, GOOGLE_PROVIDER},
};

use crate::setup::{TIMEOUT, TestNamespace};

const GATE: &str = "--feature-gates=ObjectLevelWorkloadIdentity=true";
const HOSTS: [&str; 3] = [
    "dev.azure.com",
    "ns.servicebus.windows.net",
    "pubsub.googleapis.com",
];
const HASH: &str = "0123456789012345678901234567890123456789";

/// A controller in clouds whose hosts are one local server, behind the proxy of Providers.
struct Clouds {
    setup: TestNamespace,
    services: WebhookSink,
    identities: CloudIdentities,
    _proxy: HttpProxy,
}

impl Clouds {
    async fn start(name: &str, flags: impl FnOnce(Launch) -> Launch) -> Self {
        let plane = testkit::ControlPlane::shared().await.unwrap();
        let namespace = plane.namespace(name).await.unwrap();
        let identities = CloudIdentities::start(&namespace, "weir").unwrap();
        let url = identities.url();
        let setup = TestNamespace::with_namespace(namespace, |launch| {
            flags(launch)
                .env("AZURE_AUTHORITY_HOST", &url)
                .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", &url)
                .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", &url)
        })
        .await;
        let services = WebhookSink::start_tls_for(&HOSTS).unwrap();
        services.answer(Answer::Status(200, r#"{"value": []}"#.into()));
        let proxy = HttpProxy::start("me", "canary").unwrap();
        for host in HOSTS {
            proxy.route(&format!("{host}:443"), &services.address());
        }
        let secret = json!({"address": proxy.url(), "username": "me", "password": "canary"});
        setup.secret("proxy", &secret).await;
        setup.secret("ca", &json!({"ca.crt": services.ca_pem()})).await;
        let clouds = Self {
            setup,
            services,
            identities,
            _proxy: proxy,
        };
        let annotations = json!({
            "azure.workload.identity/client-id": APPLICATION,
            "azure.workload.identity/tenant-id": "tenant",
            "gcp.auth.fluxcd.io/workload-identity-provider": GOOGLE_PROVIDER,
            "iam.gke.io/gcp-service-account": GOOGLE_ACCOUNT,
        });
        clouds.account("weir", &annotations).await;
        clouds.account("plain", &json!({})).await;
        clouds
    }

    async fn account(&self, name: &str, annotations: &Value) {
        let metadata = json!({"name": name, "namespace": self.setup.namespace, "annotations": annotations});
        let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
        self.setup.plane.apply(object).await.unwrap();
    }

    async fn provider(&self, name: &str, more: &Value) {
        let mut spec = json!({"certSecretRef": {"name": "ca"}, "proxySecretRef": {"name": "proxy"}});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.setup.provider(name, &spec).await;
    }

    async fn wait_sent(&self, path: &str) -> Received {
        let sent = self.services.wait_for(path, TIMEOUT, |request| {
            request.method == "POST" && request.path.starts_with(path)
        });
        sent.await.unwrap()
    }
}

fn devops(more: &Value) -> Value {
    let mut spec = json!({"type": "azuredevops", "address": "https://dev.azure.com/org/project/_git/shop"});
    spec.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    spec
}

#[tokio::test]
async fn identities_of_service_accounts_authenticate_at_their_clouds() {
    let clouds = Clouds::start("identities", |launch| launch.flag(GATE)).await;
    let account = json!({"serviceAccountName": "weir"});
    clouds.provider("devops", &devops(&account)).await;
    let hub =
        json!({"type": "azureeventhub", "address": "hub", "channel": "ns", "serviceAccountName": "weir"});
    clouds.provider("hub", &hub).await;
    let topic = json!({"type": "googlepubsub", "address": "a-project", "channel": "events", "serviceAccountName": "weir"});
    clouds.provider("topic", &topic).await;
    for name in ["devops", "hub", "topic"] {
        clouds.setup.alert(name, name, &json!({})).await;
        clouds.setup.wait_ready("Provider", name, "True").await;
        clouds.setup.wait_ready("Alert", name, "True").await;
    }
    for round in ["first", "second"] {
        let mut event = clouds.setup.event(round);
        event["severity"] = "error".into();
        event["metadata"]["source.toolkit.fluxcd.io/revision"] = format!("main@sha1:{HASH}").into();
        clouds.setup.accepted(&event).await;
    }
    for (path, token) in [
        (
            "/org/project/_apis/git/",
            "499b84ac-1321-427f-aa17-267ca6975798/.default",
        ),
        ("/hub/messages", "https://eventhubs.azure.net/.default"),
        ("/v1/projects/a-project/topics/events:publish", "google"),
    ] {
        let sent = clouds.wait_sent(path).await;
        assert_eq!(
            sent.header("authorization"),
            format!("Bearer canary-{token}"),
            "{path}"
        );
    }
    assert!(clouds.setup.controller.terminate().await.unwrap().success());
    let mut asked = clouds.identities.asked();
    asked.sort();
    let expected = [
        "499b84ac-1321-427f-aa17-267ca6975798/.default",
        "account",
        "federation",
        "https://eventhubs.azure.net/.default",
    ];
    assert_eq!(asked, expected, "tokens are kept");
}

#[tokio::test]
async fn tokens_of_identities_go_to_services_of_their_cloud_alone() {
    let clouds = Clouds::start("elsewhere", |launch| launch.flag(GATE)).await;
    let elsewhere =
        json!({"address": "https://evil.example/org/project/_git/shop", "serviceAccountName": "weir"});
    clouds.provider("elsewhere", &devops(&elsewhere)).await;
    let hub = json!({
        "type": "azureeventhub", "address": "hub", "channel": "ns.servicebus.windows.net.evil.example",
        "serviceAccountName": "weir",
    });
    clouds.provider("hub", &hub).await;
    for name in ["elsewhere", "hub"] {
        let ready = clouds.setup.wait_ready("Provider", name, "False").await;
        assert_eq!(ready["reason"], "InvalidConfig");
        let message = ready["message"].as_str().unwrap();
        assert!(
            message.starts_with("the address is no service of the cloud"),
            "{message}"
        );
    }
    clouds
        .provider("plain", &devops(&json!({"serviceAccountName": "plain"})))
        .await;
    let ready = clouds.setup.wait_ready("Provider", "plain", "False").await;
    assert_eq!(ready["reason"], "AuthenticationFailed");
    let expected = format!(
        "failed to get the identity of service account '{}/plain': the service account cannot be used: it has no annotation \
         'azure.workload.identity/client-id'",
        clouds.setup.namespace
    );
    assert_eq!(ready["message"], expected);
    clouds.setup.secret("token", &json!({"token": "canary"})).await;
    let both = json!({"serviceAccountName": "weir", "secretRef": {"name": "token"}});
    clouds.provider("both", &devops(&both)).await;
    let ready = clouds.setup.wait_ready("Provider", "both", "False").await;
    assert_eq!(ready["reason"], "InvalidConfig");
    assert!(clouds.services.received().is_empty());
}

#[tokio::test]
async fn providers_without_an_account_use_the_default_one() {
    let flags = |launch: Launch| launch.flag(GATE).flag("--default-service-account=weir");
    let clouds = Clouds::start("default", flags).await;
    clouds.provider("devops", &devops(&json!({}))).await;
    clouds.setup.wait_ready("Provider", "devops", "True").await;
    assert_eq!(
        clouds.identities.asked(),
        ["499b84ac-1321-427f-aa17-267ca6975798/.default"]
    );
}

#[tokio::test]
async fn service_accounts_need_the_feature_gate() {
    let clouds = Clouds::start("gate", |launch| launch).await;
    clouds
        .provider("devops", &devops(&json!({"serviceAccountName": "weir"})))
        .await;
    clouds.setup.alert("devops", "devops", &json!({})).await;
    let ready = clouds.setup.wait_ready("Provider", "devops", "False").await;
    assert_eq!(ready["reason"], "FeatureGateDisabled");
    clouds.setup.wait_ready("Alert", "devops", "True").await;
    let mut event = clouds.setup.event("nowhere");
    event["severity"] = "error".into();
    clouds.setup.accepted(&event).await;
    let warning = clouds.setup.warning("devops", "NotificationDispatchFailed").await;
    let message = warning.message.unwrap();
    assert!(
        message.contains("ObjectLevelWorkloadIdentity is off"),
        "{message}"
    );
    assert!(clouds.identities.asked().is_empty());
}
