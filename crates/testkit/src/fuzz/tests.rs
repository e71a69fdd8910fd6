use super::*;

const QUICK: Plan = Plan { time: None, seed: 0 };

#[test]
fn search_counts_its_cases() {
    let mut calls = 0;
    let (cases, failure) = search(&QUICK, "nothing", |_| calls += 1);
    assert_eq!((cases, failure), (CASES, None));
    assert_eq!(calls, CASES);
}

#[test]
fn search_names_seed_and_smallest_case_of_a_failure() {
    let long_list = |random: &mut Random| {
        let list = random.list(0..40, Random::int);
        random.note("list", &list);
        assert!(
            list.iter().filter(|number| **number > 9).count() < 2,
            "two large numbers"
        );
    };
    let (cases, failure) = search(&QUICK, "lists", long_list);
    let failure = failure.unwrap();
    assert!(
        failure.starts_with(&format!("fuzz lists: WEIR_FUZZ_SEED={} fails", cases - 1)),
        "{failure}"
    );
    assert!(failure.contains("list: [10, 10]"), "{failure}");
    assert!(failure.contains("two large numbers"), "{failure}");
    // The seed begins with that case.
    let plan = Plan {
        seed: cases - 1,
        ..QUICK
    };
    let (again, failed) = search(&plan, "lists", long_list);
    assert_eq!((again, failed.unwrap()), (1, failure));
}

#[test]
fn cases_depend_on_the_seed_only() {
    let texts = |seed| {
        let mut texts = Vec::new();
        search(&Plan { seed, ..QUICK }, "texts", |random| {
            texts.push(random.text(&["a", "b"], 0..9));
        });
        texts
    };
    assert_eq!(texts(1), texts(1));
    assert_eq!(texts(1)[5..9], texts(6)[..4]);
    assert_ne!(texts(1)[..4], texts(1000)[..4]);
}

#[test]
fn choices_reach_their_bounds_and_stay_within() {
    let mut seen = std::collections::BTreeSet::new();
    search(&QUICK, "bounds", |random| {
        let list = random.list(2..4, |random| random.within(3..6));
        assert!(matches!(list.len(), 2 | 3), "{list:?}");
        seen.extend(list);
        assert!(random.bytes(0..5).len() < 5 && random.float().is_finite());
        let (mut bytes, mut json) = (b"some bytes".to_vec(), random.json(&["k"]));
        random.damage(&mut bytes, 9);
        random.damage_json(&mut json, &["k"], 9);
    });
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
}

#[test]
fn search_ends_when_its_time_is_over() {
    let plan = Plan {
        time: Some(Duration::from_millis(50)),
        seed: 0,
    };
    let started = Instant::now();
    let (cases, failure) = search(&plan, "time", |_| std::thread::yield_now());
    assert!(failure.is_none() && cases > 0, "{cases}");
    assert!(started.elapsed() >= Duration::from_millis(50));
}

#[test]
fn cases_are_slow_if_they_are_slow_twice() {
    let slow = Duration::from_millis(50);
    let watch = Watch::start("slow", slow);
    for slow_runs in 0..3 {
        let mut left = slow_runs;
        let mut case = |_: &mut Random| {
            let started = Instant::now();
            while left > 0 && started.elapsed() <= slow {
                std::hint::spin_loop();
            }
            left = u32::saturating_sub(left, 1);
        };
        let failed = watched(&watch, 0, &mut case, &mut Random::seeded(0));
        assert_eq!(failed.is_some(), slow_runs == 2, "{slow_runs}: {failed:?}");
    }
}
