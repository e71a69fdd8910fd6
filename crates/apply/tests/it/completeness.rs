//! Searches that can't see everything.

use anyhow::Result;
use apply::{BatchOptions, Confirmation, DeletionOptions, DeletionOrder, OrphanSearch};
use cluster::Propagation;
use objects::ObjectRef;
use serde_json::json;

use crate::{Fixture, PATIENCE, example::owner};

const OPTIONS: DeletionOptions = DeletionOptions {
    dry_run: false,
    order: DeletionOrder::NamespacesFirst,
    propagation: Propagation::Background,
    confirmation: Confirmation::Each(PATIENCE),
};

#[tokio::test]
async fn delete_all_is_incomplete_without_the_right_to_list() -> Result<()> {
    let fixture = Fixture::new("incomplete").await?;
    let (tenant, owner) = (fixture.tenant().await?, owner(&fixture.namespace));
    let map = fixture.config_map("a", json!({}));
    let applied = apply::apply_all(
        &tenant,
        &owner,
        std::slice::from_ref(&map),
        BatchOptions::default(),
    )
    .await?;
    assert!(applied.is_complete(), "{applied:?}");

    // Without namespaces to search, nothing is found, and that is not a success.
    let deleted = apply::delete_all(&tenant, &owner, OrphanSearch::default(), OPTIONS).await?;
    assert!(deleted.outcomes.is_empty() && !deleted.completeness.is_complete());
    assert!(fixture.live(&map).await?.is_some());

    // Objects that were applied before give the namespaces to search, and the kinds for which rights are needed.
    let previous = [ObjectRef::of(&map)?];
    let search = OrphanSearch {
        previous: Some(&previous),
        filter: None,
        kinds: None,
    };
    let deleted = apply::delete_all(&tenant, &owner, search, OPTIONS).await?;
    assert_eq!(deleted.outcomes.len(), 1);
    assert!(deleted.completeness.is_complete(), "{:?}", deleted.completeness);
    assert!(fixture.live(&map).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn prune_is_incomplete_if_a_kind_that_was_applied_can_not_be_listed() -> Result<()> {
    let fixture = Fixture::new("incomplete-kind").await?;
    let (tenant, owner) = (fixture.tenant().await?, owner(&fixture.namespace));
    let kept = fixture.config_map("kept", json!({}));
    apply::apply_all(
        &tenant,
        &owner,
        std::slice::from_ref(&kept),
        BatchOptions::default(),
    )
    .await?;
    let quota = fixture.object("v1", "PersistentVolume", "gone", json!({}));
    let previous = [ObjectRef::of(&kept)?, ObjectRef::of(&quota)?];
    let search = OrphanSearch {
        previous: Some(&previous),
        filter: None,
        kinds: None,
    };
    let pruned = apply::prune(&tenant, &owner, &previous[..1], search, OPTIONS).await?;
    let message = pruned.completeness.message().unwrap_or_default();
    assert!(
        message.contains("can't list v1, Kind=PersistentVolume: "),
        "{message}"
    );
    Ok(())
}
