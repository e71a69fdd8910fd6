//! Exclusive use of names.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The names in use, each with a token that is cancelled at the end of its use.
type Used = Arc<Mutex<HashMap<String, CancellationToken>>>;

/// Names that one holder at a time uses, such as the objects whose work must not overlap. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct ExclusiveNames(Used);

/// Exclusive use of a name, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    name: String,
    used: Used,
}

impl ExclusiveNames {
    /// Waits until a name is free, and claims it.
    pub async fn claim(&self, name: &str) -> Claim {
        loop {
            let last = match self.try_claim(name) {
                Ok(claim) => return claim,
                Err(last) => last,
            };
            last.cancelled().await;
        }
    }

    /// Returns true if no name is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Claims a name, or returns the token of the claim that holds it.
    fn try_claim(&self, name: &str) -> Result<Claim, CancellationToken> {
        let mut used = self.0.lock();
        if let Some(last) = used.get(name) {
            return Err(last.clone());
        }
        used.insert(name.to_owned(), CancellationToken::new());
        Ok(Claim {
            name: name.to_owned(),
            used: Arc::clone(&self.0),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(ended) = self.used.lock().remove(&self.name) {
            ended.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn name_has_one_holder_until_its_claim_is_dropped() {
        let names = ExclusiveNames::default();
        let claim = |name| names.claim(name).now_or_never();
        let first = claim("a");
        assert!(first.is_some() && claim("a").is_none() && claim("b").is_some());
        let mut next = Box::pin(names.claim("a"));
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        let next = next.now_or_never();
        assert!(next.is_some() && claim("a").is_none());
        drop(next);
        assert!(names.is_empty());
    }

    #[test]
    fn claims_that_wait_get_the_name_one_at_a_time_and_may_be_cancelled() {
        let names = ExclusiveNames::default();
        let first = names.claim("a").now_or_never();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(names.claim("a"))).collect();
        for claim in &mut waiting {
            assert!(claim.now_or_never().is_none());
        }
        drop(waiting.remove(0));
        drop(first);
        let claims: Vec<_> = waiting
            .iter_mut()
            .filter_map(|claim| claim.now_or_never())
            .collect();
        assert_eq!(claims.len(), 1);
        drop((claims, waiting));
        assert!(names.is_empty());
    }
}
