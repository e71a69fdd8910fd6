use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::runtime::Runtime;

use super::*;

const MIB: u64 = 1 << 20;

/// Four MiB of space, three of which are for a tenant, and a job of the tenant `a`.
struct Setup {
    runtime: Runtime,
    job: Job,
    disk: ByteBudget,
    above: TempDir,
}

impl Setup {
    fn new() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            job: Job {
                namespace: "a".to_owned(),
                timeout: Duration::from_secs(20),
                cancelled: Arc::default(),
                revoked: Default::default(),
            },
            disk: ByteBudget::new(4 * MIB),
            above: tempfile::tempdir().unwrap(),
        }
    }

    fn filling(&self) -> Filling<'_> {
        Filling {
            runtime: self.runtime.handle(),
            job: &self.job,
            disk: &self.disk,
            above: self.above.path(),
            beside: None,
            refusal: Refusal {
                failed: "failed to fetch 'x'",
                reason: Reason::Failed,
                remedy: "make it smaller",
            },
        }
    }

    fn check_empty(&self) {
        assert_eq!(self.disk.in_use(), 0);
        assert_eq!(self.above.path().read_dir().unwrap().count(), 0);
    }
}

fn write(files: &TempFiles, name: &str, bytes: u64) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::retry(Reason::DirectoryCreationFailed, error.to_string());
    let mut file = files.create(name).map_err(failed)?;
    for _ in 0..bytes / 1024 {
        file.write_all(&[7; 1024]).map_err(failed)?;
    }
    Ok(())
}

#[test]
fn files_take_their_bytes_until_they_are_removed() {
    let setup = Setup::new();
    let filled = setup.filling().run(|files| {
        write(files, "a", MIB)?;
        write(files, "b", MIB)?;
        files.remove("a").unwrap();
        files.expect(MIB);
        files.take(MIB / 2).unwrap();
        Ok(5)
    });
    let filled = filled.unwrap();
    assert_eq!(*filled, 5);
    assert_eq!(setup.disk.in_use(), MIB + MIB / 2 + 2 * PER_FILE);
    let names = filled.files.path().read_dir().unwrap();
    assert_eq!(names.count(), 1);
    drop(filled);
    setup.check_empty();
}

#[test]
fn files_larger_than_the_part_of_a_tenant_are_refused_and_others_go_on() {
    let setup = Setup::new();
    let mut least = 0;
    let refused = setup.filling().run(|files| {
        let written = write(files, "a", 4 * MIB);
        least = files.path().join("a").metadata().unwrap().len();
        written
    });
    assert_eq!(
        refused.unwrap_err().message,
        "failed to fetch 'x': it needs more than 3145728 bytes of temporary files: make it smaller"
    );
    // Nothing is written that isn't counted.
    assert!(least > 2 * MIB && least <= 3 * MIB - PER_FILE, "{least}");
    setup.check_empty();
    setup.filling().run(|files| write(files, "a", 2 * MIB)).unwrap();
    setup.check_empty();
}

#[test]
fn files_of_one_namespace_leave_space_to_every_next_one() {
    let mut setup = Setup::new();
    setup.disk = ByteBudget::new(64 * MIB);
    let mut held = Vec::new();
    for namespace in ["a", "b", "c"] {
        namespace.clone_into(&mut setup.job.namespace);
        let mut bytes = 0;
        let filled = setup.filling().run(|files| {
            while files.take(MIB / 4).is_ok() {
                bytes += MIB / 4;
            }
            Ok::<_, Fault>(())
        });
        held.push((bytes, filled.unwrap()));
    }
    let taken: Vec<u64> = held.iter().map(|(bytes, _)| bytes / MIB).collect();
    assert!(taken[0] >= 45 && taken[1] >= 11 && taken[2] >= 2, "{taken:?}");
}

