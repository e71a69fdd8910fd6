//! The part of a render in the ledger of memory of its process.

use std::{fmt, sync::Arc};

use limits::{ByteBudget, Share};
use parking_lot::Mutex;
use tree::{Budget, SharedMemory};

struct RenderMemory(Mutex<Share>);

impl fmt::Debug for RenderMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.lock().bytes())
    }
}

impl SharedMemory for RenderMemory {
    fn take(&self, bytes: u64) -> bool {
        self.0.lock().try_grow(bytes).is_ok()
    }
}

/// Lets a budget draw from the ledger, if there is one, as a render of a namespace.
pub(super) fn drawing(budget: Budget, ledger: Option<ByteBudget>, namespace: &str) -> Budget {
    match ledger {
        Some(ledger) => {
            let share = ledger.tenant(namespace).share();
            budget.with_memory(Arc::new(RenderMemory(Mutex::new(share))))
        }
        None => budget,
    }
}

#[cfg(test)]
mod tests {
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
        let own = drawing(Budget::default(), None, "any");
        own.memory(u64::MAX).unwrap();
    }
}
