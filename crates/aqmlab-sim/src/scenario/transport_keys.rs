//! Transport keys that may change during a run, of all flows of a group or of one.

use std::sync::Arc;

use aqmlab_core::{Error, ParamType, Params, Result, Table, Value, choices};
use aqmlab_tcp::TcpParams;

use super::read::update_transport;
use super::{FlowGroup, Outside};

choices! {
    /// Transport key that may change.
    pub enum TransportKey {
        /// Congestion control.
        CongestionControl = "congestion_control",
        /// Pacing of controls without a rate of their own.
        Pacing = "pacing",
        /// Pacing rate in slow start.
        PacingSlowStart = "pacing_slow_start",
        /// Pacing rate from half of the slow start threshold on.
        PacingAvoidance = "pacing_avoidance",
        /// Explicit congestion notification.
        Ecn = "ecn",
        /// ECN codepoint of new data.
        EcnCodepoint = "ecn_codepoint",
    }
}

/// Transport of a group of flows, or of one of them, after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportChange {
    /// Index of the group.
    pub group: u32,
    /// Index of the only flow of the group that changes.
    pub member: Option<u32>,
    /// Transport after the change.
    pub transport: Arc<TcpParams>,
    /// True if the transport was different before.
    pub is_other: bool,
}

impl TransportKey {
    /// Returns a transport of a group's flows with another value of this key, or of a key below it.
    pub(super) fn with_value(
        self,
        group: &FlowGroup,
        before: &TcpParams,
        below: Option<&str>,
        value: &Value,
        outside: Outside<'_>,
    ) -> Result<TcpParams> {
        if !group.endpoint.is_tcp() {
            return Err(Error::new("only flows of TCP have a transport that can change"));
        }
        let mut after = before.clone();
        match (self, below) {
            (TransportKey::CongestionControl, Some(below)) => {
                let mut table = Table::new();
                table.set_key(below, value.clone())?;
                let value = Value::Table(table);
                let control = after.congestion_control.updated_with(&value, outside.controls);
                let control = control.map_err(|error| error.at(self.to_text()).at("transport"));
                after.congestion_control = control?;
            }
            (_, Some(_)) => return Err(Error::new("this key has no keys of its own")),
            (_, None) => {
                let mut table = Table::new();
                table.insert(self.to_text(), value.clone());
                update_transport(&mut after, &table, outside)?;
            }
        }
        before.check_change(&after)?;
        Ok(after)
    }

    /// Copies the value from another transport.
    pub(crate) fn take(self, transport: &mut TcpParams, from: &TcpParams) {
        match self {
            TransportKey::CongestionControl => {
                transport.congestion_control = from.congestion_control.clone();
            }
            TransportKey::Pacing => transport.pacing = from.pacing,
            TransportKey::PacingSlowStart => transport.pacing_slow_start = from.pacing_slow_start,
            TransportKey::PacingAvoidance => transport.pacing_avoidance = from.pacing_avoidance,
            TransportKey::Ecn => transport.ecn = from.ecn,
            TransportKey::EcnCodepoint => transport.ecn_codepoint = from.ecn_codepoint,
        }
    }

    /// Returns the value as a scenario states it.
    pub(super) fn value(self, transport: &TcpParams) -> Value {
        let key = self.to_text();
        let entries = transport.entries();
        entries.into_iter().find(|(name, _)| *name == key).expect("a key of the transport").1
    }
}
