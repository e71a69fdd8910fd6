use std::time::Duration;

use limits::{ByteBudget, Tenant};
use testkit::fuzz;
use tokio::runtime::Runtime;

use super::*;
use crate::{
    Call, Pace, Reservations,
    intake::Shares,
    pack::{crafted::Crafted, spool::MAX_PACK_IN_MEMORY},
};

const MIB: u64 = 1 << 20;

struct Fixture {
    runtime: Runtime,
    above: tempfile::TempDir,
    memory: Tenant,
    disk: Tenant,
    limits: Limits,
}

impl Fixture {
    fn new() -> Self {
        Self {
            runtime: Runtime::new().unwrap(),
            above: tempfile::tempdir().unwrap(),
            memory: ByteBudget::new(64 * MIB).tenant("a"),
            disk: ByteBudget::new(64 * MIB).tenant("a"),
            limits: Limits::default(),
        }
    }

    fn receive(&self, pack: &[u8], is_stored: bool) -> (Intake, Result<Objects, String>) {
        let call = Call::new(Duration::from_secs(60));
        let clock = call.start_clock(self.runtime.handle().clone(), "u".to_owned());
        let shares = Shares {
            memory: self.memory.clone(),
            disk: self.disk.clone(),
            reservations: Reservations::default(),
        };
        let slowest = Pace {
            bytes: 0,
            time: Duration::MAX,
        };
        let intake = Intake::new("u".to_owned(), clock.clone(), shares, slowest);
        let stop = AtomicBool::new(false);
        let receiver = Receiver {
            above: self.above.path(),
            limits: &self.limits,
            clock: &clock,
            intake: &intake,
            safe_url: "u",
            stop: &stop,
        };
        let received = match is_stored {
            false => receiver.receive(&mut { pack }),
            true => receiver.index(
                Spooled::InMemory(pack.to_vec())
                    .store(self.above.path(), &intake)
                    .map(Spooled::Stored),
            ),
        };
        let received = received.map_err(|error| match intake.take_failure() {
            Some(failure) => failure.to_string(),
            None => crate::error::chain(&error),
        });
        (intake, received)
    }

    fn files(&self) -> usize {
        self.above.path().read_dir().unwrap().count()
    }
}

fn noise(len: u64) -> Vec<u8> {
    let mut state = 1_u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(next).collect()
}

fn contents(objects: &Objects, of: &Crafted) -> Vec<Option<(Vec<u8>, u64)>> {
    let read = |id| {
        let mut buffer = b"other".to_vec();
        let kind = objects.find(id, &mut buffer).ok()??;
        assert_eq!(kind, gix::objs::Kind::Blob);
        Some((buffer, objects.len_of(id).ok()??))
    };
    of.objects.iter().map(|(id, _)| read(*id)).collect()
}

fn expected(of: &Crafted) -> Vec<Option<(Vec<u8>, u64)>> {
    let content = |(_, content): &(_, Vec<u8>)| Some((content.clone(), content.len() as u64));
    of.objects.iter().map(content).collect()
}

fn with_deltas() -> Crafted {
    let mut crafted = Crafted::default();
    crafted.file(b"a file\n");
    crafted.longer(0, "longer by its distance\n", false);
    crafted.longer(1, "longer by its name\n", true);
    crafted.longer(2, "longer again\n", false);
    crafted.file(&[b'x'; 1000]);
    crafted.longer(4, "and its delta", true);
    crafted
}

#[test]
fn small_pack_with_deltas_is_read_from_memory_alone() {
    let (fixture, crafted) = (Fixture::new(), with_deltas());
    let (intake, objects) = fixture.receive(&crafted.pack(), false);
    let objects = objects.unwrap();
    assert!(matches!(objects, Objects::InMemory(_)));
    assert_eq!((fixture.files(), intake.disk_bytes()), (0, 0));
    let kept = intake.small_pack_bytes();
    assert!((objects.packed_bytes()..8 << 10).contains(&kept), "{kept}");
    let clone = objects.clone();
    assert_eq!(contents(&objects, &crafted), expected(&crafted));
    drop(objects);
    assert_eq!(contents(&clone, &crafted), expected(&crafted));
    let unknown = gix::ObjectId::null(gix::hash::Kind::Sha1);
    assert!(clone.find(unknown, &mut Vec::new()).unwrap().is_none());
    assert!(clone.len_of(unknown).unwrap().is_none());
}

#[test]
fn memory_of_a_small_pack_is_counted_until_its_pass_ends() {
    let (fixture, mut crafted) = (Fixture::new(), Crafted::default());
    crafted.file(&noise(200 << 10));
    let pack = crafted.pack();
    let (intake, objects) = fixture.receive(&pack, false);
    let (objects, most) = (objects.unwrap(), fixture.memory.most());
    intake.reservations().release_unused();
    // The pack with its index, and the memory of indexing it.
    let held = objects.packed_bytes() + (200 << 10);
    let free = |bytes: u64| fixture.memory.share().try_grow(bytes).is_ok();
    assert!(!free(most - held) && free(most - held - (16 << 10)));
    drop(intake);
    assert!(free(most));

    let mut damaged = pack;
    damaged[20] ^= 1;
    let (intake, refused) = fixture.receive(&damaged, false);
    refused.unwrap_err();
    intake.release_small_pack(intake.small_pack_bytes());
    assert!(free(most), "nothing else was taken");
}

