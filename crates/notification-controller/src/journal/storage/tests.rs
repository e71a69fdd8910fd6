use testkit::fuzz;

use super::*;

const FILE: &str = "journal.redb";

type Events = Vec<(u64, Vec<u8>)>;

fn open(dir: &Path) -> (Storage, Events) {
    let (storage, live) = Storage::open(dir, <[u8]>::to_vec).unwrap();
    let live = live.into_iter().map(|live| (live.id, live.summary));
    (storage, live.collect())
}

fn read(storage: &Storage, id: u64) -> Option<Vec<u8>> {
    let mut payload = None;
    storage
        .reader()
        .read([(id, ())].into_iter(), |(), read| payload = read);
    payload
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Reserves the bytes of events, and writes them. Returns `None` if they were refused.
fn write(storage: &mut Storage, adds: &[(u64, Vec<u8>)], ended: &[Ended]) -> Option<()> {
    let bytes = adds.iter().map(|(_, payload)| payload.len() as u64).sum();
    storage.reserved.fetch_add(bytes, Ordering::AcqRel);
    let written = matches!(storage.write(adds, ended), Ok(true));
    if !written {
        storage.reserved.fetch_sub(bytes, Ordering::AcqRel);
    }
    written.then_some(())
}

/// Writes a file with events of one and of several pieces, some of which have ended.
fn sample(dir: &Path) -> Events {
    let (mut storage, _) = open(dir);
    let events: Events = (1..=40)
        .map(|id| (id, vec![b'a' + id as u8; 60 * id as usize]))
        .collect();
    storage.write(&events, &[Ended::Delivery(3, 7)]).unwrap();
    let ended: Vec<_> = (1..=40).step_by(3).map(Ended::Event).collect();
    storage.write(&[], &ended).unwrap();
    events.into_iter().filter(|(id, _)| id % 3 != 1).collect()
}

#[test]
fn a_stuck_event_stays_in_a_small_file() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    write(&mut storage, &[(1, b"stuck".to_vec())], &[]).unwrap();
    write(&mut storage, &[], &[Ended::Delivery(1, 5), Ended::Delivery(1, 6)]).unwrap();
    let large = vec![b'x'; 1024 * 1024];
    for id in 2..60 {
        write(&mut storage, &[(id, large.clone())], &[]).unwrap();
        write(&mut storage, &[], &[Ended::Event(id)]).unwrap();
        assert_eq!(read(&storage, 1).as_deref(), Some(&b"stuck"[..]), "{id}");
    }
    assert!(file::size(dir.path()).unwrap() < 8 * 1024 * 1024);
    assert_eq!(read(&storage, 2), None);
    drop(storage);
    let (_storage, live) = Storage::open(dir.path(), <[u8]>::to_vec).unwrap();
    let [live] = &live[..] else { panic!("{live:?}") };
    assert_eq!(
        (live.id, &live.summary[..], &live.deliveries[..]),
        (1, &b"stuck"[..], &[5, 6][..])
    );
}

#[test]
fn ends_of_deliveries_go_with_their_event() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    let event = |id| (id, b"x".to_vec());
    write(&mut storage, &[event(1), event(2)], &[Ended::Delivery(1, 5)]).unwrap();
    write(
        &mut storage,
        &[],
        &[
            Ended::Delivery(2, 6),
            Ended::Event(1),
            Ended::Delivery(1, 7),
            Ended::Delivery(9, 8),
        ],
    )
    .unwrap();
    // An event with the same ID has none of them.
    write(&mut storage, &[event(1), event(9)], &[]).unwrap();
    drop(storage);
    let (_, live) = Storage::open(dir.path(), |_| ()).unwrap();
    let deliveries: Vec<_> = live
        .iter()
        .map(|live| (live.id, live.deliveries.as_slice()))
        .collect();
    assert_eq!(deliveries, [(1, &[][..]), (2, &[6]), (9, &[])]);
}

#[test]
fn disk_is_bounded_by_the_live_events() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    let large = vec![b'x'; 512 * 1024];
    let mut most = 0;
    // 48 MiB wait, then every eighth event stays.
    for id in 1..=96 {
        write(&mut storage, &[(id, large.clone())], &[]).unwrap();
        most = most.max(file::size(dir.path()).unwrap());
    }
    assert!(most < 64 * 1024 * 1024, "{most} bytes");
    let ended: Vec<_> = (1..=96).filter(|id| id % 8 > 0).map(Ended::Event).collect();
    for ended in &ended {
        write(&mut storage, &[], &[*ended]).unwrap();
    }
    let size = file::size(dir.path()).unwrap();
    assert!(size <= SMALL, "{size} bytes");
    assert_eq!(
        storage.reserved().load(Ordering::Acquire),
        12 * large.len() as u64
    );
    drop(storage);
    let (storage, live) = open(dir.path());
    let kept: Vec<u64> = (1..=12).map(|number| number * 8).collect();
    assert_eq!(live.iter().map(|(id, _)| *id).collect::<Vec<_>>(), kept);
    for (id, _) in &live {
        assert_eq!(read(&storage, *id).as_ref(), Some(&large));
    }
}

