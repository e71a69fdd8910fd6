//! The notification-controller: events in, webhooks and chat messages out.

use std::process::ExitCode;

use clap::Parser;
use notification_controller::Flags;
use runtime::EventsFlags;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let spec = runtime::Spec {
        name: notification_controller::NAME,
        lease: "notification-controller-leader-election",
        // The other controllers post to this one.
        events: EventsFlags::default(),
        standby_records: true,
    };
    runtime::start(spec, flags.common.clone(), |ctx| {
        notification_controller::run(ctx, flags)
    })
}
