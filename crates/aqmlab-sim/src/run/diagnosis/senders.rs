//! Notes about the TCP senders of a group.

use aqmlab_aqm::Note;
use aqmlab_core::{Auto, Bytes, Limit, Span};
use aqmlab_tcp::params::{Codepoint, EcnMode, Stack};

use super::rounded;
use crate::endpoints::flow::Tcp;
use crate::scenario::FlowGroup;

/// Duration of a reordering gap, in time and round trips, after which it may remain open for ever.
const HOLE: Span = Span::from_secs(2);
const HOLE_ROUND_TRIPS: u64 = 4;

/// The receive window, not a queue, limited the rate.
pub(super) fn held_by_receiver<'a>(
    flows: impl Iterator<Item = &'a Tcp> + Clone,
    group: &FlowGroup,
) -> Option<Note> {
    if group.transport.receive_window == Auto::Set(Limit::Unlimited) {
        return None;
    }
    let held = flows.clone().filter(|flow| flow.is_held_by_receiver()).count();
    let window = flows.clone().next()?.receive_window();
    (held > 0).then(|| Note {
        id: "receive-window-limited",
        text: format!(
            "{held} of {} flows ended with a congestion window as large as the receive window of {}: \
             this window, not a queue, limited their rate. Raise `transport.receive_window`.",
            flows.count(),
            Bytes::new(window)
        ),
    })
}

/// A loss is repaired within a round trip, or a few round trips and a timeout.
pub(super) fn hole_left_open<'a>(
    flows: impl Iterator<Item = &'a Tcp> + Clone,
    stack: Stack,
) -> Option<Note> {
    let times = flows.clone().filter_map(|flow| flow.held_up(HOLE_ROUND_TRIPS));
    let times: Vec<Span> = times.filter(|time| *time > HOLE).collect();
    let longest = times.iter().max()?;
    let why = match stack {
        Stack::Rfc => "",
        _ => {
            " Linux detects the losses of an undone recovery only by a timeout, which reordering \
             postpones; with `transport.receive_window = auto`, as in Linux, it comes once the window \
             is full."
        }
    };
    Some(Note {
        id: "hole-left-open",
        text: format!(
            "{} of {} flows ended with a lost segment that was never retransmitted although data \
             kept arriving, for up to {}: their applications received no data in that time.{why}",
            times.len(),
            flows.count(),
            rounded(*longest)
        ),
    })
}

/// Linux negotiates ECN for these controls on every host (`TCP_CONG_NEEDS_ECN`), and L4S queues
/// classify by ECT(1) (RFC 9331, section 4.1).
pub(super) fn no_marks<'a>(
    mut flows: impl Iterator<Item = &'a Tcp>,
    group: &FlowGroup,
) -> Option<Note> {
    flows.next()?;
    let transport = &group.transport;
    let control = transport.congestion_control.name();
    let missing = match (control, transport.ecn, transport.ecn_codepoint) {
        ("dctcp", EcnMode::Off, _) => "`transport.ecn = dctcp`",
        ("prague", EcnMode::Off, _) => {
            "`transport.ecn = accurate` and `transport.ecn_codepoint = ect1`"
        }
        ("prague", _, Codepoint::Ect0) => "`transport.ecn_codepoint = ect1`",
        _ => return None,
    };
    Some(Note {
        id: "no-marks",
        text: match transport.ecn {
            EcnMode::Off => format!(
                "{control} without ECN gets no marks: it responds to losses alone. Set {missing}."
            ),
            _ => format!("L4S queues take packets with ECT(0) for classic ones. Set {missing}."),
        },
    })
}
