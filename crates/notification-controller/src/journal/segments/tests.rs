use super::*;

fn files(dir: &Path) -> usize {
    fs::read_dir(dir).unwrap().count() - 1
}

fn open(dir: &Path) -> (Segments, Vec<(u64, Vec<u8>)>) {
    let (segments, live) = Segments::open(dir, <[u8]>::to_vec).unwrap();
    let live = live.into_iter().map(|live| (live.id, live.summary));
    (segments, live.collect())
}

#[test]
fn a_stuck_event_moves_and_segments_stay_few() {
    let dir = tempfile::tempdir().unwrap();
    let (mut segments, _) = open(dir.path());
    segments.write(&[(1, b"stuck".to_vec())], &[]).unwrap();
    segments
        .write(&[], &[Ended::Part(1, 5), Ended::Part(1, 6)])
        .unwrap();
    let large = vec![b'x'; 1024 * 1024];
    // It stays open while its segment is replaced.
    let mut read = OpenSegment::default();
    for id in 2..60 {
        segments.write(&[(id, large.clone())], &[]).unwrap();
        segments.write(&[], &[Ended::Event(id)]).unwrap();
        assert_eq!(
            segments.reader().read(1, &mut read).as_deref(),
            Some(&b"stuck"[..]),
            "{id}"
        );
    }
    assert!(files(dir.path()) <= 9, "{}", files(dir.path()));
    assert_eq!(segments.reader().read(2, &mut read), None);
    drop(segments);
    let (segments, live) = Segments::open(dir.path(), <[u8]>::to_vec).unwrap();
    assert_eq!(segments.next_id(), 60);
    let [live] = &live[..] else { panic!("{live:?}") };
    assert_eq!(
        (live.id, &live.summary[..], &live.parts[..]),
        (1, &b"stuck"[..], &[5, 6][..])
    );
}

#[test]
fn disk_is_bounded_by_twice_the_live_events() {
    let dir = tempfile::tempdir().unwrap();
    let (mut segments, _) = open(dir.path());
    let large = vec![b'x'; 512 * 1024];
    // Every eighth event stays: 20 MiB of 160.
    for id in 1..=320 {
        segments.write(&[(id, large.clone())], &[]).unwrap();
        if id % 8 > 0 {
            segments.write(&[], &[Ended::Event(id)]).unwrap();
        }
        let all: u64 = segments.segments.values().map(|segment| segment.length).sum();
        assert!(all <= MUCH.max(2 * segments.bytes()) + 2 * LENGTH, "{all} bytes");
    }
    drop(segments);
    let (segments, live) = open(dir.path());
    let kept: Vec<u64> = (1..=40).map(|number| number * 8).collect();
    assert_eq!(live.iter().map(|(id, _)| *id).collect::<Vec<_>>(), kept);
    let mut read = OpenSegment::default();
    for (id, _) in &live {
        assert_eq!(segments.reader().read(*id, &mut read).as_ref(), Some(&large));
    }
}

#[test]
fn torn_write_loses_nothing_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let (mut segments, _) = open(dir.path());
    segments
        .write(&[(1, b"a".to_vec()), (2, b"b".to_vec())], &[])
        .unwrap();
    segments.write(&[], &[Ended::Event(1)]).unwrap();
    let file = path(dir.path(), segments.newest);
    drop(segments);
    OpenOptions::new()
        .append(true)
        .open(&file)
        .unwrap()
        .write_all(&[9, 0, 0, 0, 7])
        .unwrap();
    let (mut segments, live) = open(dir.path());
    assert_eq!(live, [(2, b"b".to_vec())]);
    segments.write(&[(3, b"c".to_vec())], &[Ended::Event(2)]).unwrap();
    assert_eq!(files(dir.path()), 1);
    drop(segments);
    assert_eq!(open(dir.path()).1, [(3, b"c".to_vec())]);
}
