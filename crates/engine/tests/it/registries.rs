//! Projects and charts from registries, with and without credentials.

use std::sync::Arc;

use anyhow::Result;
use api::Secret;
use engine::{ExternalAccess, RenderOptions};
use kluctl::Request;
use oci::{Access, Credentials};
use remote::SourceCredentials;
use testkit::{
    Registry,
    archive::tar_gz,
    registry::{Login, PASSWORD, USER},
};
use tree::Mem;

use crate::external::{MAP, offline};

struct Known {
    host: String,
    password: Option<&'static str>,
}

impl SourceCredentials for Known {
    fn git(&self, url: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), remote::Error> {
        Err(remote::Error::Credentials(format!("{url} is not a registry")))
    }

    fn registry(&self, url: &str) -> Result<Access, remote::Error> {
        if !url.starts_with(&format!("oci://{}/", self.host)) {
            return Err(remote::Error::Credentials(format!("no credentials for {url}")));
        }
        let credentials = self.password.map(|password| Credentials::Basic {
            username: USER.to_owned(),
            password: Secret::new(password.to_owned()),
        });
        Ok(Access {
            credentials,
            plain_http: true,
            ..Access::default()
        })
    }

    fn helm(&self, url: &str, _credentials_id: Option<&str>) -> Result<Access, remote::Error> {
        Err(remote::Error::Credentials(format!("{url} is not a registry")))
    }
}

fn external(registry: &Registry, password: Option<&'static str>) -> ExternalAccess {
    ExternalAccess::default().with_credentials(Arc::new(Known {
        host: registry.host(),
        password,
    }))
}

