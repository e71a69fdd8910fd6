//! An owner with an inventory, as a controller keeps one in the status of its object.

use std::time::Duration;

use anyhow::Result;
use apply::{
    Confirmation, DeletionOptions, DeletionOrder, Error, HealthRules, InventoryStore, Labels, Owner, Proof,
    ReconcileOptions, Reconciled, SetWait,
};
use futures::future::BoxFuture;
use objects::{ObjectRef, inventory::Entry};
use parking_lot::Mutex;
use serde_json::json;
use yaml::Value;

use crate::{Fixture, PATIENCE};

/// A status with an inventory.
#[derive(Default)]
struct StatusStore(Mutex<Vec<Vec<Entry>>>);

impl StatusStore {
    fn current(&self) -> Vec<ObjectRef> {
        let stored = self.0.lock();
        let entries = stored.last().into_iter().flatten();
        entries.map(|entry| entry.reference().unwrap()).collect()
    }

    fn names(&self) -> Vec<String> {
        self.current().into_iter().map(|one| one.name).collect()
    }
}

impl InventoryStore for StatusStore {
    fn store<'a>(&'a self, inventory: &'a [ObjectRef]) -> BoxFuture<'a, Result<(), Error>> {
        self.0.lock().push(inventory.iter().map(Entry::of).collect());
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Controller<'a> {
    fixture: &'a Fixture,
    status: StatusStore,
}

impl Controller<'_> {
    async fn pass(&self, manifests: &[Value], prune: bool) -> Result<Reconciled> {
        let labels = Labels::from([
            ("example.com/owner".to_owned(), self.fixture.namespace.clone()),
            ("example.com/owner-namespace".to_owned(), "apps".to_owned()),
        ]);
        let owner = Owner {
            proof: Proof::Labels,
            health: HealthRules::Kstatus,
            ..Owner::with_inventory("example", self.status.current(), labels)
        };
        let mut manifests = manifests.to_vec();
        manifests.iter_mut().for_each(|manifest| owner.mark(manifest));
        let mut options = ReconcileOptions {
            store: Some(&self.status),
            prune,
            allow_empty: true,
            deletion: DeletionOptions {
                order: DeletionOrder::ReverseApplication,
                confirmation: Confirmation::Together(Duration::from_millis(500)),
                ..DeletionOptions::default()
            },
            wait: Some(SetWait::new(PATIENCE)),
            ..ReconcileOptions::default()
        };
        options.batch.trial = true;
        options.batch.session.force = true;
        Ok(apply::reconcile(&self.fixture.cluster, &owner, &manifests, options).await?)
    }
}

#[tokio::test]
async fn a_controller_applies_prunes_retries_and_removes_by_its_inventory() -> Result<()> {
    let fixture = Fixture::new("reconcile").await?;
    let controller = Controller {
        fixture: &fixture,
        status: StatusStore::default(),
    };
    let [a, b, c] = ["a", "b", "c"].map(|name| fixture.config_map(name, json!({"key": "1"})));
    let done = controller.pass(&[b.clone(), a.clone()], true).await?;
    assert!(done.is_complete(), "{done}");
    assert_eq!(controller.status.names(), ["a", "b"]);
    let done = controller.pass(&[a.clone(), b.clone()], true).await?;
    assert!(done.is_complete(), "{done}");
    assert_eq!(
        controller.status.0.lock().len(),
        1,
        "an unchanged inventory is not stored again"
    );

    // An object that is held survives in the inventory, and is tried again.
    fixture
        .patch(
            "configmap/b",
            false,
            json!({"metadata": {"finalizers": ["example.com/held"]}}),
        )
        .await?;
    let done = controller.pass(&[a.clone(), c.clone()], true).await?;
    assert!(!done.is_complete(), "{done}");
    assert_eq!(controller.status.names(), ["a", "c", "b"]);
    fixture
        .patch("configmap/b", false, json!({"metadata": {"finalizers": null}}))
        .await?;
    let done = controller.pass(&[a.clone(), c.clone()], true).await?;
    assert!(done.is_complete(), "{done}");
    assert_eq!(controller.status.names(), ["a", "c"]);

    // A manifest that is refused keeps everything.
    let refused = fixture.config_map("refused", json!({"key": 1}));
    let done = controller.pass(&[a.clone(), refused], true).await?;
    assert!(!done.is_complete() && done.pruned.is_none());
    assert_eq!(controller.status.names(), ["a", "c"]);

    // Without pruning, an object that left is given up.
    let done = controller.pass(std::slice::from_ref(&a), false).await?;
    assert!(done.is_complete(), "{done}");
    assert_eq!(controller.status.names(), ["a"]);
    let done = controller.pass(&[], true).await?;
    assert!(done.is_complete(), "{done}");
    assert!(controller.status.names().is_empty());
    assert!(fixture.live(&a).await?.is_none() && fixture.live(&c).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn manifests_without_the_labels_of_the_owner_are_refused() -> Result<()> {
    let fixture = Fixture::new("reconcile-unmarked").await?;
    let labels = Labels::from([("example.com/other".to_owned(), "x".to_owned())]);
    let owner = Owner::with_inventory("example", Vec::new(), labels);
    let map = fixture.config_map("a", json!({}));
    let manifests = std::slice::from_ref(&map);
    let refused = apply::reconcile(&fixture.cluster, &owner, manifests, ReconcileOptions::default()).await;
    assert!(matches!(refused, Err(Error::NotMarked { .. })), "{refused:?}");
    assert!(fixture.live(&map).await?.is_none());
    Ok(())
}
