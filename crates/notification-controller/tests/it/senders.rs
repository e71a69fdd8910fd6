//! Posts of senders and of others, with tokens that the API server reviews.

use http::StatusCode;
use serde_json::{Value, json};
use testkit::Controller;

use crate::setup::{TIMEOUT, TestNamespace, launch};

const AUDIENCE: &str = "weir-events";
const REFUSED: &str = "weir_notification_posts_refused_total";

async fn setup(name: &str) -> TestNamespace {
    TestNamespace::with(name, |launch| launch.flag("--require-event-tokens")).await
}

async fn token(setup: &TestNamespace, account: &str, audience: &str) -> String {
    let token = setup
        .plane
        .service_account_token(&setup.namespace, account, audience);
    token.await.unwrap()
}

async fn post(to: &Controller, setup: &TestNamespace, token: &str, event: &Value) -> (StatusCode, String) {
    let request = setup.http.post(to.events_url()).bearer_auth(token).json(event);
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

/// Returns the number of reviews that the controller has requested: without Alerts, it posts nothing else.
async fn reviews(setup: &TestNamespace) -> f64 {
    let metrics = setup.controller.metrics().await.unwrap();
    let posts = metrics
        .lines()
        .filter(|line| line.starts_with("rest_client_requests_total{") && line.contains("method=\"POST\""));
    posts
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

#[tokio::test]
async fn only_senders_raise_and_suppress_alerts() {
    let setup = setup("senders").await;
    setup.generic("hook", &json!({})).await;
    let event = setup.event("forged");
    let none = setup.post(&event).await;
    assert_eq!(none.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(none.headers()["www-authenticate"], "Bearer");
    assert!(
        none.text()
            .await
            .unwrap()
            .contains("events need the token of a sender")
    );
    let ours = token(&setup, "source-controller", AUDIENCE).await;
    let tampered = format!("{ours}x");
    let for_others = token(&setup, "source-controller", "https://kubernetes.default.svc").await;
    let stranger = token(&setup, "tenant", AUDIENCE).await;
    for (wrong, status, text) in [
        (
            "nonsense",
            StatusCode::UNAUTHORIZED,
            "the token is not valid here",
        ),
        (&tampered, StatusCode::UNAUTHORIZED, "the token is not valid here"),
        (&for_others, StatusCode::UNAUTHORIZED, "--event-token-audience"),
        (&stranger, StatusCode::FORBIDDEN, "--event-senders"),
    ] {
        let (answered, body) = post(&setup.controller, &setup, wrong, &event).await;
        assert_eq!(answered, status, "{body}");
        assert!(body.contains(text), "{body}");
    }
    // The same event of a sender is not a duplicate of the refused ones.
    let (status, body) = post(&setup.controller, &setup, &ours, &event).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    setup.wait_message("hook", "forged").await;
    // Another sender may not report it.
    let other = token(&setup, "kluctl-controller", AUDIENCE).await;
    let (status, body) = post(&setup.controller, &setup, &other, &event).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert_eq!(
        post(&setup.controller, &setup, &ours, &event).await.0,
        StatusCode::TOO_MANY_REQUESTS
    );
    for (reason, count) in [
        ("no-token", 1.0),
        ("invalid-token", 3.0),
        ("not-a-sender", 1.0),
        ("not-its-own", 1.0),
    ] {
        let series = format!("{REFUSED}{{reason=\"{reason}\"}}");
        assert_eq!(setup.controller.metric(&series).await.unwrap(), count, "{reason}");
    }
    let log = setup.controller.log();
    assert!(!log.contains(&ours) && !log.contains(&stranger));
    let name = format!("system:serviceaccount:{}:tenant", setup.namespace);
    assert!(log.contains(&name), "the operator learns who was refused: {log}");
}

#[tokio::test]
async fn senders_report_their_own_objects_in_their_own_name() {
    let setup = setup("reports").await;
    setup.generic("hook", &json!({})).await;
    let (source, kluctl) = (
        token(&setup, "source-controller", AUDIENCE).await,
        token(&setup, "kluctl-controller", AUDIENCE).await,
    );
    let event = |message: &str, version: &str, kind: &str, controller: &str| {
        let mut event = setup.event(message);
        event["involvedObject"]["apiVersion"] = version.into();
        event["involvedObject"]["kind"] = kind.into();
        event["reportingController"] = controller.into();
        event
    };
    let repository = |message: &str, controller: &str| {
        event(
            message,
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            controller,
        )
    };
    let deployment = |message: &str, controller: &str| {
        event(message, "flux.kluctl.io/v1alpha1", "KluctlDeployment", controller)
    };
    for (token, event) in [
        (&source, deployment("forged", "source-controller")),
        (&source, deployment("forged", "kluctl-controller")),
        (&source, repository("forged", "kluctl-controller")),
        (&kluctl, repository("forged", "kluctl-controller")),
        (&kluctl, repository("forged", "source-controller")),
        (&kluctl, event("forged", "v1", "Secret", "kluctl-controller")),
    ] {
        let (status, body) = post(&setup.controller, &setup, token, &event).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{event}");
        assert!(body.contains("may not report this object"), "{body}");
    }
    for (token, event) in [
        (&source, repository("real", "source-controller")),
        (&kluctl, deployment("real", "kluctl-controller")),
    ] {
        let (status, body) = post(&setup.controller, &setup, token, &event).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    }
    setup.wait_message("hook", "real").await;
    let forged = |body: &Value| body["message"] == "forged";
    assert!(!setup.bodies("hook").iter().any(forged));
}

#[tokio::test]
async fn a_flood_of_bad_tokens_stops_no_sender_and_spares_the_api_server() {
    let setup = setup("flood-tokens").await;
    let ours = token(&setup, "source-controller", AUDIENCE).await;
    let send = async |message: String| post(&setup.controller, &setup, &ours, &setup.event(&message)).await;
    assert_eq!(send("first".into()).await.0, StatusCode::ACCEPTED);
    let before = reviews(&setup).await;
    let started = std::time::Instant::now();
    let mut answers = Vec::new();
    for number in 0..50 {
        let bad: Vec<_> = (0..10).map(|each| format!("{ours}-{number}-{each}")).collect();
        let event = setup.event("bad");
        let posts = bad
            .iter()
            .map(|token| post(&setup.controller, &setup, token, &event));
        answers.extend(futures::future::join_all(posts).await);
        assert_eq!(send(format!("good {number}")).await.0, StatusCode::ACCEPTED);
    }
    assert!(answers.iter().all(|(status, _)| matches!(
        *status,
        StatusCode::UNAUTHORIZED | StatusCode::SERVICE_UNAVAILABLE
    )));
    let allowed = 20.0 + 5.0 * started.elapsed().as_secs_f64() + 1.0;
    let reviewed = reviews(&setup).await - before;
    assert!(
        reviewed <= allowed,
        "{reviewed} reviews of 500 tokens, at most {allowed} expected"
    );
}

#[tokio::test]
async fn posts_with_one_token_share_a_review() {
    let setup = setup("shared-review").await;
    let ours = token(&setup, "source-controller", AUDIENCE).await;
    let before = reviews(&setup).await;
    let events: Vec<_> = (0..40).map(|number| setup.event(&number.to_string())).collect();
    let posts = events
        .iter()
        .map(|event| post(&setup.controller, &setup, &ours, event));
    for (status, body) in futures::future::join_all(posts).await {
        assert_eq!(status, StatusCode::ACCEPTED, "{body}");
    }
    assert_eq!(reviews(&setup).await - before, 1.0);
}

#[tokio::test]
async fn a_standby_reviews_tokens_too() {
    let setup = setup("standby-tokens").await;
    let follower = async || {
        launch()
            .run_by(setup.plane.kubeconfig())
            .namespace(&setup.namespace)
            .flag("--enable-leader-election")
            .flag("--require-event-tokens")
            .flag(&format!(
                "--event-senders={}/automation:source-controller=source.toolkit.fluxcd.io,team/x",
                setup.namespace
            ))
            .start()
            .await
            .unwrap()
    };
    let (leader, standby) = (follower().await, follower().await);
    let listed = token(&setup, "automation", AUDIENCE).await;
    let unlisted = token(&setup, "source-controller", AUDIENCE).await;
    for replica in [&leader, &standby] {
        let event = setup.event("to a replica");
        assert_eq!(
            post(replica, &setup, &listed, &event).await.0,
            StatusCode::ACCEPTED
        );
        assert_eq!(
            post(replica, &setup, &unlisted, &event).await.0,
            StatusCode::FORBIDDEN,
            "given senders replace the default ones"
        );
    }
    let leads = testkit::eventually("a leader", TIMEOUT, || async {
        let series = "leader_election_master_status";
        let all = [leader.metric(series).await?, standby.metric(series).await?];
        anyhow::ensure!(all.iter().sum::<f64>() == 1.0, "{all:?}");
        Ok(())
    });
    leads.await.unwrap();
}
