//! The time before a process leads. It serves files already, but it is ready only if it has those that consumers ask for: with the shared
//! store, or if the leader uses the same volume. A volume of its own has nothing, or what is outdated.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use artifact::Storage;
use runtime::Context;
use tokio::{task::spawn_blocking, time::sleep};

/// Condition for the process to be ready.
const LEASE: &str = "the lease";
/// Time between two looks at the volume.
const LOOK: Duration = Duration::from_secs(2);

/// Waits until this process leads.
///
/// # Errors
/// Fails when a shutdown begins before that.
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

/// Says that this process is ready as soon as another one stores artifacts in the same volume.
async fn serve_for_the_leader(ctx: &Context, storage: &Arc<Storage>) -> Infallible {
    loop {
        let looked = Arc::clone(storage);
        if spawn_blocking(move || looked.has_writer()).await.unwrap_or(false) {
            break;
        }
        sleep(LOOK).await;
    }
    tracing::info!("the leader uses the same volume: this process serves its artifacts");
    ctx.readiness().done(LEASE);
    ctx.readiness().started();
    pending().await
}
