//! The ledger of memory of the process, out of which the work for all tenants draws.

use std::sync::OnceLock;

use crate::ByteBudget;

static LEDGER: OnceLock<ByteBudget> = OnceLock::new();

/// Sets the bytes of the ledger at the start of a controller. Returns false if it was set before.
pub fn set_process_memory(bytes: u64) -> bool {
    LEDGER.set(ByteBudget::new(bytes)).is_ok()
}

/// Returns the ledger of a controller: whose tenants are namespaces. `None` in a process of one user, such as a command line.
#[must_use]
pub fn process_memory() -> Option<ByteBudget> {
    LEDGER.get().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_is_one_for_the_process_and_is_set_once() {
        assert!(process_memory().is_none() && set_process_memory(4 << 20));
        let memory = process_memory().unwrap();
        let mut share = memory.tenant("a").share();
        share.try_grow(3 << 20).unwrap();
        assert!(share.try_grow(1 << 20).is_err(), "a part is left to others");
        assert_eq!(process_memory().unwrap().in_use(), 3 << 20);
        assert!(!set_process_memory(u64::MAX));
    }
}
