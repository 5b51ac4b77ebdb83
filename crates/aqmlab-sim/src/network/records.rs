//! Recording level `packets`: the fate of every packet, kept until the end of the run or passed to
//! a sink during it.

use std::sync::Arc;

use super::log::{Log, PART};
use super::probe::PacketRecord;

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
    kept: Log<PacketRecord>,
    /// Sink with the index of the link, and the records for it.
    sink: Option<(u32, Arc<dyn RecordSink>, Vec<PacketRecord>)>,
}

impl Records {
    /// Passes future records of the link with this index to a sink.
    pub fn give_to(&mut self, link: u32, sink: Arc<dyn RecordSink>) {
        self.sink = Some((link, sink, Vec::new()));
    }

    #[inline]
    pub fn push(&mut self, record: PacketRecord) {
        let Some((link, sink, waiting)) = &mut self.sink else { return self.kept.push(record) };
        waiting.push(record);
        if waiting.len() == PART {
            sink.take(*link, waiting);
            waiting.clear();
        }
    }

    /// Removes the records that no sink has received.
    pub fn take(&mut self) -> Vec<PacketRecord> {
        match &mut self.sink {
            Some((_, _, waiting)) => std::mem::take(waiting),
            None => std::mem::take(&mut self.kept).into_vec(),
        }
    }
}