#[test]
fn file_over_its_limit_takes_ends_but_no_events() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    let event = |id| (id, vec![b'x'; 1000]);
    write(&mut storage, &(1..=4).map(event).collect::<Vec<_>>(), &[]).unwrap();
    write(&mut storage, &[], &[Ended::Delivery(1, 5)]).unwrap();
    storage.limit = file::size(dir.path()).unwrap() - 1;
    let ended = [Ended::Event(2), Ended::Delivery(1, 6), Ended::Delivery(3, 7)];
    assert_eq!(write(&mut storage, &[event(5)], &ended), None);
    assert_eq!((read(&storage, 2), read(&storage, 5)), (None, None));
    assert_eq!(
        (storage.events(), storage.reserved().load(Ordering::Acquire)),
        (3, 3000)
    );
    assert_eq!(write(&mut storage, &[], &[Ended::Event(1)]), None);
    assert_eq!(storage.unwritten, []);
    storage.limit = LARGE;
    write(&mut storage, &[event(6)], &[Ended::Delivery(4, 8)]).unwrap();
    drop(storage);
    let (_, live) = Storage::open(dir.path(), <[u8]>::len).unwrap();
    let live: Vec<_> = live
        .iter()
        .map(|live| (live.id, live.summary, live.deliveries.as_slice()))
        .collect();
    // A delivery whose end was left out is repeated.
    assert_eq!(live, [(3, 1000, &[][..]), (4, 1000, &[8]), (6, 1000, &[])]);
}

#[test]
fn closed_storage_opens_again_without_the_refused_events() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    write(&mut storage, &[(1, b"a".to_vec()), (2, b"bb".to_vec())], &[]).unwrap();
    // A commit that failed, but has reached the disk.
    storage.unwritten = vec![Ended::Event(2), Ended::Event(8)];
    storage.totals = Totals { events: 1, bytes: 1 };
    storage.reserved.store(1, Ordering::Release);
    close(storage.database.take());
    storage.reopen().unwrap();
    assert_eq!(storage.unwritten, [Ended::Event(2)]);
    assert_eq!(storage.reserved().load(Ordering::Acquire), 3);
    write(&mut storage, &[(3, b"ccc".to_vec())], &[]).unwrap();
    assert_eq!(storage.reserved().load(Ordering::Acquire), 4);
    drop(storage);
    let (_, live) = open(dir.path());
    assert_eq!(live, [(1, b"a".to_vec()), (3, b"ccc".to_vec())]);
}

#[test]
fn reads_wait_until_the_storage_is_open_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    write(&mut storage, &[(1, b"a".to_vec())], &[]).unwrap();
    close(storage.database.take());
    let reader = storage.reader();
    let reading = std::thread::spawn(move || {
        let mut payload = None;
        reader.read([(1, ())].into_iter(), |(), read| payload = read);
        payload
    });
    storage.reopen().unwrap();
    assert_eq!(reading.join().unwrap().as_deref(), Some(&b"a"[..]));
}

#[test]
fn file_that_shrinks_under_an_open_storage_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (mut storage, _) = open(dir.path());
    let event = |id| (id, vec![b'x'; 100_000]);
    write(&mut storage, &(1..100).map(event).collect::<Vec<_>>(), &[]).unwrap();
    let file = File::options().write(true).open(dir.path().join(FILE)).unwrap();
    file.set_len(0).unwrap();
    let refused =
        (100..110).filter(|id| write(&mut storage, &[event(*id)], &[Ended::Event(id - 50)]).is_none());
    assert!(refused.count() < 10);
    drop(storage);
    let (storage, live) = open(dir.path());
    let bytes: usize = live.iter().map(|(_, payload)| payload.len()).sum();
    assert_eq!(storage.reserved().load(Ordering::Acquire), bytes as u64);
    assert!(live.iter().all(|(id, payload)| *payload == event(*id).1));
}

#[test]
fn foreign_file_is_set_aside_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let other = dir.path().join("other");
    let database = Database::create(&other).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: redb::TableDefinition<'_, &str, u64> = redb::TableDefinition::new("events");
    transaction.open_table(table).unwrap().insert("a", 1).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let foreign = [
        fs::read(&other).unwrap(),
        b"kind: List\n".repeat(1000),
        vec![0; 200_000],
        b"x".to_vec(),
    ];
    fs::remove_file(other).unwrap();
    for bytes in foreign {
        fs::write(&path, &bytes).unwrap();
        let (mut storage, live) = open(dir.path());
        assert_eq!(live, []);
        write(&mut storage, &[(1, b"a".to_vec())], &[]).unwrap();
        assert_eq!(files(dir.path()), [FILE, "journal.redb.damaged", "lock"]);
        let aside = fs::read(dir.path().join("journal.redb.damaged")).unwrap();
        assert!(aside == bytes || bytes.starts_with(b"redb"));
    }
}

#[test]
fn fuzz_damaged_journals_open_with_whole_events_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let events = sample(dir.path());
    let whole = fs::read(dir.path().join(FILE)).unwrap();
    let mut kept = 0;
    fuzz::run("journal", |random| {
        let mut bytes = whole.clone();
        match random.below(4) {
            0 => bytes.truncate(random.below(whole.len())),
            1 => {
                // The header and the roots are small, and matter most.
                for _ in 0..random.within(1..4) {
                    bytes[random.below(512)] ^= 1 << random.below(8);
                }
            }
            2 => {
                let page = random.below(whole.len() / 4096) * 4096;
                bytes[page..page + 4096].fill(random.below(256) as u8);
            }
            _ => random.damage(&mut bytes, 4),
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), bytes).unwrap();
        let (mut storage, live) = open(dir.path());
        for event in &live {
            assert!(events.contains(event) || event.0 % 3 == 1, "{}", event.0);
            assert_eq!(read(&storage, event.0).as_ref(), Some(&event.1));
        }
        kept += usize::from(live.len() == events.len());
        write(&mut storage, &[(50, b"new".to_vec())], &[]).unwrap();
        drop(storage);
        assert_eq!(open(dir.path()).1.last(), Some(&(50, b"new".to_vec())));
    });
    assert!(kept > 0, "damage of unused pages loses nothing");
}
