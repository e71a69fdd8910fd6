//! The part of an operation in the ledger of memory of its process.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tree::{Budget, SharedMemory};

use crate::{ByteBudget, Share, process_memory};

struct OperationMemory {
    share: Mutex<Share>,
    revoked: CancellationToken,
}

impl fmt::Debug for OperationMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.share.lock().bytes())
    }
}

impl SharedMemory for OperationMemory {
    fn take(&self, bytes: u64) -> bool {
        self.share.lock().try_grow(bytes).is_ok()
    }

    fn is_revoked(&self) -> bool {
        self.revoked.is_cancelled()
    }

    fn give_back(&self, bytes: u64) {
        self.share.lock().shrink(bytes);
    }
}

/// Lets the budget of an operation draw from the ledger of the process, if there is one, as work of a namespace.
#[must_use]
pub fn from_process_memory(budget: Budget, namespace: &str) -> Budget {
    drawing(budget, process_memory(), namespace)
}

fn drawing(budget: Budget, ledger: Option<ByteBudget>, namespace: &str) -> Budget {
    match ledger {
        Some(ledger) => {
            let revoked = CancellationToken::new();
            let share = ledger.tenant(namespace).revoked_by(&revoked).share();
            let share = Mutex::new(share);
            budget.with_memory(Arc::new(OperationMemory { share, revoked }))
        }
        None => budget,
    }
}

#[cfg(test)]
mod tests {
    use tree::MemoryReservation;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn renders_of_one_namespace_leave_memory_to_others() {
        let ledger = ByteBudget::new(16 * MIB);
        let render = |namespace: &str| drawing(Budget::default(), Some(ledger.clone()), namespace);
        let greedy: Vec<Budget> = (0..4).map(|_| render("greedy")).collect();
        let taken = greedy.iter().filter(|budget| budget.output(4 * MIB).is_ok());
        assert_eq!(taken.count(), 3);
        let refused = greedy[3].memory(MIB).unwrap_err().to_string();
        assert_eq!(refused, "other work holds the memory; it will be tried again");
        let other = render("other");
        other.output(3 * MIB).unwrap();
        assert_eq!(ledger.in_use(), 15 * MIB);
        // Clones are the same render.
        let clone = other.clone();
        drop(other);
        assert_eq!(ledger.in_use(), 15 * MIB);
        drop((clone, greedy));
        assert_eq!(ledger.in_use(), 0);
        // Values of a render are given back before its end.
        let values = render("values");
        let mut reservation = MemoryReservation::default();
        reservation.resize(3 * MIB, &values).unwrap();
        assert_eq!(ledger.in_use(), 3 * MIB);
        drop(reservation);
        assert_eq!(ledger.in_use(), 0);
        let own = drawing(Budget::default(), None, "any");
        own.memory(u64::MAX).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn old_render_of_the_greediest_ends_for_one_that_needs_its_memory() {
        let ledger = ByteBudget::new(16 * MIB);
        let render = |namespace: &str| drawing(Budget::default(), Some(ledger.clone()), namespace);
        let (old, other) = (render("greedy"), render("other"));
        old.memory(12 * MIB).unwrap();
        tokio::time::advance(std::time::Duration::from_secs(15)).await;
        old.check().unwrap();
        other.memory(4 * MIB).unwrap_err();
        assert_eq!(old.check(), Err(tree::Exceeded::Busy));
        drop(old);
        other.memory(4 * MIB).unwrap();
    }
}
