//! Work with the rules of users: JSON paths and patterns about differences and conflicts.

use cluster::Cluster;
use limits::compute;

/// Runs work with rules of a user: on a thread that tenants share fairly ([`limits::compute`]), and meanwhile without the permit of the
/// operation. Trivial rules are evaluated here, because a thread would take longer than they do.
///
/// # Errors
/// If the work fails, panics, or there is no thread.
pub async fn evaluate<T: Send + 'static>(
    cluster: &Cluster,
    is_trivial: bool,
    work: impl FnOnce() -> Result<T, objects::Error> + Send + 'static,
) -> Result<T, objects::Error> {
    match is_trivial {
        true => work(),
        false => cluster.waiting(evaluate_for(cluster.tenant(), work)).await,
    }
}

async fn evaluate_for<T: Send + 'static>(
    tenant: &str,
    work: impl FnOnce() -> Result<T, objects::Error> + Send + 'static,
) -> Result<T, objects::Error> {
    let evaluated = compute(tenant, |_| work()).await;
    evaluated.unwrap_or(Err(objects::Error::Unevaluated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rules_never_run_on_the_worker_that_asks() {
        let worker = std::thread::current().id();
        let thread = evaluate_for("apps", || Ok(std::thread::current().id())).await;
        assert!(thread.is_ok_and(|thread| thread != worker));
        let panicked = evaluate_for("apps", || -> Result<(), _> { panic!("a rule") }).await;
        assert_eq!(panicked, Err(objects::Error::Unevaluated));
    }
}
