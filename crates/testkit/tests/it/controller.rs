//! Controllers as processes, played by a shell script.

use std::time::Duration;

use testkit::{Controller, controller::Launch};

const TIMEOUT: Duration = testkit::WAIT_TIMEOUT;

fn launch() -> Launch {
    Controller::named("source-controller")
        .program(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stand-in.sh"))
        .run_by("/a/kubeconfig".as_ref())
}

#[tokio::test]
async fn controller_writes_logs_and_ends_on_sigterm() {
    let controller = launch()
        .namespace("ns")
        .flag("--concurrent=7")
        .spawn()
        .expect("starts");
    let is = |entry: &serde_json::Value, message: &str| entry["msg"] == message;
    let started = controller
        .wait_log("the start", TIMEOUT, |entry| is(entry, "started"))
        .await
        .expect("starts");
    assert_eq!(
        (started["kubeconfig"].as_str(), started["namespace"].as_str()),
        (Some("/a/kubeconfig"), Some("ns"))
    );
    let flags = started["flags"].as_str().expect("is text");
    assert!(
        flags.contains("--concurrent=7") && flags.contains("--storage-adv-addr=127.0.0.1:"),
        "{flags}"
    );
    assert!(controller.usage().expect("runs").resident > 0);
    controller.pause().expect("is paused");
    controller.resume().expect("goes on");
    assert!(controller.terminate().await.expect("ends").success());
    assert!(
        controller.log_entries().iter().any(|entry| is(entry, "ended")),
        "{}",
        controller.log()
    );
    assert!(!controller.is_running());
}

#[tokio::test]
async fn controller_log_ends_when_it_is_killed() {
    let controller = launch().spawn().expect("starts");
    controller
        .wait_log("the start", TIMEOUT, |entry| entry["msg"] == "started")
        .await
        .expect("starts");
    assert_eq!(controller.kill().await.expect("ends").code(), None);
    assert!(!controller.log().contains("ended"));
    let files = controller.dir().to_owned();
    drop(controller);
    assert!(!files.exists());
}

#[tokio::test]
async fn start_fails_at_once_if_the_controller_ends() {
    let error = launch().env("ENDS", "yes").start().await.expect_err("ends");
    let message = format!("{error:#}");
    assert!(
        message.contains("exit status: 3") && message.contains("no JSON"),
        "{message}"
    );
}
