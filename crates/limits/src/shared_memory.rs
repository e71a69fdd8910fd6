//! The part of an operation in the ledger of memory of its process.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tree::{Budget, SharedMemory};

use crate::{ByteBudget, Share, process_memory};

struct OperationMemory(Mutex<Share>);

impl fmt::Debug for OperationMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.lock().bytes())
    }
}

impl SharedMemory for OperationMemory {
    fn take(&self, bytes: u64) -> bool {
        self.0.lock().try_grow(bytes).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.lock().shrink(bytes);
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
            let share = ledger.tenant(namespace).share();
            budget.with_memory(Arc::new(OperationMemory(Mutex::new(share))))
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
        let ledger = ByteBudget::fair(16 * MIB);
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
}
