use serde_json::json;

use super::*;

fn compile(checks: serde_json::Value) -> Result<Checks, InvalidExpression> {
    let checks: Vec<HealthCheckExpr> = serde_json::from_value(checks).unwrap();
    Checks::compile(&checks, &mut Allowance::new(Limits::OF_PASS))
}

fn check(checks: &Checks, object: serde_json::Value) -> Option<Health> {
    let objects = [Arc::new(Value::from_json(object))];
    let mut found = checks.check_some(&objects, &mut Allowance::new(Limits::OF_PASS));
    match found.pop() {
        Some(Checked::Found(health)) => Some(health),
        _ => None,
    }
}

fn status(checks: &Checks, kind: &str, status: &serde_json::Value) -> Option<Status> {
    let object = json!({
        "apiVersion": "x.io/v2", "kind": kind,
        "metadata": { "name": "a", "generation": 2 }, "status": status,
    });
    check(checks, object).map(|health| health.status)
}

/// Returns objects of the kind A with 200 numbers each, and their health by an expression that takes more than 40,000 steps.
fn costly(steps: usize, count: usize) -> (CelHealth, Vec<Arc<Value>>) {
    let current = "data.all(x, data.all(y, x + y >= 0))";
    let checks = compile(json!([{ "apiVersion": "x.io/v1", "kind": "A", "current": current }]));
    let limits = Limits {
        steps,
        ..Limits::OF_PASS
    };
    let health = CelHealth {
        namespace: "apps".to_owned(),
        checks: Arc::new(checks.unwrap()),
        allowance: Arc::new(Mutex::new(Allowance::new(limits))),
    };
    let data: Vec<_> = (0..200).collect();
    let object = |name: usize| {
        let metadata = json!({ "name": format!("a{name}") });
        let object = json!({ "apiVersion": "x.io/v1", "kind": "A", "metadata": metadata, "data": data });
        Arc::new(Value::from_json(object))
    };
    (health, (0..count).map(object).collect())
}

#[tokio::test]
async fn costly_expression_does_not_block_the_only_worker() {
    let (health, objects) = costly(Limits::OF_PASS.steps, 1);
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    let checked = tokio::select! {
        checked = health.check(objects) => checked,
        () = others => Vec::new(),
    };
    assert_eq!(checked, [Checked::Found(Health::new(Status::Current, ""))]);
    assert!(turns > 10, "the worker had {turns} turns");
}

#[tokio::test]
async fn evaluations_of_a_pass_share_its_steps_and_end_with_the_name_of_the_limit() {
    let (health, objects) = costly(1_500_000, 100);
    let mut found = Vec::new();
    while !matches!(found.last(), Some(Checked::Exhausted(_))) {
        let rest = objects.iter().skip(found.len()).cloned().collect();
        let some = health.check(rest).await;
        assert!((1..30).contains(&some.len()), "slices: {}", some.len());
        found.extend(some);
    }
    assert!((5..40).contains(&found.len()), "{}", found.len());
    let Some(Checked::Exhausted(last)) = found.pop() else {
        panic!("the last one");
    };
    assert_eq!(
        (last.status, last.message.as_str()),
        (
            Status::Failed,
            "the expressions together take more than 1500000 steps: the health checks end with the CEL expression \
             'data.all(x, data.all(y, x + y >= 0))'"
        )
    );
}

#[tokio::test]
async fn wait_that_ends_cancels_its_evaluation_and_leaves_the_steps_to_the_next_one() {
    let (health, objects) = costly(Limits::OF_PASS.steps, 50);
    let mut first = health.check(objects.clone());
    // The first poll gets a permit, the second one a thread.
    assert!((&mut first).now_or_never().is_none() && (&mut first).now_or_never().is_none());
    drop(first);
    assert!(!health.check(objects).await.is_empty());
    assert!(health.allowance.lock().left().steps > Limits::OF_PASS.steps - 4_000_000);
}

