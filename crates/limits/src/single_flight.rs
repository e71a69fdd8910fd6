//! Work whose result is shared by all passes that want it at the same time.
//!
//! A pass takes the [`Flight`] of its work by a key. One pass does the work, the others wait for its result. No pass depends on another
//! one: one that waited for half of its timeout, or got an unusable result, does the work itself.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Mutex as AsyncMutex};

use crate::blocking::{self, Job};

/// Number of groups for which memory stays allocated.
const SPARE: usize = 64;

pub trait FlightKey: PartialEq {
    /// Returns a string that equal keys have in common, and few others, such as a URL.
    fn group(&self) -> &str;
}

/// The work in flight, by its key. It is forgotten with the last [`Flight`] of it.
pub struct Flights<K, T>(Arc<Mutex<Groups<K, T>>>);

type Groups<K, T> = HashMap<Arc<str>, Vec<(K, Weak<SharedWork<T>>)>>;

/// One piece of work, and its last result while any clone lives.
pub struct Flight<T>(Arc<SharedWork<T>>);

struct SharedWork<T> {
    /// The last result, locked by the pass that works on the next.
    last: AsyncMutex<Option<T>>,
    group: Arc<str>,
    all: Weak<dyn Forget + Send + Sync>,
}

/// Forgets work without a [`Flight`].
trait Forget {
    fn forget(&self, group: &str);
}

impl<K, T> Forget for Mutex<Groups<K, T>> {
    fn forget(&self, group: &str) {
        let mut groups = self.lock();
        let Some(of_group) = groups.get_mut(group) else {
            return;
        };
        of_group.retain(|(_, flight)| flight.strong_count() > 0);
        if of_group.is_empty() {
            groups.remove(group);
        }
        if groups.capacity() > SPARE.max(4 * groups.len()) {
            groups.shrink_to_fit();
        }
    }
}

impl<T> Drop for SharedWork<T> {
    fn drop(&mut self) {
        if let Some(all) = self.all.upgrade() {
            all.forget(&self.group);
        }
    }
}

impl<T> Clone for Flight<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, T> Default for Flights<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: FlightKey + Send + 'static, T: Send + 'static> Flights<K, T> {
    /// Returns the work of this key, which may be in flight already.
    pub fn get(&self, key: K) -> Flight<T> {
        let mut groups = self.0.lock();
        let group = match groups.get_key_value(key.group()) {
            Some((group, _)) => Arc::clone(group),
            None => Arc::from(key.group()),
        };
        let of_group = groups.entry(Arc::clone(&group)).or_default();
        let found = of_group
            .iter()
            .find(|(own, flight)| *own == key && flight.strong_count() > 0);
        if let Some(found) = found.and_then(|(_, flight)| flight.upgrade()) {
            return Flight(found);
        }
        let all: Weak<Mutex<Groups<K, T>>> = Arc::downgrade(&self.0);
        let flight = Arc::new(SharedWork {
            last: AsyncMutex::new(None),
            group,
            all,
        });
        if of_group.is_empty() {
            // Most groups have one.
            of_group.reserve_exact(1);
        }
        of_group.push((key, Arc::downgrade(&flight)));
        Flight(flight)
    }
}

impl<T: Clone> Flight<T> {
    /// Returns the result of another pass if it is `usable`, and otherwise the result of `make`, which gets the rest of the timeout of
    /// `job`. Waits for a pass that works on it, for half of the timeout at most. Blocks the thread. Fails if `make` does; the next pass
    /// tries again.
    pub fn get_or<E>(
        &self,
        runtime: &Handle,
        job: &Job,
        usable: impl FnOnce(&T) -> bool,
        make: impl FnOnce(Duration) -> Result<T, E>,
    ) -> Result<T, E> {
        let half = job.timeout / 2;
        let (guard, left) = match self.0.last.try_lock() {
            Ok(guard) => (Some(guard), job.timeout),
            Err(_) => {
                let waiting = Job {
                    timeout: half,
                    ..job.clone()
                };
                (blocking::wait(runtime, &waiting, self.0.last.lock()).ok(), half)
            }
        };
        let Some(mut guard) = guard else {
            return make(left);
        };
        if let Some(found) = guard.as_ref().filter(|found| usable(found)) {
            return Ok(found.clone());
        }
        let made = make(left)?;
        *guard = Some(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        thread,
    };

    use super::*;

    fn job(timeout: Duration) -> Job {
        Job {
            namespace: "ns".to_owned(),
            timeout,
            cancelled: Arc::default(),
            revoked: Default::default(),
        }
    }

    impl FlightKey for &'static str {
        fn group(&self) -> &str {
            self
        }
    }

    impl FlightKey for String {
        fn group(&self) -> &str {
            self
        }
    }

    const LONG: Duration = Duration::from_secs(600);

