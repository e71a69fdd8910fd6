//! The typed outcomes of objects.

use anyhow::Result;
use apply::{BatchOptions, Failure, Owner, Warning};
use objects::Managers;
use serde_json::json;

use crate::{Fixture, example::owner};

#[tokio::test]
async fn failures_and_warnings_are_types() -> Result<()> {
    let fixture = Fixture::new("outcomes").await?;
    let (tenant, namespace) = (fixture.tenant().await?, &fixture.namespace);
    let owner = Owner {
        overridden: Managers::default(),
        ..owner(namespace)
    };
    let conflicting = fixture.config_map("left", json!({"key": "ours"}));
    fixture
        .plane
        .apply(fixture.config_map("left", json!({"key": "theirs"})).to_json())
        .await?;
    let refused = fixture.config_map("refused", json!({"key": 1}));
    let mut foreign = fixture.config_map("foreign", json!({}));
    objects::meta::set_namespace(&mut foreign, Some("kube-public"));
    let manifests = [conflicting, refused, foreign];
    let applied = apply::apply_all(&tenant, &owner, &manifests, BatchOptions::default()).await?;
    assert!(!applied.is_complete() && applied.halt.is_none());
    for outcome in applied.outcomes {
        match outcome.reference.name.as_str() {
            "left" => {
                let [Warning::FieldLeft(found)] = outcome.warnings.as_slice() else {
                    anyhow::bail!("{outcome:?}");
                };
                assert_eq!(found.field, ".data.key");
                assert!(found.message.starts_with("conflict with "), "{found:?}");
            }
            "refused" => {
                let failed = outcome.result.unwrap_err();
                assert!(
                    matches!(*failed.failure, Failure::Apply(_)) && !failed.is_denied(),
                    "{failed}"
                );
            }
            _ => assert!(outcome.result.unwrap_err().is_denied()),
        }
    }
    Ok(())
}