#[test]
fn expressions_decide_in_their_order() {
    let health = compile(json!([{
        "apiVersion": "x.io/v1", "kind": "A", "current": "status.phase == 'Ready'",
        "inProgress": "status.phase == 'Working'", "failed": "status.phase in ['Failed', 'Working']",
    }]))
    .unwrap();
    for (phase, expected) in [
        ("Ready", Status::Current),
        ("Working", Status::InProgress),
        ("Failed", Status::Failed),
        ("Else", Status::InProgress),
    ] {
        let found = status(&health, "A", &json!({ "phase": phase }));
        assert_eq!(found, Some(expected), "{phase}");
    }
    let outdated = status(
        &health,
        "A",
        &json!({ "phase": "Ready", "observedGeneration": 1 }),
    );
    assert_eq!(outdated, Some(Status::InProgress));
    assert_eq!(
        status(&health, "A", &json!({})),
        Some(Status::Unknown),
        "not there yet"
    );
    assert_eq!(status(&health, "B", &json!({ "phase": "Ready" })), None);
}

#[test]
fn checks_of_a_kind_come_before_those_of_its_group() {
    let health = compile(json!([
        { "apiVersion": "x.io/v1", "current": "true" },
        { "apiVersion": "x.io/v1", "kind": "A", "current": "false" },
    ]));
    let health = health.unwrap();
    assert_eq!(status(&health, "A", &json!({})), Some(Status::InProgress));
    assert_eq!(status(&health, "B", &json!({})), Some(Status::Current));
}

#[test]
fn invalid_and_double_checks_are_refused() {
    let error = |checks| compile(checks).err().unwrap().to_string();
    let double = error(json!([
        { "apiVersion": "x.io/v1", "kind": "A", "current": "true" },
        { "apiVersion": "x.io/v2", "kind": "A", "current": "true" },
    ]));
    assert_eq!(
        double,
        "duplicate custom health check for GroupKind A.x.io at healthchecks[1]"
    );
    let invalid = error(json!([{ "apiVersion": "x.io/v1", "current": "true", "failed": "1 +" }]));
    assert_eq!(
        invalid,
        "failed to create custom status evaluator for healthchecks[0]: failed to parse the expression Failed: failed to \
         parse the CEL expression '1 +': ERROR: <input>:1:4: Syntax error: expected a value"
    );
    let missing = error(json!([{ "apiVersion": "x.io/v1", "current": "" }]));
    assert!(
        missing.ends_with("healthchecks[0]: expression Current not specified"),
        "{missing}"
    );
}

#[tokio::test]
async fn invalid_expression_stalls_and_one_that_was_not_compiled_is_tried_again() {
    let invalid = json!([{ "apiVersion": "x.io/v1", "kind": "A", "current": "status.(" }]);
    let invalid: Vec<HealthCheckExpr> = serde_json::from_value(invalid).unwrap();
    let fault = CelHealth::compile("apps", &invalid).await.unwrap_err();
    assert_eq!(
        (fault.class, fault.reason),
        (api::Class::Stall, api::Reason::InvalidCELExpression)
    );
    let start = "Reconciliation failed terminally due to configuration error: failed to create custom status evaluator for";
    assert!(fault.message.starts_with(start), "{fault}");
    let stopped = check::expressions(&InvalidExpression::Limit(EvalError::Cancelled));
    assert_eq!(stopped.class, api::Class::Retry);
    assert!(CelHealth::compile("apps", &[]).await.unwrap().is_none());
}

#[test]
fn errors_of_evaluations_name_the_expression_and_the_missing_field() {
    let health = compile(json!([
        { "apiVersion": "x.io/v2", "kind": "A", "inProgress": "has(data.foo.bar)", "current": "true" },
        { "apiVersion": "x.io/v2", "kind": "B", "current": "status.phase" },
    ]));
    let health = health.unwrap();
    let message = |kind: &str| {
        let object = json!({ "apiVersion": "x.io/v2", "kind": kind, "metadata": { "name": "a" }, "status": { "phase": "x" } });
        check(&health, object).unwrap().message
    };
    assert_eq!(
        message("A"),
        "failed to evaluate the CEL expression 'has(data.foo.bar)': no such attribute(s): data.foo.bar"
    );
    assert!(message("B").contains("not bool"), "{}", message("B"));
}
