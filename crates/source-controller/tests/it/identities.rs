//! Identities of clouds: of service accounts, and of the controller.

use api::{
    conditions,
    source::{Bucket, OCIRepository},
};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{
    Authority, CloudIdentities, CloudRegistries, GitServer, HttpProxy, Registry, S3Server,
    controller::Launch,
    eventually,
    identities::{ACR, APPLICATION, ECR, GAR, GOOGLE_ACCOUNT, GOOGLE_PROVIDER, OWN_KEY, ROLE, ROLE_KEY},
    registry::{Login, PASSWORD, USER},
    wait_for,
};

use super::{TIMEOUT, TestNamespace, condition, oci};

const AZURE_GIT: &str = "dev.azure.com";
const AWS_GIT: &str = "git-codecommit.eu-west-1.amazonaws.com";
pub(super) const GATE: &str = "--feature-gates=ObjectLevelWorkloadIdentity=true";

/// A controller in a cloud: its hosts are led to local servers by the proxy of objects.
pub(super) struct Setup {
    pub(super) namespace: TestNamespace,
    pub(super) clouds: CloudIdentities,
    pub(super) proxy: HttpProxy,
}

impl Setup {
    async fn start(flags: &'static [&'static str]) -> Self {
        Self::start_with(flags, |launch, _| launch).await
    }

    /// Starts one whose environment is changed; the second argument of `change` is the URL of the token services.
    pub(super) async fn start_with(
        flags: &'static [&'static str],
        change: impl FnOnce(Launch, &str) -> Launch,
    ) -> Self {
        let plane = super::plane().await;
        let namespace = plane.namespace("cloud").await.unwrap();
        let clouds = CloudIdentities::start(&namespace, "weir").unwrap();
        let url = clouds.url();
        let namespace = TestNamespace::start_in(namespace, |mut launch| {
            for flag in flags {
                launch = launch.flag(flag);
            }
            let launch = launch
                .flag("--watch-all-namespaces=false")
                .env("AWS_ENDPOINT_URL_STS", &url)
                .env("AWS_ENDPOINT_URL_ECR", &url)
                .env("AWS_ACCESS_KEY_ID", OWN_KEY)
                .env("AWS_SECRET_ACCESS_KEY", "canary-own")
                .env("AWS_EC2_METADATA_DISABLED", "true")
                .env("AZURE_AUTHORITY_HOST", &url)
                .env("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9")
                .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_STS", &url)
                .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_IAMCREDENTIALS", &url);
            change(launch, &url)
        })
        .await;
        let proxy = HttpProxy::start("me", "canary").unwrap();
        let secret = json!({"address": proxy.url(), "username": "me", "password": "canary"});
        namespace.secret("proxy", secret).await;
        let setup = Self {
            namespace,
            clouds,
            proxy,
        };
        setup
            .account(
                "weir",
                json!({
                    "eks.amazonaws.com/role-arn": ROLE,
                    "azure.workload.identity/client-id": APPLICATION,
                    "azure.workload.identity/tenant-id": "tenant",
                    "gcp.auth.fluxcd.io/workload-identity-provider": GOOGLE_PROVIDER,
                    "iam.gke.io/gcp-service-account": GOOGLE_ACCOUNT,
                }),
            )
            .await;
        setup.account("plain", json!({})).await;
        setup
    }

    async fn account(&self, name: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": self.namespace.namespace, "annotations": annotations},
        });
        self.namespace.plane.apply(object).await.unwrap();
    }

    async fn apply_oci(&self, name: &str, host: &str, spec: Value) {
        let mut whole = json!({
            "url": format!("oci://{host}/org/app"), "interval": "1h",
            "proxySecretRef": {"name": "proxy"}, "certSecretRef": {"name": "ca"},
        });
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

    /// Waits until an OCIRepository is ready, or fails with a message that contains `failure`.
    async fn wait_oci(&self, name: &str, failure: Option<&str>) {
        let client = self.namespace.plane.client().await.unwrap();
        let api: Api<OCIRepository> = Api::namespaced(client, &self.namespace.namespace);
        let waited = wait_for(&api, name, "its end", TIMEOUT, |object| {
            oci::condition(object, "Ready").is_some_and(|ready| match failure {
                None => ready.is_true(),
                Some(text) => ready.is_false() && ready.message.contains(text),
            })
        });
        let waited = waited.await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.namespace.controller.log()));
    }

    /// Applies a Bucket of the provider `aws`.
    async fn apply_bucket(&self, name: &str, server: &S3Server, spec: Value) {
        let mut whole = json!({
            "bucketName": "shop", "endpoint": server.endpoint(), "interval": "1h", "insecure": true, "provider": "aws",
        });
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket",
            "metadata": {"name": name, "namespace": self.namespace.namespace}, "spec": whole,
        });
        self.namespace.plane.apply(object).await.unwrap();
    }

    /// Waits until Ready of a Bucket has this status, and a message that contains `text`.
    async fn wait_bucket(&self, name: &str, status: &str, text: &str) {
        let client = self.namespace.plane.client().await.unwrap();
        let api: Api<Bucket> = Api::namespaced(client, &self.namespace.namespace);
        let found = |object: &Bucket| {
            let status_of = object.status.as_ref();
            let ready = status_of.and_then(|status| conditions::get(&status.conditions, "Ready"));
            ready.is_some_and(|ready| ready.status.to_string() == status && ready.message.contains(text))
        };
        let waited = wait_for(&api, name, "its end", TIMEOUT, found).await;
        waited.unwrap_or_else(|error| panic!("{error:#}\n{}", self.namespace.controller.log()));
    }

    async fn apply_git(&self, name: &str, url: &str, spec: Value) {
        let mut whole = json!({"secretRef": {"name": "ca"}, "proxySecretRef": {"name": "proxy"}});
        whole
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        self.namespace.apply(name, url, whole).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_of_clouds_know_service_accounts_and_the_controller() {
    let setup = Setup::start(&[GATE]).await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    oci::push_to(&registry, "latest", &[("a.yaml", b"x")]).await;
    let front = CloudRegistries::start(&registry.host()).unwrap();
    setup
        .namespace
        .secret("ca", json!({"ca.crt": front.ca_pem()}))
        .await;
    for host in [ECR, ACR, GAR] {
        setup.proxy.route(&format!("{host}:443"), &front.address());
    }
    for (name, host) in [("aws", ECR), ("azure", ACR), ("gcp", GAR)] {
        let spec = json!({"provider": name, "serviceAccountName": "weir"});
        setup.apply_oci(name, host, spec).await;
        setup.wait_oci(name, None).await;
    }
    setup.apply_oci("own", ECR, json!({"provider": "aws"})).await;
    setup.wait_oci("own", None).await;
    // A pass without change asks nobody for a token.
    let mark = setup.namespace.plane.audit_mark();
    let client = setup.namespace.plane.client().await.unwrap();
    let api: Api<OCIRepository> = Api::namespaced(client, &setup.namespace.namespace);
    let patch = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "1"}}});
    let params = PatchParams::default();
    api.patch("aws", &params, &Patch::Merge(patch)).await.unwrap();
    let handled = wait_for(&api, "aws", "the request to be handled", TIMEOUT, |object| {
        let status = object.status.as_ref();
        status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some("1")
    });
    handled.await.unwrap();
    let asked = setup.namespace.plane.audit_since(mark).unwrap();
    let tokens = asked
        .iter()
        .filter(|entry| entry.subresource == "token" && entry.namespace == setup.namespace.namespace);
    assert_eq!(tokens.count(), 0, "the token of the service account is kept");
    let scope = "https://management.azure.com/.default";
    let expected = [
        "role",
        "ecr by the role",
        scope,
        "federation",
        "account",
        "ecr by the controller",
    ];
    assert_eq!(setup.clouds.asked(), expected, "each is asked for once");
    for (name, host, account, expected) in [
        (
            "no-role",
            ECR,
            "plain",
            "has no annotation 'eks.amazonaws.com/role-arn'",
        ),
        ("no-account", ECR, "none", "serviceaccounts \"none\" not found"),
        (
            "elsewhere",
            "ghcr.io",
            "weir",
            "ghcr.io cannot be used: it is no registry of AWS",
        ),
    ] {
        let spec = json!({"provider": "aws", "serviceAccountName": account});
        setup.apply_oci(name, host, spec).await;
        setup.wait_oci(name, Some(expected)).await;
    }
    assert!(!setup.namespace.controller.log().contains("canary"));
}

