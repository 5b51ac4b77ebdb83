//! Recording level `packets`: the fate of every packet, kept until the end of the run or passed to
//! a sink during it.

use std::sync::Arc;

use super::probe::PacketRecord;

/// Number of records of a link kept in memory before a sink receives them.
const WAITING: usize = 1024;

/// Receives records during a run.
pub trait RecordSink: Send + Sync {
    /// Receives the next records of a link, by its index. Records contain flow numbers; at the end,
    /// [`RunResult::flow_rows`](crate::RunResult::flow_rows) maps them to rows.
    ///
    /// # Panics
    /// Panics if the records cannot be stored, which ends the run.
    fn take(&self, link: u32, records: &[PacketRecord]);
}

/// Records of one link.
#[derive(Clone, Default)]
pub(crate) struct Records {
    kept: Vec<PacketRecord>,
    sink: Option<(u32, Arc<dyn RecordSink>)>,
}

impl Records {
    /// Passes future records of the link with this index to a sink.
    pub fn give_to(&mut self, link: u32, sink: Arc<dyn RecordSink>) {
        self.sink = Some((link, sink));
    }

    #[inline]
    pub fn push(&mut self, record: PacketRecord) {
        self.kept.push(record);
        if self.kept.len() >= WAITING
            && let Some((link, sink)) = &self.sink
        {
            sink.take(*link, &self.kept);
            self.kept.clear();
        }
    }

    /// Returns the records that no sink has received.
    pub fn kept(&mut self) -> &mut Vec<PacketRecord> {
        &mut self.kept
    }
}
