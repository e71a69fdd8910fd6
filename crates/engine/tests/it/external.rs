//! Renders that read from other repositories, registries, servers and the cluster.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use engine::{EnvironmentVariables, ExternalAccess, RenderOptions, RenderSlots, SourceOverride};
use kluctl::Request;
use serde_json::json;
use testkit::{Fault, GitServer, Page, WebServer};
use tree::Mem;
use yaml::Value;

use crate::world::Fixture;

pub(crate) const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  v: \"{{ v }}\"\n";

fn project(deployment: &str) -> Arc<Mem> {
    let files = [("deployment.yaml", deployment), ("app/m.yaml", MAP)];
    let files = files.map(|(path, text)| (path, text.to_owned()));
    Arc::new(Mem::from_files(files).unwrap())
}

pub(crate) async fn offline(deployment: &str, external: ExternalAccess) -> String {
    let rendering = RenderOptions {
        external,
        ..RenderOptions::default()
    };
    match engine::render_offline(project(deployment), Request::default(), &rendering).await {
        Ok(rendered) => {
            let value = |object| Value::pointer(object, &["data", "v"]).and_then(Value::as_str);
            rendered.objects().filter_map(value).collect::<Vec<_>>().join(",")
        }
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_come_from_git() -> Result<()> {
    let server = GitServer::start()?;
    let repo = server.repo("base")?;
    let files = [
        ("d/deployment.yaml", "deployments: [{path: app}]"),
        ("d/app/m.yaml", MAP),
        ("v.yaml", "v: old"),
    ];
    let first = repo.commit("first", &files)?;
    repo.tag("v1", &first)?;
    repo.commit("second", &[("v.yaml", "v: new")])?;
    let url = repo.url();
    let text = format!(
        "vars:\n- git: {{url: '{url}', path: v.yaml}}\ndeployments:\n- git: {{url: '{url}', subDir: d}}\n\
         - git: {{url: '{url}', subDir: d, ref: {{commit: {first}}}}}\n  vars:\n  - git: {{url: '{url}', path: v.yaml, ref: {{tag: v1}}}}\n"
    );
    assert_eq!(offline(&text, ExternalAccess::default()).await, "new,old");
    let branches = format!(
        "vars:\n- gitFiles: {{url: '{url}', ref: {{branch: main|master}}, files: [{{glob: v.yaml, parseYaml: true}}]}}\n  targetPath: g\n\
         - values: {{v: '{{% raw %}}{{{{ g[0].files[0].parsed.v }}}}{{% endraw %}}'}}\ndeployments: [{{path: app}}]\n"
    );
    assert_eq!(offline(&branches, ExternalAccess::default()).await, "new");
    let missing = format!("deployments: [{{git: {{url: '{url}', ref: {{branch: nope}}}}}}]");
    let error = offline(&missing, ExternalAccess::default()).await;
    assert!(error.contains("nope") && error.contains("not found"), "{error}");
    // Nothing listens on this port.
    let ssh = "deployments: [{git: 'ssh://git@127.0.0.1:1/x'}]";
    let error = offline(ssh, ExternalAccess::default()).await;
    assert!(error.contains("'ssh://127.0.0.1:1/x': "), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_replace_repositories_by_directories() -> Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir_all(dir.path().join("one/app"))?;
    std::fs::write(
        dir.path().join("one/deployment.yaml"),
        "deployments: [{path: app}]",
    )?;
    std::fs::write(dir.path().join("one/app/m.yaml"), MAP)?;
    let external = ExternalAccess {
        overrides: vec![SourceOverride {
            oci: false,
            group: true,
            key: "git.example.com/group".to_owned(),
            dir: dir.path().to_owned(),
        }],
        ..ExternalAccess::default()
    };
    let text = "vars: [{values: {v: x}}]\ndeployments: [{git: 'git@git.example.com:group/one.git'}]\n";
    assert_eq!(offline(text, external).await, "x");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn renders_that_wait_for_servers_do_not_stop_others() -> Result<()> {
    let server = WebServer::start()?;
    server.page("/silent", Page::Stalled("{".into()));
    let git = GitServer::start()?;
    let repo = git.repo("silent")?;
    repo.fail(Fault::Hang);
    let slots = RenderSlots::default();
    let render = |text: String, name: String| {
        let options = RenderOptions {
            name,
            slots: slots.clone(),
            ..RenderOptions::default()
        };
        async move { engine::render_offline(project(&text), Request::default(), &options).await }
    };
    let vars = format!(
        "vars: [{{http: {{url: '{}'}}}}]\ndeployments: [{{path: app}}]\n",
        server.url("/silent")
    );
    let include = format!("deployments: [{{git: '{}'}}]", repo.url());
    // More than may work at the same time, and than the process has blocking threads. Silent servers are given up after 30 s.
    const SILENT: usize = 70;
    let silent: Vec<_> = (0..SILENT)
        .map(|number| {
            let text = if number % 2 == 0 { &vars } else { &include };
            tokio::spawn(render(text.clone(), format!("silent-{number}")))
        })
        .collect();
    testkit::eventually("the silent renders", Duration::from_secs(20), || async {
        let asked = server.asked().len() + git.requests().len();
        anyhow::ensure!(asked >= SILENT, "{asked} have asked");
        Ok(())
    })
    .await?;
    let text = "vars: [{values: {v: x}}]\ndeployments: [{path: app}]\n";
    let good = render(text.to_owned(), "good".to_owned());
    tokio::time::timeout(Duration::from_secs(10), good).await??;
    for one in silent {
        one.abort();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_come_from_servers_and_the_environment() -> Result<()> {
    let server = WebServer::start()?;
    server.page("/v", Page::Content("{\"v\": \"served\"}".into()));
    let http = |path: &str| {
        format!(
            "vars: [{{http: {{url: '{}'}}}}]\ndeployments: [{{path: app}}]\n",
            server.url(path)
        )
    };
    assert_eq!(offline(&http("/v"), ExternalAccess::default()).await, "served");
    let error = offline(&http("/nope"), ExternalAccess::default()).await;
    assert!(error.ends_with("failed with status code 404"), "{error}");
    let local = "vars: [{http: {url: 'http://169.254.169.254/latest'}}]";
    assert!(
        offline(local, ExternalAccess::of_user())
            .await
            .contains("link-local")
    );
    let service = "vars: [{http: {url: 'https://kubernetes.default.svc/api'}}]";
    assert!(
        offline(service, ExternalAccess::default())
            .await
            .contains("the API server is not allowed")
    );

    let text = "vars: [{systemEnvVars: {v: APP_V}}]\ndeployments: [{path: app}]\n";
    let closed = offline(text, ExternalAccess::default()).await;
    assert!(
        closed.contains("APP_V may not be read: allow a prefix"),
        "{closed}"
    );
    let open = ExternalAccess {
        environment: EnvironmentVariables::new([("APP_V".to_owned(), "env".to_owned())])
            .only(&["APP_".to_owned()]),
        ..ExternalAccess::default()
    };
    assert_eq!(offline(text, open).await, "env");
    for store in [
        "vault: {address: 'https://x', path: p}",
        "awsSecretsManager: {secretName: x, region: r}",
        "gcpSecretManager: {secretName: x}",
        "azureKeyVault: {vaultUri: 'https://x', secretName: y}",
    ] {
        let error = offline(&format!("vars: [{{{store}}}]"), ExternalAccess::default()).await;
        assert!(error.contains("is not available"), "{error}");
    }
    let cluster = "vars: [{clusterSecret: {name: x, namespace: y, key: z}}]";
    assert!(
        offline(cluster, ExternalAccess::default())
            .await
            .contains("loading vars from cluster is disabled")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_come_from_the_cluster() -> Result<()> {
    let world = Fixture::new("vars").await?;
    let namespace = &world.namespace;
    let labelled = world.object("v1", "ConfigMap", "labelled", json!({"data": {"k": "a: 1"}}));
    let mut labelled = labelled;
    labelled["metadata"]["labels"] = json!({"find": "me"});
    let items = vec![world.config_map("named", json!({"k": "b: 2"})), labelled];
    world.deploy_well(&world.rendered(items)).await?;
    let render = async |sources: &str| -> String {
        let text = format!(
            "vars:\n{}\n- values: {{v: '{{% raw %}}{{{{ a | default(0) }}}} {{{{ b | default(0) }}}}{{% endraw %}}'}}\ndeployments: [{{path: app}}]\n",
            sources.replace("NS", namespace)
        );
        match engine::render(
            &world.cluster,
            project(&text),
            Request::default(),
            &RenderOptions::default(),
        )
        .await
        {
            Ok(rendered) => {
                let object = rendered.objects().next().unwrap();
                object
                    .pointer(&["data", "v"])
                    .and_then(Value::as_str)
                    .unwrap()
                    .to_owned()
            }
            Err(error) => error.to_string(),
        }
    };
    let by_name = "- clusterConfigMap: {name: named, namespace: NS, key: k}";
    assert_eq!(render(by_name).await, "0 2");
    let by_label = "- clusterConfigMap: {labels: {find: me}, namespace: NS, key: k}";
    assert_eq!(render(by_label).await, "1 0");
    let object = "- clusterObject: {kind: ConfigMap, name: named, namespace: NS, path: data.k, parseYaml: true}\n  targetPath: b";
    assert_eq!(render(object).await, "0 {'b': 2}");
    for (source, expected) in [
        (
            "- clusterConfigMap: {name: nope, namespace: NS, key: k}",
            "configmaps \"nope\" not found",
        ),
        (
            "- clusterObject: {kind: Nonsense, name: x, namespace: NS, path: a}\n  targetPath: b",
            "no matching resource found for kind Nonsense",
        ),
        (
            "- clusterObject: {kind: Event, name: x, namespace: NS, path: a}\n  targetPath: b",
            "consider also specifying apiVersion",
        ),
    ] {
        let error = render(source).await;
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_of_aws_are_read_as_a_service_account() -> Result<()> {
    let world = Fixture::new("irsa").await?;
    let namespace = &world.namespace;
    let mut account = world.object("v1", "ServiceAccount", "reader", json!({}));
    account["metadata"]["annotations"] = json!({"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r"});
    let plain = world.object("v1", "ServiceAccount", "plain", json!({}));
    world.deploy_well(&world.rendered(vec![account, plain])).await?;
    let server = WebServer::start()?;
    let role = "<R><AccessKeyId>A</AccessKeyId><SecretAccessKey>s</SecretAccessKey></R>";
    server.page("/sts", Page::Content(role.into()));
    server.page(
        "/secrets",
        Page::Content("{\"SecretString\": \"v: found\"}".into()),
    );
    let urls = [
        ("AWS_ENDPOINT_URL_STS", "/sts"),
        ("AWS_ENDPOINT_URL_SECRETS_MANAGER", "/secrets"),
    ];
    let urls = urls.map(|(name, path)| (name.to_owned(), server.url(path)));
    let rendering = RenderOptions {
        external: ExternalAccess {
            stores: Some(stores::Ambient::new(urls)),
            ..ExternalAccess::default()
        },
        ..RenderOptions::default()
    };
    let text =
        "vars: [{awsSecretsManager: {secretName: x, region: eu-central-1}}]\ndeployments: [{path: app}]\n";
    let render = async |account: &str| -> String {
        let config = format!(
            "targets: [{{name: t, aws: {{serviceAccount: {{name: {account}, namespace: {namespace}}}}}}}]"
        );
        let files = [
            (".kluctl.yaml", config.as_str()),
            ("deployment.yaml", text),
            ("app/m.yaml", MAP),
        ];
        let tree = Mem::from_files(files.map(|(path, text)| (path, text.to_owned()))).unwrap();
        let request = Request {
            target: Some("t".to_owned()),
            ..Request::default()
        };
        match engine::render(&world.cluster, Arc::new(tree), request, &rendering).await {
            Ok(rendered) => {
                let object = rendered.objects().next().unwrap();
                object
                    .pointer(&["data", "v"])
                    .and_then(Value::as_str)
                    .unwrap()
                    .to_owned()
            }
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(render("reader").await, "found");
    assert_eq!(server.asked().len(), 2, "{:?}", server.asked());
    for (account, expected) in [
        (
            "plain",
            "its AWS role is missing: set the annotation eks.amazonaws.com/role-arn",
        ),
        ("nope", "not found"),
    ] {
        let error = render(account).await;
        assert!(
            error.contains(&format!("service account {namespace}/{account}: {expected}")),
            "{error}"
        );
    }
    assert_eq!(server.asked().len(), 2);
    Ok(())
}
