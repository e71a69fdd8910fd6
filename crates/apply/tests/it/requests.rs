//! The number of requests.

use anyhow::Result;
use apply::{Action, BatchOptions, DeletionOptions, Labels, OrphanSearch, Owner, SessionOptions};
use objects::ObjectRef;
use serde_json::json;

use crate::{Fixture, example::owner};

#[tokio::test]
async fn unchanged_objects_are_not_applied_even_if_conflicts_are_forced() -> Result<()> {
    let fixture = Fixture::new("forced").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    let manifests = ["a", "b"].map(|name| fixture.config_map(name, json!({"key": "1"})));
    let options = BatchOptions {
        session: SessionOptions {
            force: true,
            ..SessionOptions::default()
        },
        ..BatchOptions::default()
    };
    for trial in [false, true] {
        let options = BatchOptions { trial, ..options };
        apply::apply_all(cluster, &owner, &manifests, options).await?;
        let mark = fixture.plane.audit_mark();
        let applied = apply::apply_all(cluster, &owner, &manifests, options).await?;
        let lines: Vec<String> = applied.outcomes.iter().map(ToString::to_string).collect();
        assert!(
            lines.iter().all(|line| line.ends_with(": unchanged")),
            "{lines:?}"
        );
        let mut requests = fixture.requests(mark)?;
        requests.sort_unstable();
        assert_eq!(
            requests,
            ["get configmaps/a", "get configmaps/b"],
            "trial: {trial}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn objects_in_a_version_that_was_seen_are_only_read() -> Result<()> {
    let fixture = Fixture::new("seen").await?;
    let (cluster, owner) = (&fixture.cluster, owner(&fixture.namespace));
    // The API server writes another number than the manifest, so that the live object alone does not tell that it is unchanged.
    let spec = json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "0.5"}}]}});
    let range = [fixture.object("v1", "LimitRange", "a", spec)];
    let options = BatchOptions {
        trial: true,
        ..BatchOptions::default()
    };
    let first = apply::apply_all(cluster, &owner, &range, options).await?;
    for (seen, expected) in [(None, true), (Some(&first.versions), false)] {
        let options = BatchOptions { seen, ..options };
        let mark = fixture.plane.audit_mark();
        let again = apply::apply_all(cluster, &owner, &range, options).await?;
        assert_eq!(*again.outcomes[0].result.as_ref().unwrap(), Action::Unchanged);
        assert_eq!(again.versions, first.versions);
        let requests = fixture.requests(mark)?;
        let tries = requests.contains(&"patch limitranges/a".to_owned());
        assert_eq!(tries, expected, "{requests:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_empty_search_asks_for_nothing_and_no_search_reads_discovery_again() -> Result<()> {
    let fixture = Fixture::new("discovery").await?;
    let tenant = fixture.tenant().await?;
    let manifests = ["a", "b"].map(|name| fixture.config_map(name, json!({})));
    let refs: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    let labels = Labels::from([("example.com/owner".to_owned(), fixture.namespace.clone())]);
    let owner = Owner::with_inventory("example", refs.clone(), labels);
    let applied = apply::apply_all(&tenant, &owner, &manifests, BatchOptions::default()).await?;
    assert!(applied.is_complete(), "{applied:?}");

    let requests = |mark| -> Result<Vec<String>> {
        let entries = fixture.plane.audit_since(mark)?.into_iter();
        let own = entries.filter(|entry| {
            let user = entry.impersonated.as_deref().unwrap_or_default();
            user.contains(&fixture.namespace)
        });
        Ok(own.map(|entry| format!("{} {}", entry.verb, entry.uri)).collect())
    };
    let options = DeletionOptions::default();
    let mark = fixture.plane.audit_mark();
    let pruned = apply::prune(&tenant, &owner, &refs, OrphanSearch::default(), options).await?;
    assert!(pruned.outcomes.is_empty() && pruned.is_complete());
    assert_eq!(requests(mark)?, Vec::<String>::new());

    let pruned = apply::prune(&tenant, &owner, &refs[..1], OrphanSearch::default(), options).await?;
    assert_eq!(pruned.outcomes.len(), 1);
    let requests = requests(mark)?;
    assert!(
        requests.iter().all(|request| request.contains("/configmaps/b")),
        "{requests:?}"
    );
    Ok(())
}