#[test]
fn pack_that_is_too_large_for_memory_goes_to_the_disk() {
    let (fixture, mut crafted) = (Fixture::new(), with_deltas());
    crafted.file(&noise(MAX_PACK_IN_MEMORY));
    let (intake, objects) = fixture.receive(&crafted.pack(), false);
    let objects = objects.unwrap();
    assert!(matches!(objects, Objects::Stored { .. }));
    assert_eq!(contents(&objects, &crafted), expected(&crafted));
    assert!(objects.packed_bytes() > MAX_PACK_IN_MEMORY);
    assert!((objects.packed_bytes()..MAX_PACK_IN_MEMORY + MIB).contains(&intake.disk_bytes()));
    assert_eq!((fixture.files(), intake.small_pack_bytes()), (1, 0));
    drop(objects);
    assert_eq!(fixture.files(), 0);
}

#[test]
fn small_pack_waits_for_memory_on_the_disk() {
    let (fixture, crafted) = (Fixture::new(), with_deltas());
    let mut others = fixture.memory.share();
    // There is memory for the pack, but not for its paths.
    others.try_grow(fixture.memory.most() - MIB).unwrap();
    let (intake, objects) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| fixture.receive(&crafted.pack(), false));
        while fixture.files() == 0 && !receiving.is_finished() {
            std::thread::yield_now();
        }
        drop(others);
        receiving.join().unwrap()
    });
    let objects = objects.unwrap();
    assert!(matches!(objects, Objects::Stored { .. }));
    assert_eq!(intake.small_pack_bytes(), 0);
    assert_eq!(contents(&objects, &crafted), expected(&crafted));
}

#[test]
fn damaged_small_pack_is_refused_as_a_large_one_is() {
    let fixture = Fixture::new();
    let pack = with_deltas().pack();
    let changed = |at: usize| {
        let mut pack = pack.clone();
        pack[at] ^= 1;
        pack
    };
    let mut lonely = Crafted::default();
    lonely.file(b"a file\n");
    lonely.objects[0].0 = gix::ObjectId::null(gix::hash::Kind::Sha1);
    lonely.longer(0, "longer", true);
    for (damaged, why) in [
        (changed(3), "the pack is damaged"),
        (changed(20), "the pack is damaged"),
        (changed(pack.len() - 1), ""),
        (pack[..pack.len() - 21].to_vec(), "the pack is damaged"),
        (pack[..pack.len() - 1].to_vec(), "its checksum is cut off"),
        (b"PACK\0\0\0\x02\0\0\0\0".to_vec(), "its checksum is cut off"),
        (lonely.pack(), ""),
    ] {
        let [held, stored] =
            [false, true].map(|is_stored| fixture.receive(&damaged, is_stored).1.unwrap_err());
        assert_eq!(held, stored);
        assert!(held.contains(why) && !held.is_empty(), "{held}");
    }
    assert_eq!(fixture.files(), 0);
}

#[test]
fn small_pack_of_large_objects_stays_within_the_limits() {
    let mut fixture = Fixture::new();
    let mut crafted = Crafted::default();
    crafted.file(&vec![0; 20 << 20]);
    let held = |fixture: &Fixture| fixture.receive(&crafted.pack(), false).1.map(drop);
    held(&fixture).unwrap();
    fixture.limits.object_bytes = 10 << 20;
    let error = held(&fixture).unwrap_err();
    assert!(error.contains("bytes of a file was reached"), "{error}");
    let mut fixture = Fixture::new();
    fixture.memory = ByteBudget::new(16 * MIB).tenant("a");
    let error = held(&fixture).unwrap_err();
    assert!(error.contains("the pack of 'u'"), "{error}");
    assert_eq!(fixture.files(), 0);
}

#[test]
fn fuzz_damaged_packs_are_the_same_in_memory_and_on_the_disk() {
    let fixture = Fixture::new();
    fuzz::run("packs", |random| {
        let mut crafted = Crafted::default();
        crafted.file(&random.bytes(0..300));
        for _ in 0..random.below(6) {
            match random.below(3) {
                0 => crafted.file(&random.bytes(0..300)),
                _ => {
                    let base = random.below(crafted.objects.len());
                    crafted.longer(base, "more", random.flag());
                }
            }
        }
        let mut pack = crafted.pack();
        let is_damaged = random.flag();
        if is_damaged {
            random.damage(&mut pack, 3);
        }
        random.note("pack", &pack);
        let [held, stored] = [false, true].map(|is_stored| {
            let (_, received) = fixture.receive(&pack, is_stored);
            received.map(|objects| contents(&objects, &crafted))
        });
        assert_eq!(held.is_ok(), stored.is_ok(), "{held:?} {stored:?}");
        assert!(is_damaged || held.is_ok(), "{held:?}");
        if let (Ok(held), Ok(stored)) = (held, stored) {
            assert_eq!(held, stored);
            assert!(is_damaged || held == expected(&crafted));
        }
    });
}
