//! Objects that are applied without a read before.

use anyhow::Result;
use apply::{AppliedVersions, Definitions, Query, Request, Session, SessionOptions};
use objects::ObjectRef;
use serde_json::{Value as Json, json};
use testkit::audit::Mark;
use yaml::Value;

use crate::{Fixture, example::owner};

/// A run that applied one ConfigMap.
struct Run {
    /// `data` before the apply, as the run knows it; `None` if the object did not exist.
    before: Option<Json>,
    after: Json,
    requests: Vec<String>,
}

async fn apply(fixture: &Fixture, manifest: &Value, seen: &mut AppliedVersions) -> Result<Run> {
    let owner = owner(&fixture.namespace);
    let refs = [ObjectRef::of(manifest)?];
    let query = Query {
        refs: &refs,
        all: &refs,
        orphans: None,
        renamed: &Default::default(),
        seen: Some(seen),
        assumes: Some(&[]),
    };
    let (start, mark) = (Session::start(), fixture.plane.audit_mark());
    let live = apply::fetch(&fixture.cluster, &owner, query).await?;
    let definitions = Definitions::of([((0, 0), manifest)]);
    let session = Session::new(
        start,
        &fixture.cluster,
        &owner,
        &live,
        definitions,
        SessionOptions::default(),
    );
    let request = Request {
        manifest,
        reference: &refs[0],
        rules: &[],
        position: (0, 0),
        always: false,
    };
    let applied = session
        .apply(request)
        .await
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    seen.remember(refs[0].id(), manifest, &applied.object);
    Ok(Run {
        before: live
            .before(manifest, &refs[0])
            .map(|object| object.to_json()["data"].clone()),
        after: applied.object.to_json()["data"].clone(),
        requests: requests(fixture, mark)?,
    })
}

fn requests(fixture: &Fixture, mark: Mark) -> Result<Vec<String>> {
    let requests = fixture.requests(mark)?.into_iter();
    Ok(requests
        .map(|request| request.replace(" configmaps/a", ""))
        .collect())
}

#[tokio::test]
async fn new_and_changed_objects_need_one_request() -> Result<()> {
    let fixture = Fixture::new("assumed").await?;
    let mut seen = AppliedVersions::default();
    let created = apply(&fixture, &fixture.config_map("a", json!({"key": "1"})), &mut seen).await?;
    assert_eq!((created.before, created.after), (None, json!({"key": "1"})));
    assert_eq!(created.requests, ["patch"]);

    let changed = apply(&fixture, &fixture.config_map("a", json!({"key": "2"})), &mut seen).await?;
    assert_eq!(changed.before, Some(json!({"key": "1"})));
    assert_eq!(changed.after, json!({"key": "2"}));
    assert_eq!(changed.requests, ["patch"]);

    let unchanged = apply(&fixture, &fixture.config_map("a", json!({"key": "2"})), &mut seen).await?;
    assert_eq!(unchanged.before, Some(json!({"key": "2"})));
    assert_eq!(unchanged.requests, ["get"], "an unchanged object is read");
    Ok(())
}

#[tokio::test]
async fn objects_in_another_state_are_read_before_they_are_changed() -> Result<()> {
    let fixture = Fixture::new("assumed-wrong").await?;
    let first = fixture.config_map("a", json!({"key": "1"}));
    let mut seen = AppliedVersions::default();
    apply(&fixture, &first, &mut seen).await?;

    let exists = apply(
        &fixture,
        &fixture.config_map("a", json!({"key": "2"})),
        &mut AppliedVersions::default(),
    )
    .await?;
    assert_eq!(exists.before, Some(json!({"key": "1"})));
    assert_eq!(exists.requests, ["patch", "get", "patch"]);

    fixture
        .patch("configmap/a", false, json!({"data": {"other": "x"}}))
        .await?;
    let drifted = apply(&fixture, &fixture.config_map("a", json!({"key": "3"})), &mut seen).await?;
    assert_eq!(drifted.before, Some(json!({"key": "2", "other": "x"})));
    assert_eq!(drifted.after, json!({"key": "3", "other": "x"}));
    assert_eq!(drifted.requests, ["patch", "get", "patch"]);

    let namespace = fixture.namespace.as_str();
    fixture
        .plane
        .kubectl(&["delete", "configmap", "a", "-n", namespace])
        .await?;
    let gone = apply(&fixture, &fixture.config_map("a", json!({"key": "4"})), &mut seen).await?;
    assert_eq!((gone.before, gone.after), (None, json!({"key": "4"})));
    assert_eq!(gone.requests, ["patch"]);
    Ok(())
}

#[tokio::test]
async fn conflicts_are_resolved_onto_the_state_that_is_read() -> Result<()> {
    let fixture = Fixture::new("assumed-conflict").await?;
    let mut seen = AppliedVersions::default();
    apply(&fixture, &fixture.config_map("a", json!({"key": "1"})), &mut seen).await?;
    fixture
        .patch("configmap/a", false, json!({"data": {"key": "by hand"}}))
        .await?;
    let taken = apply(&fixture, &fixture.config_map("a", json!({"key": "2"})), &mut seen).await?;
    assert_eq!(taken.before, Some(json!({"key": "by hand"})));
    assert_eq!(taken.after, json!({"key": "2"}));
    assert_eq!(taken.requests[..2], ["patch", "get"]);
    Ok(())
}
