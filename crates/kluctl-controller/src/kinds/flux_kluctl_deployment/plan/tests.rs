use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// Deployed, pruned and validated a moment ago, and nothing has changed.
fn quiet() -> Facts<'static> {
    Facts {
        hash: "a",
        last_deploy: Some(LastDeploy {
            hash: "a",
            failed: false,
        }),
        spec_changed: false,
        deploy_requested: false,
        reconcile_requested: false,
        recovering: false,
        dry_run: false,
        deploy_on_changes: true,
        deploy_period: Period::Every(HOUR),
        compare_on_request: true,
        since_compared: MINUTE,
        prune: true,
        last_prune_failed: false,
        validate: true,
        validate_period: Period::Every(HOUR),
        since_validated: Some(MINUTE),
        last_validate_failed: false,
        is_early: false,
    }
}

fn with(change: impl FnOnce(&mut Facts<'static>)) -> Decision {
    let mut facts = quiet();
    change(&mut facts);
    decide(&facts)
}

#[test]
fn work_decides_about_a_rendered_project() {
    let everything = |why| Decision {
        deploy: Deploy::Apply(why),
        prune: Prune::Run,
        validate: Validate::Run,
        is_early: false,
    };
    let nothing = Decision {
        deploy: Deploy::Nothing,
        prune: Prune::NotNow,
        validate: Validate::IfDeployed,
        is_early: false,
    };
    let compare = Decision {
        deploy: Deploy::Compare,
        prune: Prune::NotNow,
        validate: Validate::IfDeployed,
        is_early: false,
    };
    let early = Decision {
        is_early: true,
        ..nothing
    };
    let cases: Vec<(&str, Decision, Decision)> = vec![
        ("quiet", with(|_| {}), nothing),
        (
            "failed a moment ago",
            with(|f| {
                f.is_early = true;
                f.last_deploy = Some(LastDeploy {
                    hash: "h",
                    failed: true,
                });
                f.last_prune_failed = true;
                f.last_validate_failed = true;
            }),
            early,
        ),
        (
            "never deployed, failed a moment ago",
            with(|f| (f.is_early, f.last_deploy) = (true, None)),
            early,
        ),
        (
            "never deployed",
            with(|f| f.last_deploy = None),
            everything(ApplyReason::NeverDeployed),
        ),
        (
            "requested",
            with(|f| f.deploy_requested = true),
            everything(ApplyReason::Requested),
        ),
        (
            "spec changed",
            with(|f| f.spec_changed = true),
            everything(ApplyReason::SpecChanged),
        ),
        (
            "other objects",
            with(|f| f.hash = "b"),
            everything(ApplyReason::ObjectsChanged),
        ),
        (
            "failed",
            with(|f| {
                f.last_deploy = Some(LastDeploy {
                    hash: "a",
                    failed: true,
                });
            }),
            everything(ApplyReason::LastFailed),
        ),
        (
            "other objects, but not on changes",
            with(|f| {
                f.hash = "b";
                f.deploy_on_changes = false;
            }),
            nothing,
        ),
        (
            "other objects, not on changes, interval elapsed",
            with(|f| {
                f.hash = "b";
                f.deploy_on_changes = false;
                f.since_compared = HOUR;
            }),
            everything(ApplyReason::ObjectsChanged),
        ),
        (
            "other objects, not on changes, never by schedule",
            with(|f| {
                f.hash = "b";
                f.deploy_on_changes = false;
                f.deploy_period = Period::Never;
                f.since_compared = HOUR;
            }),
            nothing,
        ),
        ("interval elapsed", with(|f| f.since_compared = HOUR), compare),
        (
            "interval elapsed but for the jitter",
            with(|f| f.since_compared = HOUR.mul_f32(0.95)),
            compare,
        ),
        (
            "half of the interval elapsed",
            with(|f| f.since_compared = HOUR / 2),
            nothing,
        ),
        (
            "never by schedule",
            with(|f| {
                f.deploy_period = Period::Never;
                f.since_compared = HOUR * 1000;
            }),
            nothing,
        ),
        (
            "asked to reconcile",
            with(|f| f.reconcile_requested = true),
            Decision {
                prune: Prune::IfSeen,
                validate: Validate::Run,
                ..compare
            },
        ),
        (
            "asked to reconcile, deploys have an interval of their own",
            with(|f| {
                f.reconcile_requested = true;
                f.compare_on_request = false;
            }),
            Decision {
                validate: Validate::Run,
                ..nothing
            },
        ),
        (
            "after a failure that came before the deployment",
            with(|f| {
                f.recovering = true;
                f.deploy_period = Period::Never;
            }),
            Decision {
                prune: Prune::IfSeen,
                validate: Validate::Run,
                ..compare
            },
        ),
        (
            "prune failed",
            with(|f| f.last_prune_failed = true),
            Decision {
                prune: Prune::Run,
                ..nothing
            },
        ),
        (
            "prune is off",
            with(|f| {
                f.prune = false;
                f.hash = "b";
            }),
            Decision {
                prune: Prune::Disabled,
                ..everything(ApplyReason::ObjectsChanged)
            },
        ),
        (
            "dry run, interval elapsed",
            with(|f| {
                f.dry_run = true;
                f.since_compared = HOUR;
            }),
            Decision {
                validate: Validate::Disabled,
                ..nothing
            },
        ),
        (
            "dry run, other objects",
            with(|f| {
                f.dry_run = true;
                f.hash = "b";
            }),
            Decision {
                validate: Validate::Disabled,
                ..everything(ApplyReason::ObjectsChanged)
            },
        ),
        (
            "never validated",
            with(|f| f.since_validated = None),
            Decision {
                validate: Validate::Run,
                ..nothing
            },
        ),
        (
            "not ready",
            with(|f| f.last_validate_failed = true),
            Decision {
                validate: Validate::Run,
                ..nothing
            },
        ),
        (
            "validation due",
            with(|f| f.since_validated = Some(HOUR)),
            Decision {
                validate: Validate::Run,
                ..nothing
            },
        ),
        (
            "validation is off",
            with(|f| f.validate = false),
            Decision {
                validate: Validate::Disabled,
                ..nothing
            },
        ),
    ];
    for (name, got, want) in cases {
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn may_prune_needs_a_discriminator_of_one_owner() {
    let other = ["KluctlDeployment team-b/shop".to_owned()];
    assert_eq!(may_prune(None, &[]), Err(DiscriminatorError::Empty));
    assert_eq!(may_prune(Some(""), &other), Err(DiscriminatorError::Empty));
    assert_eq!(
        may_prune(Some("a b"), &[]),
        Err(DiscriminatorError::Invalid("a b".to_owned()))
    );
    let shared = may_prune(Some("shop-test"), &other).expect_err("shared");
    assert!(
        shared.to_string().contains("KluctlDeployment team-b/shop"),
        "{shared}"
    );
    assert_eq!(may_prune(Some("shop-test"), &[]), Ok(()));
}

#[test]
fn removal_keeps_objects_that_are_shared_or_not_to_be_deleted() {
    let other = ["team-b/shop".to_owned()];
    let labels = |value: &str| {
        BTreeMap::from([
            ("a".to_owned(), "1".to_owned()),
            ("b".to_owned(), value.to_owned()),
        ])
    };
    let (none, common, odd) = (BTreeMap::new(), labels("2"), labels(""));
    let base = RemovalFacts {
        suspended: false,
        delete: None,
        prune: true,
        selector: Selector::Discriminator("shop-test"),
        handed_over: false,
        sharers: &[],
    };
    let keep = Removal::Keep;
    let cases: Vec<(&str, RemovalFacts<'_>, Removal)> = vec![
        ("prune, delete absent", base.clone(), Removal::Delete),
        (
            "delete",
            RemovalFacts {
                delete: Some(true),
                prune: false,
                ..base.clone()
            },
            Removal::Delete,
        ),
        (
            "delete off, prune on",
            RemovalFacts {
                delete: Some(false),
                ..base.clone()
            },
            keep(KeepReason::NotAsked),
        ),
        (
            "neither",
            RemovalFacts {
                prune: false,
                ..base.clone()
            },
            keep(KeepReason::NotAsked),
        ),
        (
            "suspended",
            RemovalFacts {
                suspended: true,
                ..base.clone()
            },
            keep(KeepReason::Suspended),
        ),
        (
            "suspended, delete",
            RemovalFacts {
                suspended: true,
                delete: Some(true),
                ..base.clone()
            },
            keep(KeepReason::Suspended),
        ),
        (
            "handed over",
            RemovalFacts {
                handed_over: true,
                ..base.clone()
            },
            keep(KeepReason::HandedOver),
        ),
        (
            "handed over, delete",
            RemovalFacts {
                handed_over: true,
                delete: Some(true),
                ..base.clone()
            },
            keep(KeepReason::HandedOver),
        ),
        (
            "no discriminator",
            RemovalFacts {
                selector: Selector::without_discriminator(None),
                ..base.clone()
            },
            keep(KeepReason::NoDiscriminator),
        ),
        (
            "no common labels",
            RemovalFacts {
                selector: Selector::without_discriminator(Some(&none)),
                ..base.clone()
            },
            keep(KeepReason::NoDiscriminator),
        ),
        (
            "common labels",
            RemovalFacts {
                selector: Selector::without_discriminator(Some(&common)),
                ..base.clone()
            },
            Removal::Delete,
        ),
        (
            "invalid common labels",
            RemovalFacts {
                selector: Selector::without_discriminator(Some(&odd)),
                ..base.clone()
            },
            keep(KeepReason::InvalidCommonLabels),
        ),
        (
            "shared common labels",
            RemovalFacts {
                selector: Selector::without_discriminator(Some(&common)),
                sharers: &other,
                ..base.clone()
            },
            keep(KeepReason::SharedCommonLabels("team-b/shop".to_owned())),
        ),
        (
            "empty discriminator",
            RemovalFacts {
                selector: Selector::Discriminator(""),
                ..base.clone()
            },
            keep(KeepReason::NoDiscriminator),
        ),
        (
            "invalid discriminator",
            RemovalFacts {
                selector: Selector::Discriminator("a b"),
                ..base.clone()
            },
            keep(KeepReason::InvalidDiscriminator),
        ),
        (
            "shared",
            RemovalFacts {
                sharers: &other,
                ..base
            },
            keep(KeepReason::Shared("team-b/shop".to_owned())),
        ),
    ];
    for (name, facts, want) in cases {
        assert_eq!(removal(&facts), want, "{name}");
    }
}

#[test]
fn next_is_the_earliest_of_all_periods() {
    let seconds = Duration::from_secs;
    let base = Schedule {
        interval: HOUR,
        deploy: (Period::Every(HOUR), Duration::ZERO),
        validate: None,
        not_ready_for: None,
    };
    let cases = [
        ("all well", base, HOUR),
        (
            "deploy sooner",
            Schedule {
                deploy: (Period::Every(MINUTE), seconds(20)),
                ..base
            },
            seconds(40),
        ),
        (
            "deploy overdue",
            Schedule {
                deploy: (Period::Every(MINUTE), HOUR),
                ..base
            },
            seconds(1),
        ),
        (
            "never",
            Schedule {
                deploy: (Period::Never, HOUR * 9),
                ..base
            },
            HOUR,
        ),
        (
            "validate sooner",
            Schedule {
                validate: Some((Period::Every(MINUTE), seconds(10))),
                ..base
            },
            seconds(50),
        ),
        (
            "just deployed, not ready",
            Schedule {
                not_ready_for: Some(Duration::ZERO),
                ..base
            },
            seconds(1),
        ),
        (
            "not ready for a while",
            Schedule {
                not_ready_for: Some(seconds(20)),
                ..base
            },
            seconds(5),
        ),
        (
            "not ready for long",
            Schedule {
                not_ready_for: Some(HOUR),
                ..base
            },
            seconds(60),
        ),
        (
            "never longer than the interval",
            Schedule {
                interval: seconds(10),
                not_ready_for: Some(HOUR),
                ..base
            },
            seconds(10),
        ),
    ];
    for (name, schedule, want) in cases {
        assert_eq!(next(&schedule), want, "{name}");
    }
}