#[test]
fn other_faults_are_passed_on_and_leave_nothing() {
    let setup = Setup::new();
    let failed = setup.filling().run(|files| {
        write(files, "a", MIB)?;
        Err::<(), _>(Fault::retry(Reason::Failed, "the server is gone"))
    });
    assert_eq!(failed.unwrap_err().message, "the server is gone");
    setup.check_empty();
}

#[test]
fn work_waits_once_for_the_space_that_others_hold() {
    let setup = Setup::new();
    let mut other = setup.disk.tenant("b").share();
    other.try_grow(3 * MIB).unwrap();
    let (attempts, ended) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // It waits without the bytes and files of its first attempt.
            let waits = || {
                attempts.load(Ordering::SeqCst) == 1
                    && setup.above.path().read_dir().unwrap().count() == 0
                    && setup.disk.in_use() == 3 * MIB
            };
            while !waits() && !ended.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            drop(other);
        });
        let filled = setup.filling().run(|files| {
            files.expect(2 * MIB);
            let reserved = attempts.load(Ordering::SeqCst) == 1;
            if reserved {
                assert!(setup.disk.in_use() >= 2 * MIB, "{}", setup.disk.in_use());
            }
            let written = write(files, "a", 2 * MIB);
            attempts.fetch_add(1, Ordering::SeqCst);
            written
        });
        ended.store(true, Ordering::SeqCst);
        assert_eq!(filled.map(drop).map_err(|fault| fault.message), Ok(()));
    });
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
    setup.check_empty();
}

#[test]
fn space_that_is_never_given_back_ends_the_wait_with_the_timeout_or_the_cancellation() {
    let mut setup = Setup::new();
    setup.job.timeout = Duration::from_millis(50);
    let mut other = setup.disk.tenant("b").share();
    other.try_grow(3 * MIB).unwrap();
    let refused = setup.filling().run(|files| write(files, "a", 2 * MIB));
    assert_eq!(
        refused.unwrap_err().message,
        "failed to fetch 'x': other work held the space for temporary files for 50ms; it will be tried again"
    );
    setup.job.timeout = Duration::from_secs(3600);
    let cancelled = setup.filling().run(|files| {
        setup.job.cancelled.store(true, Ordering::Relaxed);
        write(files, "a", 2 * MIB)
    });
    assert_eq!(cancelled.unwrap_err().message, "failed to fetch 'x': cancelled");
    drop(other);
    setup.check_empty();
}

#[test]
fn work_that_has_files_never_waits() {
    let mut setup = Setup::new();
    setup.job.timeout = Duration::from_secs(3600);
    let first = setup.filling().run(|files| write(files, "a", MIB)).unwrap();
    let mut other = setup.disk.tenant("b").share();
    other.try_grow(2 * MIB).unwrap();
    let ran = AtomicBool::new(false);
    let filling = Filling {
        beside: Some(&first.files),
        ..setup.filling()
    };
    let held = filling.run(|files| {
        assert!(!ran.swap(true, Ordering::Relaxed), "it runs once");
        write(files, "b", MIB)
    });
    assert_eq!(
        held.unwrap_err().message,
        "failed to fetch 'x': other work holds the space for temporary files; it will be tried again"
    );
    drop(other);
    // Both together are too large.
    let refused = filling.run(|files| write(files, "b", 5 * MIB / 2));
    let refused = refused.unwrap_err().message;
    assert!(refused.contains("more than 3145728 bytes"), "{refused}");
    drop(first);
    setup.check_empty();
}

#[test]
fn files_that_others_need_are_given_back_and_the_fault_says_so() {
    let setup = Setup::new();
    let stopped = setup.filling().run(|files| {
        write(files, "a", MIB)?;
        // As the budget does for another namespace.
        setup.job.revoked.cancel();
        write(files, "b", 1)
    });
    let fault = stopped.unwrap_err();
    assert_eq!(
        fault.message,
        "failed to fetch 'x': other work needed the temporary files that it held for long; it will be tried again"
    );
    setup.check_empty();
}