    /// Lets one pass start its work, and returns the end of it with its thread.
    fn leader(
        flight: &Flight<u8>,
        runtime: &Handle,
        result: Result<u8, &'static str>,
    ) -> impl FnOnce() + use<> {
        let (begun, wait_begun) = mpsc::channel();
        let (end, wait_end) = mpsc::channel::<()>();
        let (flight, runtime) = (flight.clone(), runtime.clone());
        let thread = thread::spawn(move || {
            let made = flight.get_or(
                &runtime,
                &job(LONG),
                |_| true,
                |_| {
                    begun.send(()).unwrap();
                    wait_end.recv().unwrap();
                    result
                },
            );
            assert_eq!(made, result);
        });
        wait_begun.recv().unwrap();
        move || {
            end.send(()).unwrap();
            thread.join().unwrap();
        }
    }

    #[test]
    fn work_that_many_want_at_once_is_done_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let flights = Flights::default();
        let flight = flights.get("a");
        let end = leader(&flight, runtime.handle(), Ok(1));
        let made = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (flight, runtime, made) = (flights.get("a"), runtime.handle().clone(), Arc::clone(&made));
                thread::spawn(move || {
                    let make = |_| {
                        made.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, ()>(2)
                    };
                    flight.get_or(&runtime, &job(LONG), |_| true, make)
                })
            })
            .collect();
        end();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(1));
        }
        assert_eq!(made.load(Ordering::Relaxed), 0);
        assert_eq!(
            flights
                .get("b")
                .get_or(runtime.handle(), &job(LONG), |_| true, |_| Ok::<_, ()>(3)),
            Ok(3)
        );
    }

    #[test]
    fn failed_and_unusable_work_is_done_again() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let flight = Flights::default().get("a");
        leader(&flight, runtime.handle(), Err("down"))();
        let get = |usable: bool, value| {
            flight.get_or(runtime.handle(), &job(LONG), |_| usable, |_| Ok::<_, ()>(value))
        };
        assert_eq!(
            (get(true, 2), get(true, 3), get(false, 4), get(true, 5)),
            (Ok(2), Ok(2), Ok(4), Ok(4))
        );
    }

    #[test]
    fn pass_that_waited_for_half_of_its_timeout_does_the_work_itself() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let flight = Flights::default().get("a");
        let end = leader(&flight, runtime.handle(), Ok(1));
        let short = Duration::from_millis(20);
        let made = flight.get_or(
            runtime.handle(),
            &job(short),
            |_| true,
            |left| Ok::<_, ()>(u8::from(left == short / 2)),
        );
        let cancelled = Job {
            cancelled: Arc::new(true.into()),
            ..job(LONG)
        };
        assert_eq!(made, Ok(1));
        assert_eq!(
            flight.get_or(runtime.handle(), &cancelled, |_| true, |_| Err("cancelled")),
            Err("cancelled")
        );
        end();
    }

    #[test]
    fn results_are_forgotten_with_the_last_pass() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let flights = Flights::default();
        let get = |value| {
            flights
                .get("a")
                .get_or(runtime.handle(), &job(LONG), |_| true, |_| Ok::<_, ()>(value))
        };
        assert_eq!((get(1), get(2)), (Ok(1), Ok(2)));
    }

    #[test]
    fn work_that_nobody_holds_takes_no_memory() {
        let flights = Flights::<String, u8>::default();
        let kept = flights.get("kept".to_owned());
        let others: Vec<_> = (0..1000).map(|number| flights.get(number.to_string())).collect();
        assert_eq!(flights.0.lock().len(), 1001);
        drop(others);
        {
            let groups = flights.0.lock();
            assert!(groups.len() == 1 && groups.capacity() <= 2 * SPARE);
        }
        let same = flights.get("kept".to_owned());
        assert!(Arc::ptr_eq(&kept.0, &same.0));
        drop((kept, same));
        assert!(flights.0.lock().is_empty());
    }

    #[test]
    fn work_that_panics_is_done_by_a_pass_that_waits() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let flight = Flights::default().get("a");
        let (started, wait_started) = mpsc::channel();
        let (end, wait_end) = mpsc::channel::<()>();
        let spawn = |make: Box<dyn FnOnce() -> Result<u8, ()> + Send>| {
            let (flight, runtime) = (flight.clone(), runtime.handle().clone());
            thread::spawn(move || flight.get_or(&runtime, &job(LONG), |_| true, |_| make()))
        };
        let leader = spawn(Box::new(move || {
            started.send(()).unwrap();
            wait_end.recv().unwrap();
            panic!("the work")
        }));
        wait_started.recv().unwrap();
        let next = spawn(Box::new(|| Ok(2)));
        end.send(()).unwrap();
        assert!(leader.join().is_err());
        assert_eq!(next.join().unwrap(), Ok(2));
    }
}