/// Without a cloud, a service account has pull secrets only, and nobody gets a token of it.
#[tokio::test(flavor = "multi_thread")]
async fn service_accounts_without_a_cloud_have_pull_secrets_and_no_tokens() {
    let setup = Setup::start(&[GATE]).await;
    let namespace = &setup.namespace;
    let registry = Registry::start(Login::Basic, None).await.unwrap();
    oci::push_to(&registry, "latest", &[("a.yaml", b"x")]).await;
    let logins = json!({"auths": {registry.host(): {"username": USER, "password": PASSWORD}}}).to_string();
    namespace
        .secret("logins", json!({".dockerconfigjson": logins}))
        .await;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "imagePullSecrets": [{"name": "logins"}],
        "metadata": {"name": "puller", "namespace": namespace.namespace},
    });
    namespace.plane.apply(account).await.unwrap();
    let mark = namespace.plane.audit_mark();
    for (name, account, failure) in [
        ("puller", "puller", None),
        ("weir", "weir", Some("determine artifact digest")),
    ] {
        let spec = json!({
            "url": format!("oci://{}/org/app", registry.host()), "interval": "1h", "insecure": true,
            "provider": "generic", "serviceAccountName": account,
        });
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "OCIRepository",
            "metadata": {"name": name, "namespace": namespace.namespace}, "spec": spec,
        });
        namespace.plane.apply(object).await.unwrap();
        setup.wait_oci(name, failure).await;
    }
    let asked = namespace.plane.audit_since(mark).unwrap();
    let tokens = asked
        .iter()
        .filter(|entry| entry.subresource == "token" && entry.namespace == namespace.namespace);
    assert_eq!(tokens.count(), 0);
    assert_eq!(setup.clouds.asked(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_a_registry_are_asked_for_again_only_if_it_refused_them() {
    const REFUSING: &str = "210987654321.dkr.ecr.eu-west-1.amazonaws.com";
    let setup = Setup::start(&[]).await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    oci::push_to(&registry, "latest", &[("a.yaml", b"x")]).await;
    let front = CloudRegistries::start(&registry.host()).unwrap();
    let authority = Authority::new(&["127.0.0.1", REFUSING]).unwrap();
    let refusing = Registry::start(Login::Basic, Some(authority)).await.unwrap();
    let ca = [front.ca_pem().as_str(), refusing.ca_pem()].concat();
    setup.namespace.secret("ca", json!({"ca.crt": ca})).await;
    setup.proxy.route(&format!("{ECR}:443"), &front.address());
    setup.proxy.route(&format!("{REFUSING}:443"), &refusing.host());

    let missing = json!({"provider": "aws", "ref": {"tag": "missing"}});
    setup.apply_oci("app", ECR, missing).await;
    setup.wait_oci("app", Some("was not found")).await;
    setup.namespace.more_passes(3.0).await;
    assert_eq!(setup.clouds.asked().len(), 1, "the credentials are not at fault");
    let found = json!({"provider": "aws", "ref": {"tag": "latest"}});
    setup.apply_oci("app", ECR, found).await;
    setup.wait_oci("app", None).await;
    assert_eq!(setup.clouds.asked(), ["ecr by the controller"]);

    setup
        .apply_oci("refused", REFUSING, json!({"provider": "aws"}))
        .await;
    setup
        .wait_oci("refused", Some("the server refused the credentials"))
        .await;
    eventually("new credentials", TIMEOUT, || async {
        let asked = setup.clouds.asked();
        anyhow::ensure!(asked.len() >= 4, "{asked:?}");
        Ok(())
    })
    .await
    .unwrap();
    assert!(!setup.namespace.controller.log().contains("canary"));
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_of_clouds_know_service_accounts_and_the_controller() {
    let setup = Setup::start(&[GATE]).await;
    let git = GitServer::start_tls_as(&[AZURE_GIT, AWS_GIT]).unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    setup
        .namespace
        .secret("ca", json!({"ca.crt": git.ca_pem()}))
        .await;
    let address = git.origin().trim_start_matches("https://").to_owned();
    for host in [AZURE_GIT, AWS_GIT] {
        setup.proxy.route(&format!("{host}:443"), &address);
    }
    let path = repo.url().trim_start_matches(&git.origin()).to_owned();
    let (azure, aws) = (
        format!("https://{AZURE_GIT}{path}"),
        format!("https://{AWS_GIT}{path}"),
    );
    let by = |provider: &str| json!({"provider": provider, "serviceAccountName": "weir"});
    let sent = || repo.requests().last().unwrap().authorization.clone().unwrap();

    setup.apply_git("azure", &azure, by("azure")).await;
    setup.namespace.wait_ready("azure").await;
    assert_eq!(
        sent(),
        "Bearer canary-499b84ac-1321-427f-aa17-267ca6975798/.default"
    );
    setup.apply_git("aws", &aws, by("aws")).await;
    setup.namespace.wait_ready("aws").await;
    assert!(
        user(&sent()).starts_with(&format!("{ROLE_KEY}%session:2")),
        "{}",
        user(&sent())
    );
    setup.apply_git("own", &aws, json!({"provider": "aws"})).await;
    setup.namespace.wait_ready("own").await;
    assert!(
        user(&sent()).starts_with(&format!("{OWN_KEY}:2")),
        "{}",
        user(&sent())
    );
    let scope = "499b84ac-1321-427f-aa17-267ca6975798/.default";
    assert_eq!(setup.clouds.asked(), [scope, "role"], "tokens are kept");

    for (name, url, provider, expected) in [
        (
            "github",
            "https://github.com/org/repo",
            "aws",
            "invalid AWS CodeCommit Git URL: github.com",
        ),
        (
            "http",
            "http://dev.azure.com/org",
            "azure",
            "invalid Azure DevOps Git URL: dev.azure.com",
        ),
        ("nobody", &azure, "azure", "ManagedIdentityCredential"),
    ] {
        setup.apply_git(name, url, json!({"provider": provider})).await;
        let failed = setup
            .namespace
            .wait_failed(name, "AuthenticationFailed", expected)
            .await;
        assert!(condition(&failed, "FetchFailed").is_some());
    }
    assert!(!setup.namespace.controller.log().contains("canary"));
}

fn user(header: &str) -> String {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let pair = BASE64_STANDARD
        .decode(header.trim_start_matches("Basic "))
        .unwrap();
    String::from_utf8(pair).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn service_accounts_of_objects_need_the_feature_gate() {
    let setup = Setup::start(&[]).await;
    let spec = json!({"provider": "azure", "serviceAccountName": "weir"});
    setup
        .apply_git("git", "https://dev.azure.com/org/project/_git/repo", spec)
        .await;
    let failed = setup
        .namespace
        .wait_failed("git", "FeatureGateDisabled", "ObjectLevelWorkloadIdentity")
        .await;
    assert!(condition(&failed, "Stalled").is_some_and(|stalled| stalled.is_true()));
    let spec = json!({"provider": "gcp", "serviceAccountName": "weir"});
    setup.apply_oci("oci", GAR, spec).await;
    setup.wait_oci("oci", Some("ObjectLevelWorkloadIdentity")).await;
    assert_eq!(setup.clouds.asked(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_of_clouds_know_service_accounts() {
    let setup = Setup::start(&[GATE]).await;
    let server = S3Server::start().await.unwrap();
    server.put("shop", &[("a.yaml", "x")]).await.unwrap();
    let by = |account: &str| json!({"serviceAccountName": account});
    setup.apply_bucket("role", &server, by("weir")).await;
    setup.wait_bucket("role", "True", "stored artifact").await;
    assert_eq!(setup.clouds.asked()[0], "role");
    setup.apply_bucket("no-role", &server, by("plain")).await;
    let missing = "has no annotation 'eks.amazonaws.com/role-arn'";
    setup.wait_bucket("no-role", "False", missing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn default_service_account_replaces_the_identity_of_the_controller() {
    let setup = Setup::start(&[GATE, "--default-service-account=weir"]).await;
    let registry = Registry::start(Login::Anonymous, None).await.unwrap();
    oci::push_to(&registry, "latest", &[("a.yaml", b"x")]).await;
    let front = CloudRegistries::start(&registry.host()).unwrap();
    let git = GitServer::start_tls_as(&[AWS_GIT]).unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let server = S3Server::start().await.unwrap();
    server.put("shop", &[("a.yaml", "x")]).await.unwrap();
    let namespace = &setup.namespace;
    namespace.secret("ca", json!({"ca.crt": front.ca_pem()})).await;
    namespace.secret("git-ca", json!({"ca.crt": git.ca_pem()})).await;
    setup.proxy.route(&format!("{ECR}:443"), &front.address());
    let address = git.origin().trim_start_matches("https://").to_owned();
    setup.proxy.route(&format!("{AWS_GIT}:443"), &address);

    // A Secret replaces every identity, also if it has nothing for the host.
    let logins = json!({"auths": {"elsewhere.example.com": {"username": "a", "password": "b"}}}).to_string();
    namespace
        .secret("logins", json!({".dockerconfigjson": logins}))
        .await;
    let spec = json!({"provider": "aws", "secretRef": {"name": "logins"}});
    setup.apply_oci("logins", ECR, spec).await;
    setup.wait_oci("logins", Some("determine artifact digest")).await;
    let keys = json!({"accesskey": ROLE_KEY, "secretkey": testkit::s3::SECRET_KEY});
    namespace.secret("keys", keys).await;
    let spec = json!({"secretRef": {"name": "keys"}});
    setup.apply_bucket("keys", &server, spec).await;
    setup.wait_bucket("keys", "True", "stored artifact").await;
    assert_eq!(setup.clouds.asked(), [] as [&str; 0]);

    setup.apply_oci("oci", ECR, json!({"provider": "aws"})).await;
    setup.wait_oci("oci", None).await;
    assert_eq!(setup.clouds.asked(), ["role", "ecr by the role"]);
    let path = repo.url().trim_start_matches(&git.origin()).to_owned();
    let spec = json!({"provider": "aws", "secretRef": {"name": "git-ca"}});
    let url = format!("https://{AWS_GIT}{path}");
    setup.apply_git("git", &url, spec).await;
    namespace.wait_ready("git").await;
    let sent = repo.requests().last().unwrap().authorization.clone().unwrap();
    assert!(user(&sent).starts_with(ROLE_KEY), "{}", user(&sent));
    setup.apply_bucket("bucket", &server, json!({})).await;
    setup.wait_bucket("bucket", "True", "stored artifact").await;

    let client = namespace.plane.client().await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client, &namespace.namespace);
    accounts.delete("weir", &DeleteParams::default()).await.unwrap();
    setup.apply_oci("gone", ECR, json!({"provider": "aws"})).await;
    let failure = "\"weir\" not found; it is the --default-service-account of the controller";
    setup.wait_oci("gone", Some(failure)).await;
    let asked = setup.clouds.asked();
    assert!(!asked.contains(&"ecr by the controller".to_owned()), "{asked:?}");
    assert!(!namespace.controller.log().contains("canary"));
}
