//! The result of a pass for the queue and the metrics. Pure.

use std::time::Duration;

use api::{Class, Fault};

use crate::{
    crash_marks::PassEnd,
    metrics::Ending,
    reconciler::{Outcome, Requeue},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Interval(Duration),
    After(Duration),
    Retry,
    Again,
    /// On the next change only.
    Idle,
    /// Never: the object is gone.
    Gone,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) next: Next,
    pub(crate) ending: Option<Ending>,
}

pub(crate) const GONE: Report = Report {
    next: Next::Gone,
    ending: None,
};
pub(crate) const DONE: Report = Report {
    next: Next::Idle,
    ending: Some(Ending::Success),
};
pub(crate) const RETRY: Report = Report {
    next: Next::Retry,
    ending: Some(Ending::Error),
};
pub(crate) const AGAIN: Report = Report {
    next: Next::Again,
    ending: Some(Ending::Requeue),
};
/// The object was read in an older state than before.
pub(crate) const OUTDATED: Report = Report {
    next: Next::After(Duration::from_secs(2)),
    ending: Some(Ending::Error),
};
pub(crate) const CANCELLED: Report = Report {
    next: Next::Again,
    ending: None,
};

/// The lease is over: the rest is done by the next leader.
pub(crate) const NOT_LEADER: Report = Report {
    next: Next::Retry,
    ending: None,
};

impl Report {
    pub(crate) fn unchanged(interval: Duration) -> Report {
        Report {
            next: Next::Interval(interval),
            ending: Some(Ending::RequeueAfter),
        }
    }

    pub(crate) fn pass_end(self) -> PassEnd {
        match (self.next, self.ending) {
            (Next::Interval(_) | Next::Gone, _) | (Next::Idle, Some(_)) => PassEnd::Complete,
            (_, None) => PassEnd::Cut,
            _ => PassEnd::Partial,
        }
    }

    pub(crate) fn of<S>(outcome: &Outcome<S>) -> Report {
        let next = match outcome.requeue {
            Requeue::Interval(interval) => Next::Interval(interval),
            Requeue::After(delay) => Next::After(delay),
            Requeue::Retry => Next::Retry,
            Requeue::OnChange => Next::Idle,
        };
        let ending = match (&outcome.fault, next) {
            (
                Some(Fault {
                    class: Class::Stall, ..
                }),
                _,
            ) => Ending::Terminal,
            (
                Some(Fault {
                    class: Class::Wait(_),
                    ..
                }),
                _,
            ) => Ending::RequeueAfter,
            (Some(_), _) | (None, Next::Retry) => Ending::Error,
            (None, Next::Idle) => Ending::Success,
            (None, _) => Ending::RequeueAfter,
        };
        Report {
            next,
            ending: Some(ending),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::Reason;

    use super::*;

    fn outcome(requeue: Requeue, fault: Option<Fault>) -> Outcome<()> {
        Outcome {
            status: (),
            requeue,
            events: Vec::new(),
            fault,
        }
    }

    #[test]
    fn report_follows_requeue_and_class_of_the_fault() {
        let second = Duration::from_secs(1);
        let fault = |class| {
            Some(Fault {
                class,
                reason: Reason::Failed,
                message: "m".into(),
            })
        };
        for (requeue, fault, next, ending) in [
            (
                Requeue::Interval(second),
                None,
                Next::Interval(second),
                Ending::RequeueAfter,
            ),
            (Requeue::OnChange, None, Next::Idle, Ending::Success),
            (
                Requeue::OnChange,
                fault(Class::Stall),
                Next::Idle,
                Ending::Terminal,
            ),
            (
                Requeue::After(second),
                fault(Class::Wait(second)),
                Next::After(second),
                Ending::RequeueAfter,
            ),
            (Requeue::Retry, fault(Class::Retry), Next::Retry, Ending::Error),
            (
                Requeue::After(second),
                fault(Class::Retry),
                Next::After(second),
                Ending::Error,
            ),
        ] {
            let report = Report::of(&outcome(requeue, fault));
            assert_eq!((report.next, report.ending), (next, Some(ending)), "{requeue:?}");
        }
    }
}
