//! Every recorded case of the reference implementations, replayed.

mod archive;
mod closed_loop;
mod queues;
mod receivers;
mod senders;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use aqmlab_conformance::senders::Case;

/// Recorded connections that come with the package.
const CONNECTIONS: usize = 124;

fn connections() -> Vec<Case> {
    const PACKED: &[u8] =
        include_bytes!("../../../../python/aqmlab/conformance/recorded/senders.xz");
    let mut packed = Vec::new();
    lzma_rs::xz_decompress(&mut &*PACKED, &mut packed).expect("the archive can be read");
    let (mut rest, mut cases) = (&*packed, Vec::new());
    while !rest.is_empty() {
        cases.push(Case::unpack(&mut rest).expect("the archive holds recordings"));
    }
    assert_eq!(cases.len(), CONNECTIONS);
    cases
}

fn named<'a>(cases: &'a [Case], name: &str) -> &'a Case {
    cases.iter().find(|case| case.name == name).expect(name)
}

/// Calls `each` with every number below `count`, on all processors; returns the results in order.
/// The threads have the name of the test.
fn on_all_processors<R: Send>(count: usize, each: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let numbers = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < count);
    let work =
        || std::iter::from_fn(numbers).map(|number| (number, each(number))).collect::<Vec<_>>();
    let start = |_| thread::Builder::new().name(thread::current().name().unwrap_or("").into());
    let mut results = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let builders = (0..threads).map(start);
        let workers: Vec<_> = builders
            .map(|builder| builder.spawn_scoped(scope, work).expect("a thread starts"))
            .collect();
        let results = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        results.flatten().collect::<Vec<_>>()
    });
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
