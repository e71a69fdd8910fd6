//! Watches that last: pauses after errors, and new lists now and then.

use std::time::Duration;

use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use kube::runtime::watcher::{self, Event};
use tokio::time::{Instant, sleep, sleep_until};

use crate::backoff::Backoff;

/// Pauses after errors of a watch: 0.8 s to 30 s.
pub const WATCH_RETRIES: Backoff = Backoff {
    min: Duration::from_millis(800),
    max: Duration::from_secs(30),
};

/// Interval of listing all objects again, in case a watch missed something.
pub const RELIST: Duration = Duration::from_secs(120);

/// Counts the errors of a watch in a row.
#[derive(Debug)]
pub struct WatchFailures {
    retries: Backoff,
    failures: u32,
    last_pause_ends: Option<Instant>,
}

impl WatchFailures {
    #[must_use]
    pub const fn new(retries: Backoff) -> Self {
        Self {
            retries,
            failures: 0,
            last_pause_ends: None,
        }
    }

    /// Ends the row of errors with an event of a working watch. Each attempt to list begins with [`Event::Init`], and may fail after some pages.
    pub const fn event<K>(&mut self, event: &Event<K>) {
        match event {
            Event::Init | Event::InitApply(_) => {}
            Event::InitDone | Event::Apply(_) | Event::Delete(_) => self.failures = 0,
        }
    }

    /// Counts an error, and returns the pause after it. A watch without errors for longer than the longest pause begins a new row.
    pub fn error(&mut self) -> Duration {
        let now = Instant::now();
        if (self.last_pause_ends).is_some_and(|ends| now > ends + self.retries.max) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.retries.delay(self.failures, fastrand::f64());
        self.last_pause_ends = Some(now + pause);
        pause
    }

    /// Returns true if the last error was the first of its row.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        self.failures == 1
    }
}

/// Delays the attempt of a watch after each error. Unlike the backoff of `kube`, the delay grows although each attempt to list begins with an event.
pub fn rest_after_errors<K: Send + 'static>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
) -> BoxStream<'static, Result<Event<K>, watcher::Error>> {
    let start = (events.boxed(), WatchFailures::new(WATCH_RETRIES), None);
    stream::unfold(start, |(mut events, mut failures, pause)| async move {
        if let Some(pause) = pause {
            sleep(pause).await;
        }
        let event = events.next().await?;
        let pause = match &event {
            Ok(event) => {
                failures.event(event);
                None
            }
            Err(_) => Some(failures.error()),
        };
        Some((event, (events, failures, pause)))
    })
    .boxed()
}

/// Makes a new watch, which lists again, after each period: the last one may have missed something. A watch that still lists goes on.
pub fn relisted<K: Send + 'static, S>(
    make: impl FnMut() -> S + Send + 'static,
    period: Duration,
) -> BoxStream<'static, Result<Event<K>, watcher::Error>>
where
    S: Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
{
    stream::repeat_with(make)
        .flat_map(move |events| until_listed(events, period))
        .boxed()
}

/// Ends a watch after a period, as soon as it has listed all objects.
fn until_listed<K: Send + 'static>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
    period: Duration,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static {
    let start = (events.boxed(), Instant::now() + period, true);
    stream::unfold(start, |(mut events, end, is_listing)| async move {
        let event = tokio::select! {
            biased;
            () = sleep_until(end), if !is_listing => None,
            event = events.next() => event,
        };
        let event = event?;
        let is_listing = match &event {
            Ok(Event::Init | Event::InitApply(_)) => true,
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => false,
            Err(_) => is_listing,
        };
        Some((event, (events, end, is_listing)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Item = Result<Event<u8>, watcher::Error>;

    async fn seconds(events: Vec<Item>) -> f64 {
        let start = Instant::now();
        let mut events = rest_after_errors(stream::iter(events));
        while events.next().await.is_some() {}
        start.elapsed().as_secs_f64()
    }

    fn failure() -> Item {
        Err(watcher::Error::NoResourceVersion)
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_although_each_attempt_begins_with_an_event() {
        let attempts = |half: Vec<u8>| -> Vec<Item> {
            let attempt = || {
                let listed = half.iter().map(|object| Ok(Event::InitApply(*object)));
                std::iter::once(Ok(Event::Init)).chain(listed).chain([failure()])
            };
            (0..8).flat_map(|_| attempt()).collect()
        };
        // 0.8 + 1.6 + ... + 25.6 + 2 x 30, three quarters of it at least.
        for half in [vec![], vec![1, 2]] {
            let took = seconds(attempts(half)).await;
            assert!((75.0..=111.0).contains(&took), "{took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn watch_is_made_again_after_its_period_but_not_while_it_lists() {
        let slow = |list: Duration| {
            stream::iter([Ok(Event::Init), Ok(Event::InitApply(1)), Ok(Event::InitDone)])
                .then(move |event: Item| async move {
                    if matches!(event, Ok(Event::InitDone)) {
                        sleep(list).await;
                    }
                    event
                })
                .chain(stream::pending())
        };
        let minute = Duration::from_secs(60);
        let start = Instant::now();
        let mut lists = [3 * minute, minute / 2].into_iter().cycle();
        let mut events = relisted(move || slow(lists.next().unwrap_or_default()), minute);
        let mut listed = Vec::new();
        while listed.len() < 4 {
            if matches!(events.next().await, Some(Ok(Event::InitDone))) {
                listed.push(start.elapsed().as_secs());
            }
        }
        assert_eq!(listed, [180, 210, 420, 450]);
    }

    #[tokio::test(start_paused = true)]
    async fn working_watch_begins_a_new_row() {
        let attempts = (0..8).flat_map(|_| [Ok(Event::Init), Ok(Event::InitDone), failure()]);
        let took = seconds(attempts.collect()).await;
        assert!((4.7..=6.5).contains(&took), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn quiet_watch_begins_a_new_row() {
        let mut failures = WatchFailures::new(WATCH_RETRIES);
        for _ in 0..9 {
            sleep(failures.error()).await;
        }
        assert!(!failures.is_first());
        sleep(WATCH_RETRIES.max * 2).await;
        failures.error();
        assert!(failures.is_first());
    }
}
