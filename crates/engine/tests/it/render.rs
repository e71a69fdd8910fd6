//! From files to a cluster.

use std::sync::Arc;

use anyhow::Result;
use engine::{Error, RenderOptions};
use kluctl::{Contexts, Request};
use tree::Mem;

use crate::world::Fixture;

fn project(files: &[(&str, &str)]) -> Arc<Mem> {
    let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
    Arc::new(Mem::from_files(files).unwrap())
}

fn request() -> Request {
    let context = "default".to_owned();
    Request {
        target: Some("test".to_owned()),
        contexts: Contexts {
            current: Some(context.clone()),
            names: vec![context],
        },
        ..Request::default()
    }
}

#[tokio::test]
async fn project_is_rendered_into_namespaces_and_deployed() -> Result<()> {
    let world = Fixture::new("render").await?;
    let namespace = &world.namespace;
    let tree = project(&[
        (
            ".kluctl.yaml",
            &format!("discriminator: '{namespace}'\ntargets:\n- name: test\n"),
        ),
        ("deployment.yaml", "deployments:\n- path: app\n"),
        (
            "app/objects.yaml",
            &format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {namespace}\ndata:\n  target: '{{{{ target.name }}}}'\n---\n\
                 apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {namespace}\n  \
                 namespace: wrong\nrules: []\n"
            ),
        ),
    ]);
    let rendered = engine::render(&world.cluster, tree, request(), &RenderOptions::default()).await?;
    let namespaces: Vec<_> = rendered
        .objects()
        .map(|object| objects::meta::text(object, "namespace"))
        .collect();
    assert_eq!(
        namespaces
            .iter()
            .filter(|found| **found == Some("default"))
            .count(),
        1
    );
    assert_eq!(
        namespaces.iter().filter(|found| found.is_none()).count(),
        1,
        "{namespaces:?}"
    );
    assert_eq!(world.deploy_well(&rendered).await?.counts().new, 2);
    let result = engine::delete(&world.cluster, namespace, &Default::default()).await?;
    assert_eq!(result.counts().deleted, 2);
    Ok(())
}

#[tokio::test]
async fn a_broken_template_names_file_and_line() -> Result<()> {
    let world = Fixture::new("broken").await?;
    let tree = project(&[
        (".kluctl.yaml", "targets:\n- name: test\n"),
        ("deployment.yaml", "deployments:\n- path: app\n"),
        (
            "app/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{ nothing }}'\n",
        ),
    ]);
    let error = engine::render(&world.cluster, tree, request(), &RenderOptions::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Render(_)));
    let text = error.to_string();
    assert!(text.contains("app/a.yaml") && text.contains('4'), "{text}");
    Ok(())
}

#[tokio::test]
async fn charts_look_up_live_objects() -> Result<()> {
    let world = Fixture::new("charts").await?;
    let namespace = &world.namespace;
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  \
         one: '{{{{ (lookup \"v1\" \"Namespace\" \"\" \"{namespace}\").metadata.name }}}}'\n  \
         some: '{{{{ len (lookup \"v1\" \"Namespace\" \"\" \"\").items | lt 0 }}}}'\n  \
         none: '{{{{ lookup \"v1\" \"Secret\" \"{namespace}\" \"nope\" | empty }}}}'\n  \
         has: '{{{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}}}'\n  \
         version: '{{{{ semverCompare \">=1.30.0\" .Capabilities.KubeVersion.Version }}}}'\n  \
         now: '{{{{ now | date \"2006\" | int | lt 2024 }}}}'\n"
    );
    let chart = format!("helmChart: {{path: chart, releaseName: r, namespace: {namespace}}}\n");
    let tree = |template: &str| {
        project(&[
            (".kluctl.yaml", "targets:\n- name: test\n"),
            ("deployment.yaml", "deployments:\n- path: app\n"),
            ("app/helm-chart.yaml", &chart),
            (
                "app/chart/Chart.yaml",
                "apiVersion: v2\nname: c\nversion: 1.0.0\n",
            ),
            ("app/chart/templates/c.yaml", template),
        ])
    };
    let render = async |template: &str| {
        engine::render(
            &world.cluster,
            tree(template),
            request(),
            &RenderOptions::default(),
        )
        .await
    };
    let rendered = render(&template).await?;
    let object = rendered.objects().next().cloned().unwrap_or_default();
    let data = |key: &str| {
        object
            .pointer(&["data", key])
            .and_then(yaml::Value::as_str)
            .map(str::to_owned)
    };
    assert_eq!(data("one").as_ref(), Some(namespace));
    for key in ["some", "none", "has", "version", "now"] {
        assert_eq!(data(key).as_deref(), Some("true"), "{key}");
    }
    assert_eq!(
        objects::meta::text(&object, "namespace"),
        Some(namespace.as_str())
    );
    assert_eq!(
        objects::meta::annotation(&object, "kluctl.io/helm-install-namespace"),
        None
    );
    let error = render("{{ lookup \"x.io/v1\" \"Nope\" \"\" \"\" }}")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("c/templates/c.yaml:1:3")
            && error.contains("no matches for kind \"Nope\" in version \"x.io/v1\""),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn missing_chart_is_pulled() -> Result<()> {
    let world = Fixture::new("pulled").await?;
    let tree = project(&[
        (".kluctl.yaml", "targets:\n- name: test\n"),
        ("deployment.yaml", "deployments:\n- path: app\n"),
        (
            "app/helm-chart.yaml",
            "helmChart: {repo: 'http://169.254.169.254/charts', chartName: a, chartVersion: 1.0.0, releaseName: a, \
             skipPrePull: true}\n",
        ),
    ]);
    let error = engine::render(&world.cluster, tree, request(), &RenderOptions::default())
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Helm Chart a") && text.contains("link-local addresses are not allowed"),
        "{text}"
    );
    Ok(())
}
