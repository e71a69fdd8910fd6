//! Waits for a condition by watching objects; errors show the last state.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, pin_mut};
use kube::{Api, Resource, api::DynamicObject, runtime::watcher::watch_object};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Bounds the waits of tests: the end of one that hangs, which is so far that a busy machine does not reach it.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(240);

/// Waits until the named object exists and the condition holds for it. `what` completes "waited for".
pub async fn wait_for<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    at_most: Duration,
    mut condition: impl FnMut(&K) -> bool,
) -> Result<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    watch(api, name, what, at_most, |seen| {
        seen.as_ref().is_some_and(&mut condition)
    })
    .await?
    .with_context(|| format!("{name} is gone"))
}

/// The Ready condition of an object of any kind; null while there is none.
#[must_use]
pub fn ready(object: &DynamicObject) -> Value {
    let conditions = object
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
    ready.cloned().unwrap_or_default()
}

pub async fn wait_gone<K>(api: &Api<K>, name: &str, at_most: Duration) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    watch(api, name, &format!("{name} to be gone"), at_most, Option::is_none)
        .await
        .map(|_| ())
}

async fn watch<K>(
    api: &Api<K>,
    name: &str,
    what: &str,
    at_most: Duration,
    mut done: impl FnMut(&Option<K>) -> bool,
) -> Result<Option<K>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let mut last: Option<K> = None;
    let mut trouble = None;
    let seen = async {
        let stream = watch_object(api.clone(), name);
        pin_mut!(stream);
        while let Some(event) = stream.next().await {
            match event {
                Ok(seen) => {
                    last = seen;
                    if done(&last) {
                        return;
                    }
                }
                // The watcher tries again at once; an API server that restarts shouldn't be hammered.
                Err(error) => {
                    trouble = Some(error.to_string());
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    };
    if tokio::time::timeout(at_most, seen).await.is_ok() {
        return Ok(last);
    }
    let trouble = trouble
        .map(|trouble| format!("\nthe watch failed with: {trouble}"))
        .unwrap_or_default();
    bail!(
        "waited {} s in vain for {what}; {name} was last seen as:\n{}{trouble}",
        at_most.as_secs_f32(),
        show(last)
    )
}

fn show<K: Resource + Serialize>(object: Option<K>) -> String {
    let Some(mut object) = object else {
        return "(there is none)".to_owned();
    };
    object.meta_mut().managed_fields = None;
    serde_json::to_string_pretty(&object).unwrap_or_else(|error| error.to_string())
}

/// Repeats a request with growing delays until it succeeds, for states that can't be watched.
pub async fn eventually<T, F>(what: &str, at_most: Duration, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + at_most;
    let mut pause = Duration::from_millis(10);
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if Instant::now() > deadline {
            return Err(error.context(format!("waited {} s in vain for {what}", at_most.as_secs_f32())));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(Duration::from_millis(250));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn eventually_returns_the_last_error_on_timeout() {
        let error = eventually::<(), _>("rain", Duration::from_millis(30), || async {
            bail!("the sky is blue")
        })
        .await;
        let message = format!("{:#}", error.expect_err("never comes"));
        assert!(
            message.contains("for rain") && message.contains("the sky is blue"),
            "{message}"
        );
    }

    #[tokio::test]
    async fn eventually_returns_the_first_success() {
        let mut asked = 0;
        let answer = eventually("the third", Duration::from_secs(10), || {
            asked += 1;
            let now = asked;
            async move { if now < 3 { bail!("not yet") } else { Ok(now) } }
        });
        assert_eq!(answer.await.expect("comes"), 3);
    }
}
