//! `weir trigger receiver`, and commands of flux that weir refuses.

use std::{path::Path, process::Output};

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::{
    sink::{Answer, WebhookSink},
    web::{Page, WebServer},
};

use crate::commands::{stderr, weir};

async fn trigger(sink: &WebhookSink, words: &str, variables: &[(&str, &str)]) -> Result<Output> {
    let url = sink.url("/base/");
    let line =
        format!("trigger receiver receiver-secret -n my-namespace --url={url} --retry-delay=1ms {words}");
    let mut command = weir(Path::new("."), &line);
    command.envs(variables.iter().copied());
    Ok(tokio::process::Command::from(command).output().await?)
}

/// Path of the Receiver with the token `test-token`.
const PATH: &str = "/base/hook/106120121d366c2f67e93200f6c1dbe938235eb588daa5e8c0516d3a77ac1dee";

#[tokio::test(flavor = "multi_thread")]
async fn receivers_get_the_webhooks_of_their_type() -> Result<()> {
    let sink = WebhookSink::start()?;
    let output = trigger(&sink, "--token=test-token", &[]).await?;
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (
            Some(0),
            "► triggering Receiver my-namespace/receiver-secret\n✔ Receiver my-namespace/receiver-secret triggered\n"
        )
    );
    let payload = r#"--payload={"image":"app"} --type=generic-hmac --token=test-token"#;
    let output = trigger(&sink, payload, &[]).await?;
    ensure!(output.status.success(), "{}", stderr(&output));
    let jobs = WebServer::start()?;
    let token = json!({"count": 1, "value": "of-the-job"}).to_string();
    jobs.page("/token", Page::Content(token.into()));
    let url = jobs.url("/token?v=1");
    let variables = [
        ("ACTIONS_ID_TOKEN_REQUEST_URL", url.as_str()),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-runner"),
    ];
    let output = trigger(&sink, "--type=generic-oidc --oidc-provider=github", &variables).await?;
    ensure!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        jobs.asked()[0].authorization.as_deref(),
        Some("Bearer of-the-runner")
    );
    let variables = [("FLUX_TRIGGER_RECEIVER_OIDC_TOKEN", "of-gitlab")];
    let output = trigger(&sink, "--type=generic-oidc", &variables).await?;
    ensure!(output.status.success(), "{}", stderr(&output));
    let received = sink.received();
    let requests: Vec<(&str, &str, &str, &[u8])> = received
        .iter()
        .map(|one| {
            (
                &*one.path,
                one.header("x-signature"),
                one.header("authorization"),
                &*one.body,
            )
        })
        .collect();
    let [generic, hmac, github, gitlab] = requests.as_slice() else {
        anyhow::bail!("{received:?}");
    };
    assert_eq!(*generic, (PATH, "", "", &b"{}"[..]));
    assert_eq!((hmac.0, hmac.3), (PATH, &br#"{"image":"app"}"#[..]));
    ensure!(hmac.1.starts_with("sha256=") && hmac.1.len() == 71, "{}", hmac.1);
    assert_eq!((github.2, gitlab.2), ("Bearer of-the-job", "Bearer of-gitlab"));
    // The path of these Receivers has no token.
    ensure!(github.0 == gitlab.0 && github.0 != PATH, "{}", github.0);
    ensure!(
        received
            .iter()
            .all(|one| one.method == "POST" && one.header("content-type") == "application/json")
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_repeated_only_if_that_may_help() -> Result<()> {
    let sink = WebhookSink::start()?;
    for (status, requests, message) in [
        (503, 3, "could not be delivered: HTTP status 503"),
        (404, 3, "there is no Receiver with this token, name and namespace"),
        (400, 1, "was refused: HTTP status 400"),
    ] {
        sink.clear();
        sink.answer(Answer::Status(status, String::new()));
        let output = trigger(&sink, "--token=test-token --retries=2", &[]).await?;
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{status}");
        ensure!(errors.contains(message), "{errors}");
        assert_eq!(sink.received().len(), requests, "{status}: {errors}");
        assert_eq!(
            errors.matches("; retrying in 1ms (").count(),
            requests - 1,
            "{errors}"
        );
        ensure!(!errors.contains("/hook/1"), "the path is a secret: {errors}");
    }
    for (words, message) in [
        ("", "--token is required for --type=generic"),
        (
            "--token=t --oidc-token=t",
            "can only be set for --type=generic-oidc",
        ),
        (
            "--type=generic-oidc --token=t",
            "--token must not be set for --type=generic-oidc",
        ),
        ("--type=generic-oidc", "no OIDC token provided"),
        (
            "--type=generic-oidc --oidc-provider=github",
            "$ACTIONS_ID_TOKEN_REQUEST_URL is not set",
        ),
    ] {
        let output = trigger(&sink, words, &[]).await?;
        ensure!(stderr(&output).contains(message), "{words}: {}", stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{words}");
    }
    Ok(())
}

#[test]
fn commands_of_flux_that_are_missing_are_refused_by_name() -> Result<()> {
    for (words, refusal) in [
        (
            "push artifact oci://h/p --path=.",
            "weir push is not supported: weir oci push",
        ),
        ("list artifacts oci://h/p", "weir list is not supported: "),
        (
            "build artifact --path=.",
            "weir build artifact is not supported: ",
        ),
        (
            "diff artifact oci://h/p --path=.",
            "weir diff artifact is not supported: ",
        ),
        ("envsubst --strict", "weir envsubst is not supported: "),
        ("plugin install schema", "weir plugin is not supported: "),
        (
            "bootstrap bitbucket-server",
            "weir bootstrap bitbucket-server is not supported: ",
        ),
    ] {
        let output = weir(Path::new("."), words).output()?;
        assert_eq!(output.status.code(), Some(1), "{words}");
        ensure!(
            stderr(&output).starts_with(&format!("Error: {refusal}")),
            "{words}: {}",
            stderr(&output)
        );
    }
    Ok(())
}
