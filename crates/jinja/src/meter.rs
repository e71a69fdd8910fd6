//! The steps and the memory of a renderer, for templates, their syntax trees and values.

use std::cell::{Cell, RefCell};

use tree::{Budget, Exceeded, MemoryReservation};

/// The maximum steps of one template, with all templates that it includes and renders.
const FUEL: u64 = 20_000_000;

/// The memory limit of a renderer, as a multiple of the limit of one value.
const MEMORY: u64 = 4;

/// Counts steps from the start of a template, and the memory that may be in use: of the running template, and of values that outlive a
/// template. The memory is taken from the shared memory of the budget, and given back on drop.
#[derive(Default)]
pub(crate) struct Meter {
    budget: RefCell<Budget>,
    steps: Cell<u64>,
    max_steps: Cell<u64>,
    max_bytes: Cell<u64>,
    bytes: Cell<u64>,
    /// The part of the bytes that outlives the running template.
    lasting: Cell<u64>,
    reserved: Cell<u64>,
    reservation: RefCell<MemoryReservation>,
}

impl Meter {
    /// Starts the steps of a template. The memory that earlier templates left still counts.
    pub(crate) fn start(&self, budget: &Budget) -> Result<(), Exceeded> {
        budget.check()?;
        self.steps.set(0);
        self.max_steps.set(FUEL.min(budget.limits().steps));
        self.max_bytes.set(budget.limits().bytes);
        *self.budget.borrow_mut() = budget.clone();
        self.reserve(self.bytes.get())
    }

    /// Ends a template. Frees the bytes that it took, unless values of it last.
    pub(crate) fn end(&self, lasts: bool) {
        if lasts {
            self.lasting.set(self.bytes.get());
        } else {
            self.bytes.set(self.lasting.get());
        }
        // Giving back never fails.
        let _ = self.reserve(self.bytes.get());
    }

    pub(crate) fn budget(&self) -> Budget {
        self.budget.borrow().clone()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// Returns the bytes that may be in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the maximum size of one value in bytes.
    pub(crate) fn max_bytes(&self) -> u64 {
        self.max_bytes.get()
    }

    /// Counts steps, and checks the time limit now and then.
    pub(crate) fn step(&self, count: u64) -> Result<(), Exceeded> {
        let before = self.steps.get();
        let after = before.saturating_add(count);
        self.steps.set(after);
        if before >> 12 != after >> 12 {
            self.check(after)?;
        }
        Ok(())
    }

    fn check(&self, steps: u64) -> Result<(), Exceeded> {
        let limit = self.max_steps.get();
        if steps > limit {
            return Err(Exceeded::Limit {
                what: "steps of one template",
                limit,
            });
        }
        self.budget.borrow().check()
    }

    /// Counts bytes before they are taken.
    pub(crate) fn alloc(&self, bytes: u64) -> Result<(), Exceeded> {
        let total = self.bytes.get().saturating_add(bytes);
        let limit = self.max_bytes.get().saturating_mul(MEMORY);
        if total > limit {
            return Err(Exceeded::Limit {
                what: "bytes of all values in a template",
                limit,
            });
        }
        if total > self.reserved.get() {
            self.reserve(total)?;
        }
        self.bytes.set(total);
        Ok(())
    }

    /// Frees counted bytes.
    pub(crate) fn free(&self, bytes: u64) {
        let left = self.bytes.get().saturating_sub(bytes);
        self.bytes.set(left.max(self.lasting.get()));
    }

    /// Marks counted bytes as ones that outlive the running template.
    pub(crate) fn outlive(&self, bytes: u64) {
        let lasting = self.lasting.get().saturating_add(bytes);
        self.lasting.set(lasting.min(self.bytes.get()));
    }

    /// Frees bytes that outlived their template.
    pub(crate) fn free_lasting(&self, bytes: u64) {
        self.lasting.set(self.lasting.get().saturating_sub(bytes));
        self.free(bytes);
    }

    fn reserve(&self, bytes: u64) -> Result<(), Exceeded> {
        let mut reservation = self.reservation.borrow_mut();
        reservation.resize(bytes, &self.budget.borrow())?;
        self.reserved.set(reservation.bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tree::Limits;

    use super::*;

    #[test]
    fn lasting_bytes_count_in_later_templates_and_others_do_not() {
        let budget = Budget::new(Limits {
            bytes: 100,
            ..Limits::default()
        });
        let meter = Meter::default();
        meter.start(&budget).unwrap();
        meter.alloc(300).unwrap();
        meter.outlive(40);
        meter.free(500);
        assert_eq!(meter.bytes(), 40);
        meter.alloc(300).unwrap();
        meter.end(false);
        meter.start(&budget).unwrap();
        assert_eq!(meter.bytes(), 40);
        assert!(meter.alloc(361).is_err());
        meter.alloc(60).unwrap();
        meter.end(true);
        meter.start(&budget).unwrap();
        assert_eq!(meter.bytes(), 100);
        meter.free_lasting(60);
        assert_eq!(meter.bytes(), 40);
    }
}
