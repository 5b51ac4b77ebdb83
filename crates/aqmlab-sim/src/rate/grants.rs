//! Transmission grants: times at which a link may send, with the number of bytes.

use std::sync::Arc;

use aqmlab_core::Time;

use super::files::{Cursor, Opportunities};
use super::radio::{Lte, Wifi};

/// Sequence of grants, with the current position.
#[derive(Clone)]
pub(crate) enum Grants {
    Trace { trace: Arc<Opportunities>, bytes: u64, cursor: Cursor },
    Lte(Box<Lte>),
    Wifi(Box<Wifi>),
}

impl Grants {
    /// Returns the next grant; `None` if none is left before the end of the run.
    pub fn peek(&self) -> Option<(Time, u64)> {
        match self {
            Grants::Trace { trace, bytes, cursor } => {
                let (time, count) = cursor.peek(trace);
                Some((time, count.saturating_mul(*bytes)))
            }
            Grants::Lte(lte) => lte.next,
            Grants::Wifi(wifi) => wifi.next,
        }
    }

    /// Skips one grant.
    pub fn advance(&mut self) {
        match self {
            Grants::Trace { trace, cursor, .. } => cursor.advance(trace),
            Grants::Lte(lte) => lte.advance(),
            Grants::Wifi(wifi) => wifi.advance(),
        }
    }

    /// Skips all grants before `time`, which were unused.
    pub fn seek(&mut self, time: Time) {
        if let Grants::Trace { trace, cursor, .. } = self {
            cursor.seek(trace, time);
            return;
        }
        while self.peek().is_some_and(|(next, _)| next < time) {
            self.advance();
        }
    }
}

/// Total of the granted bytes.
#[derive(Clone)]
pub(crate) struct GrantsMeter {
    grants: Grants,
    sum: u64,
}

impl GrantsMeter {
    pub fn new(grants: Grants) -> Self {
        GrantsMeter { grants, sum: 0 }
    }
    /// Returns the bytes granted before `time`. Times must not decrease.
    pub fn before(&mut self, time: Time) -> u64 {
        if let Grants::Trace { trace, bytes, .. } = &self.grants {
            return trace.before(time).saturating_mul(*bytes);
        }
        while let Some((at, bytes)) = self.grants.peek()
            && at < time
        {
            self.sum = self.sum.saturating_add(bytes);
            self.grants.advance();
        }
        self.sum
    }
}
