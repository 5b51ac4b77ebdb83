//! Grants at work: when a link may send, and how many bytes.

use std::sync::Arc;

use aqmlab_core::{Stream, Time};

use super::files::{Cursor, Opportunities};
use super::radio::{Lte, LteParams, Wifi, WifiParams};

/// A sequence of grants under way.
#[derive(Clone)]
pub(crate) enum Grants {
    Trace { trace: Arc<Opportunities>, bytes: u64, cursor: Cursor },
    Lte(Box<Lte>),
    Wifi(Box<Wifi>),
}

impl Grants {
    pub fn trace(trace: Arc<Opportunities>, bytes: u64) -> Self {
        Grants::Trace { trace, bytes, cursor: Cursor::start() }
    }
    pub fn lte(params: &LteParams, stream: Stream) -> Self {
        Grants::Lte(Box::new(Lte::new(params, stream)))
    }
    pub fn wifi(params: &WifiParams, stream: Stream) -> Self {
        Grants::Wifi(Box::new(Wifi::new(params, stream)))
    }

    /// The next grant.
    pub fn peek(&self) -> (Time, u64) {
        match self {
            Grants::Trace { trace, bytes, cursor } => {
                let (time, count) = cursor.peek(trace);
                (time, count.saturating_mul(*bytes))
            }
            Grants::Lte(lte) => lte.next,
            Grants::Wifi(wifi) => wifi.next,
        }
    }

    /// Passes over one.
    pub fn advance(&mut self) {
        match self {
            Grants::Trace { trace, cursor, .. } => cursor.advance(trace),
            Grants::Lte(lte) => lte.advance(),
            Grants::Wifi(wifi) => wifi.advance(),
        }
    }

    /// Passes over all before `time`: nothing was there to be sent.
    pub fn seek(&mut self, time: Time) {
        if let Grants::Trace { trace, cursor, .. } = self {
            cursor.seek(trace, time);
            return;
        }
        while self.peek().0 < time {
            self.advance();
        }
    }
}

/// The bytes that grants offer, summed up.
#[derive(Clone)]
pub(crate) struct GrantsMeter {
    grants: Grants,
    sum: u64,
}

impl GrantsMeter {
    pub fn new(grants: Grants) -> Self {
        GrantsMeter { grants, sum: 0 }
    }
    /// What is offered before `time`. Times must not go back.
    pub fn before(&mut self, time: Time) -> u64 {
        if let Grants::Trace { trace, bytes, .. } = &self.grants {
            return trace.before(time).saturating_mul(*bytes);
        }
        loop {
            let (at, bytes) = self.grants.peek();
            if at >= time {
                return self.sum;
            }
            self.sum += bytes;
            self.grants.advance();
        }
    }
}
