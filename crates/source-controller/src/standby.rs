//! The time before a process leads. It serves files already, but it is ready only if it has the files that consumers ask for: with the
//! shared store, or if the leader uses the same volume. Its own volume is empty or outdated.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use artifact::Storage;
use runtime::Context;
use tokio::{task::spawn_blocking, time::sleep};

const LEASE: &str = "the lease";
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) async fn wait(
    ctx: &Context,
    storage: &Arc<Storage>,
    has_shared_store: bool,
) -> Result<(), runtime::Error> {
    if has_shared_store {
        return ctx.leader().await;
    }
    ctx.readiness().expect(LEASE);
    let led = tokio::select! {
        biased;
        led = ctx.wait_to_lead() => led,
        never = serve_for_the_leader(ctx, storage) => match never {},
    };
    ctx.readiness().done(LEASE);
    led
}

/// Makes this process ready as soon as another one stores artifacts in the same volume.
async fn serve_for_the_leader(ctx: &Context, storage: &Arc<Storage>) -> Infallible {
    loop {
        let checked = Arc::clone(storage);
        if spawn_blocking(move || checked.has_writer())
            .await
            .unwrap_or(false)
        {
            break;
        }
        sleep(CHECK_INTERVAL).await;
    }
    tracing::info!("the leader uses the same volume: this process serves its artifacts");
    ctx.readiness().done(LEASE);
    ctx.readiness().started();
    pending().await
}
