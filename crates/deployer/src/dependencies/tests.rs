use serde_json::json;

use super::*;

fn target(group: &str, kind: &str) -> ObjectRef {
    ObjectRef {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some("shop".to_owned()),
        name: "web".to_owned(),
    }
}

fn expression(source: &str, kind: &str) -> Expression {
    let target = target("", kind);
    Expression {
        source: source.to_owned(),
        name: name(&target),
        hides_data: target.is("", "Secret"),
    }
}

fn evaluate(source: &str, kind: &str, dependency: Json) -> Result<Option<String>, Fault> {
    let itself = Value::from_json(json!({ "spec": { "target": "prod" } }));
    by_expression(
        &expression(source, kind),
        &cel::Value::from(&itself),
        Value::from_json(dependency),
        &mut Allowance::new(Limits::OF_PASS),
    )
}

#[tokio::test]
async fn expressions_of_an_object_share_its_steps_and_leave_the_worker_to_others() {
    let limits = Limits {
        steps: 1_000_000,
        ..Limits::OF_PASS
    };
    let mut expressions = ReadyExpressions {
        allowance: Allowance::new(limits),
        ..ReadyExpressions::new("apps")
    };
    let source = "dep.items.all(x, dep.items.all(y, x + y >= self.least))";
    let (mut turns, mut evaluated) = (0, 0);
    let reason = loop {
        let items: Vec<_> = (0..200).collect();
        let itself = json!({ "least": 0 });
        let dependency = Value::from_json(json!({ "items": items }));
        let others = async {
            loop {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        let reason = tokio::select! {
            reason = expressions.evaluate(expression(source, "Thing"), &itself, dependency) => reason,
            () = others => Ok(None),
        };
        match reason.unwrap() {
            None => evaluated += 1,
            Some(reason) => break reason,
        }
    };
    assert!((1..25).contains(&evaluated), "{evaluated} evaluations");
    assert!(turns > 10 * evaluated, "the worker had {turns} turns");
    assert_eq!(
        reason,
        format!(
            "dependency 'v1/Thing/shop/web' is not checked: the expressions together take more than 1000000 steps, with the \
             CEL expression '{source}'"
        )
    );
    assert!(expressions.itself.is_some(), "the object is read once");
}

#[test]
fn expression_decides_and_waits_for_values_that_are_missing() {
    let source = "dep.status.ready == true && self.spec.target == 'prod'";
    let ready = evaluate(source, "Thing", json!({ "status": { "ready": true } }));
    assert_eq!(ready, Ok(None));
    let unready = evaluate(source, "Thing", json!({ "status": { "ready": false } }));
    let text = "dependency 'v1/Thing/shop/web' is not ready according to readyExpr eval";
    assert_eq!(unready, Ok(Some(text.to_owned())));
    let observed = "dep.metadata.generation + 1 == 3";
    let counted = evaluate(observed, "Thing", json!({ "metadata": { "generation": 2 } }));
    assert_eq!(counted, Ok(None), "integers stay integers");
    let missing = evaluate(source, "Thing", json!({})).unwrap().unwrap();
    assert!(
        missing.starts_with(&format!("failed to evaluate the CEL expression '{source}'")),
        "{missing}"
    );
}

#[test]
fn invalid_expression_stalls() {
    for source in ["dep.", "1 + 1", "other.x == 1"] {
        let fault = evaluate(source, "Thing", json!({})).unwrap_err();
        assert_eq!(
            (fault.class, fault.reason),
            (api::Class::Stall, Reason::InvalidCELExpression),
            "{source}"
        );
        let start = format!(
            "failed to evaluate dependency v1/Thing/shop/web: failed to parse the CEL expression '{source}': "
        );
        assert!(fault.message.starts_with(&start), "{}", fault.message);
    }
}

#[test]
fn expression_does_not_see_the_data_of_a_secret() {
    let secret =
        json!({ "metadata": { "name": "web" }, "data": { "password": "cw==" }, "stringData": { "a": "b" } });
    let sees = |kind: &str| evaluate("has(dep.data) || has(dep.stringData)", kind, secret.clone());
    assert!(sees("Secret").unwrap().is_some());
    assert_eq!(sees("ConfigMap"), Ok(None));
}

#[test]
fn object_of_another_kind_must_be_current() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "generation": 2 }, "spec": { "replicas": 1 }, "status": { "observedGeneration": 1 },
    });
    let waits = by_status(&target("apps", "Deployment"), &Value::from_json(deployment));
    assert_eq!(
        waits.as_deref(),
        Some("dependency 'apps/v1/Deployment/shop/web' is not ready: status InProgress")
    );
    let source =
        json!({ "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {} });
    let source = Value::from_json(source);
    assert!(by_status(&target("source.toolkit.fluxcd.io", "GitRepository"), &source).is_some());
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} });
    assert_eq!(by_status(&target("", "ConfigMap"), &Value::from_json(map)), None);
}
