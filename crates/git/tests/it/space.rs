//! Memory and temporary files that a tenant's fetches have together.

use git::{Call, Error, Network, Reference, Remote, Snapshot};
use limits::ByteBudget;
use tempfile::TempDir;
use testkit::GitServer;

use super::{branch, call, own_network};

const MIB: u64 = 1 << 20;

pub(super) fn noise(mut state: u64, len: u64) -> Vec<u8> {
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(next).collect()
}

fn of_tenant() -> Call {
    Call {
        tenant: "a".to_owned(),
        ..call()
    }
}

fn fetch(network: &Network, remote: &Remote, call: &Call) -> Result<(Snapshot, TempDir), Error> {
    let main: Reference = branch("main");
    let dir = tempfile::tempdir().unwrap();
    let mut session = network.open(remote, call)?;
    let resolved = session.resolve(&main)?;
    let snapshot = session.fetch(&resolved, dir.path())?;
    snapshot.nodes()?;
    Ok((snapshot, dir))
}

#[test]
fn fetches_that_are_complete_give_back_the_memory_that_they_do_not_use() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("small").unwrap();
    repo.commit("first", &[("a", "a")]).unwrap();
    let (network, remote) = (own_network(), Remote::new(&repo.url()).unwrap());
    // Each takes 8 MiB for paths at first, of 144 MiB for a tenant.
    let kept = (0..24).map(|_| {
        let call = of_tenant();
        let fetched = fetch(&network, &remote, &call).unwrap();
        call.reservations.release_unused();
        fetched
    });
    assert_eq!(kept.collect::<Vec<_>>().len(), 24);
    let call = of_tenant();
    let kept = (0..24).map(|_| fetch(&network, &remote, &call).unwrap());
    assert_eq!(kept.collect::<Vec<_>>().len(), 24, "of one pass");
}

#[test]
fn packs_of_a_tenant_wait_for_the_space_of_each_other() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("large").unwrap();
    repo.change("first").write("a", noise(1, MIB)).push().unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    // Three MiB for the tenant: a pack of one takes two, and one afterwards.
    let network = own_network().with_disk(ByteBudget::new(4 * MIB));
    let all = network.disk("a").most();
    std::thread::scope(|scope| {
        let fetches: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| fetch(&network, &remote, &of_tenant()).map(drop)))
            .collect();
        for fetch in fetches {
            fetch.join().unwrap().unwrap();
        }
    });
    let mut rest = network.disk("a").share();
    rest.try_grow(all).expect("everything is given back");
    rest.shrink(all);

    let held = fetch(&network, &remote, &of_tenant()).unwrap();
    let mut second = network.disk("a").share();
    second.try_grow(all - 2 * MIB).unwrap();
    assert!(
        second.try_grow(MIB).is_err(),
        "the pack is counted as long as it is there"
    );
    drop((held, second));
    // The packs of a pass are counted together.
    let call = of_tenant();
    let first = fetch(&network, &remote, &call).unwrap();
    let refused = fetch(&network, &remote, &call).unwrap_err().to_string();
    assert!(
        refused.contains("it needs more than 3145728 bytes of temporary files"),
        "{refused}"
    );
    drop(first);
}

#[test]
fn packs_larger_than_the_space_of_a_tenant_are_refused_and_leave_nothing() {
    let server = GitServer::start().unwrap();
    let (large, small) = (server.repo("large").unwrap(), server.repo("small").unwrap());
    large.change("first").write("a", noise(2, MIB)).push().unwrap();
    small.commit("first", &[("a", "a")]).unwrap();
    let network = own_network().with_disk(ByteBudget::new(2 * MIB));
    let all = network.disk("a").most();
    let call = of_tenant();
    let remote = Remote::new(&large.url()).unwrap();
    let refused = fetch(&network, &remote, &call).unwrap_err().to_string();
    assert!(
        refused.contains("/large.git': it needs more than 1572864 bytes of temporary files"),
        "{refused}"
    );
    // The rest of the pass has the space of the failed fetch.
    let small = fetch(&network, &Remote::new(&small.url()).unwrap(), &call).unwrap();
    let mut rest = network.disk("a").share();
    rest.try_grow(all - MIB / 4).unwrap();
    drop((rest, small, call));
    network.disk("a").share().try_grow(all).unwrap();
}