/// A project whose object says `v`, in a directory of its own.
fn project(v: &str) -> Vec<u8> {
    let map = MAP.replace("{{ v }}", v);
    tar_gz(&[
        ("d/deployment.yaml", b"deployments: [{path: app}]"),
        ("d/app/m.yaml", map.as_bytes()),
        ("README.md", b"a project"),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_come_from_registries() -> Result<()> {
    let registry = Registry::start(Login::Token, None).await?;
    let first = registry
        .push_project("team/base", "v1", &project("first"), "c0ffee")
        .await?;
    registry
        .push_project("team/base", "latest", &project("newest"), "c0ffee")
        .await?;
    let host = registry.host();
    let render = async |more: &str| {
        let text = format!("deployments: [{{oci: {{url: 'oci://{host}/team/base'{more}}}}}]");
        offline(&text, external(&registry, Some(PASSWORD))).await
    };
    assert_eq!(render(", subDir: d").await, "newest");
    assert_eq!(render(", subDir: d, ref: {tag: v1}").await, "first");
    let pinned = format!(", subDir: d, ref: {{digest: '{first}'}}");
    assert_eq!(render(&pinned).await, "first");
    let both = format!(", subDir: d, ref: {{tag: latest, digest: '{first}'}}");
    assert_eq!(render(&both).await, "first", "the digest counts");
    for (more, expected) in [
        (", subDir: e", "has no directory e"),
        (", subDir: ../d", "is not a valid subDir"),
        ("", "deployment.yml not found"),
        (", ref: {tag: v2}", "/manifests/v2' was not found"),
        (", ref: {tag: 'a b'}", "its tag is none"),
        (", ref: {digest: 'sha256:0'}", "its digest is none"),
        (
            ", ref: {semver: '>=1'}",
            "unknown field \"deployments[0].oci.ref.semver\"",
        ),
    ] {
        let error = render(more).await;
        assert!(error.contains(expected), "{more}: {error}");
        assert!(!error.contains(PASSWORD), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn registries_and_users_are_distinguished() -> Result<()> {
    let registry = Registry::start(Login::Basic, None).await?;
    registry
        .push_project("team/base", "latest", &project("x"), "c0ffee")
        .await?;
    let host = registry.host();
    let text = format!("deployments: [{{oci: {{url: 'oci://{host}/team/base', subDir: d}}}}]");
    assert_eq!(offline(&text, external(&registry, Some(PASSWORD))).await, "x");
    for (password, expected) in [
        (None, "asks for credentials, and none are given"),
        (Some("wr0ng"), "refused the credentials"),
    ] {
        let error = offline(&text, external(&registry, password)).await;
        assert!(
            error.contains(expected) && error.contains(&format!("failed to fetch oci://{host}/team/base")),
            "{error}"
        );
        assert!(!error.contains("wr0ng"), "{error}");
    }
    let other = "deployments: [{oci: {url: 'oci://other.example.com/a'}}]";
    let error = offline(other, external(&registry, Some(PASSWORD))).await;
    assert!(error.contains("no credentials for oci://other"), "{error}");
    // Unknown registries are asked by https.
    assert!(
        offline(&text, ExternalAccess::default())
            .await
            .contains("failed to fetch")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_come_from_registries() -> Result<()> {
    let registry = Registry::start(Login::Anonymous, None).await?;
    let library = tar_gz(&[
        (
            ".kluctl-library.yaml",
            b"args: [{name: v}, {name: w, default: dear}]",
        ),
        ("deployment.yaml", b"deployments: [{path: app}]"),
        (
            "app/m.yaml",
            MAP.replace("{{ v }}", "{{ args.w }} {{ args.v }}").as_bytes(),
        ),
    ]);
    registry.push_project("lib", "1.0.0", &library, "c0ffee").await?;
    let item = |more: &str| {
        let url = format!("oci://{}/lib", registry.host());
        format!("deployments: [{{oci: {{url: '{url}', ref: {{tag: 1.0.0}}}}{more}}}]")
    };
    let render = async |more: &str| offline(&item(more), external(&registry, None)).await;
    assert_eq!(render(", args: {v: world}").await, "dear world");
    let error = render("").await;
    assert!(error.contains("required argument v not set"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_artifacts_are_refused() -> Result<()> {
    let registry = Registry::start(Login::Anonymous, None).await?;
    let deployment: (&str, &[u8]) = ("deployment.yaml", b"deployments: []");
    let bomb = tar_gz(&[("x", &vec![0; 8 << 20])]);
    for (tag, archive, expected) in [
        (
            "up",
            tar_gz(&[deployment, ("../x", b"x")]),
            "leads out of its directory",
        ),
        (
            "absolute",
            tar_gz(&[deployment, ("/etc/x", b"x")]),
            "is not relative",
        ),
        ("twice", tar_gz(&[deployment, deployment]), "is in it twice"),
        ("text", b"no archive".to_vec(), "can't be unpacked"),
        (
            "cut",
            bomb.get(..bomb.len() / 2).unwrap_or_default().to_vec(),
            "can't be unpacked",
        ),
    ] {
        registry.push_project("bad", tag, &archive, "c0ffee").await?;
        let url = format!("oci://{}/bad", registry.host());
        let text = format!("deployments: [{{oci: {{url: '{url}', ref: {{tag: {tag}}}}}}}]");
        let error = offline(&text, external(&registry, None)).await;
        assert!(
            error.contains(expected) && error.contains("/bad:"),
            "{tag}: {error}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_are_pulled_with_valid_credentials_only() -> Result<()> {
    let registry = Registry::start(Login::Token, None).await?;
    let chart = tar_gz(&[
        ("c/Chart.yaml", b"apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        (
            "c/templates/m.yaml",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n",
        ),
    ]);
    registry.push_chart("charts/c", "1.0.0", &chart).await?;
    let helm = format!(
        "helmChart: {{repo: 'oci://{}/charts/c', chartVersion: 1.0.0, releaseName: c, skipPrePull: true}}",
        registry.host()
    );
    let files = [
        ("deployment.yaml", "deployments: [{path: app}]".to_owned()),
        ("app/helm-chart.yaml", helm),
    ];
    let tree = Arc::new(Mem::from_files(files)?);
    let mut rendering = RenderOptions::default();
    for (password, expected) in [
        (Some(PASSWORD), Ok(1)),
        (None, Err("asks for credentials, and none are given")),
        (Some("wr0ng"), Err("refused the credentials")),
        (Some(PASSWORD), Ok(1)),
    ] {
        // Each cached chart belongs to the credentials that pulled it.
        rendering.external = external(&registry, password);
        let rendered = engine::render_offline(tree.clone(), Request::default(), &rendering).await;
        match (rendered, expected) {
            (Ok(rendered), Ok(count)) => assert_eq!(rendered.objects().count(), count),
            (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
            (rendered, _) => panic!("{:?}", rendered.map(|rendered| rendered.objects().count())),
        }
    }
    Ok(())
}
