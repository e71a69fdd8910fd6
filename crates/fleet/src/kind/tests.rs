use super::*;

#[test]
fn words_name_one_kind_each_below_their_command() {
    let mut seen = Vec::new();
    for kind in ALL {
        for word in kind.words() {
            let key = (kind.family, word);
            let is_known = seen.contains(&(key, kind.kind));
            assert!(
                !seen
                    .iter()
                    .any(|(other, name)| *other == key && *name != kind.kind)
            );
            assert!(!is_known || kind.kind == "KluctlDeployment", "{word}");
            seen.push((key, kind.kind));
        }
    }
}

#[test]
fn kinds_are_found_by_name_and_by_word() {
    assert_eq!(Kind::find(group::SOURCE, "Bucket"), Some(&BUCKET));
    assert_eq!(Kind::find("", "Bucket"), None);
    assert_eq!(Kind::named("kluctldeployment").len(), 2);
    for (word, kind) in [
        ("ks", &KUSTOMIZATION),
        ("Kustomization", &KUSTOMIZATION),
        ("gitrepositories", &GIT_REPOSITORY),
        ("source git", &GIT_REPOSITORY),
        ("hr", &HELM_RELEASE),
        ("alert-provider", &PROVIDER),
    ] {
        assert_eq!(Kind::by_word(word), [kind], "{word}");
    }
    assert!(Kind::by_word("pod").is_empty());
}

#[test]
fn the_first_served_version_is_preferred() {
    let served = ["v1beta1", "v1beta2"];
    assert_eq!(
        KUSTOMIZATION.version(|version| served.contains(&version)),
        Some("v1beta2")
    );
    assert_eq!(KUSTOMIZATION.version(|version| version == "v9"), None);
}

#[test]
fn kinds_and_versions_agree_with_the_definitions() {
    for definition in api::crd::all() {
        let spec = definition.spec;
        let kind = Kind::find(&spec.group, &spec.names.kind).unwrap();
        assert_eq!(kind.plural, spec.names.plural);
        for served in spec.versions.iter().filter(|version| version.served) {
            assert!(
                kind.versions.contains(&&*served.name),
                "{} {}",
                kind.kind,
                served.name
            );
        }
    }
}
