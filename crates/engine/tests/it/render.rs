//! From files to a cluster.

use std::sync::Arc;

use anyhow::Result;
use engine::{Error, Rendering};
use kluctl::{Contexts, Request};
use tree::Mem;

use crate::world::World;

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
async fn a_project_is_rendered_into_namespaces_and_deployed() -> Result<()> {
    let world = World::new("render").await?;
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
    let rendered = engine::render(&world.cluster, tree, request(), &Rendering::default()).await?;
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
    let world = World::new("broken").await?;
    let tree = project(&[
        (".kluctl.yaml", "targets:\n- name: test\n"),
        ("deployment.yaml", "deployments:\n- path: app\n"),
        (
            "app/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: '{{ nothing }}'\n",
        ),
    ]);
    let error = engine::render(&world.cluster, tree, request(), &Rendering::default())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Render(_)));
    let text = error.to_string();
    assert!(text.contains("app/a.yaml") && text.contains('4'), "{text}");
    Ok(())
}
