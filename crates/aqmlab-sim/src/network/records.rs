//! Recording level `packets`: what became of every packet, kept until the end of the run or
//! given away while it goes on.

use std::sync::Arc;

use super::probe::PacketRecord;

/// Records of a link that wait to be given away: what a run keeps of each link in memory.
const WAITING: usize = 1024;

/// Takes records while a run goes on.
pub trait RecordSink: Send + Sync {
    /// Takes the next records of a link, by its index. Their flows are numbered by place:
    /// [`RunResult::flow_rows`](crate::RunResult::flow_rows) says at the end which row that is.
    ///
    /// # Panics
    /// If they cannot be taken, to end the run.
    fn take(&self, link: u32, records: &[PacketRecord]);
}

/// The records of one link.
#[derive(Default)]
pub(crate) struct Records {
    kept: Vec<PacketRecord>,
    sink: Option<(u32, Arc<dyn RecordSink>)>,
}

impl Records {
    /// Has a sink take them from now on, those of the link with this index.
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

    /// Those that no sink has taken.
    pub fn kept(&mut self) -> &mut Vec<PacketRecord> {
        &mut self.kept
    }
}
