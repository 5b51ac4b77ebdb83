//! Bulk transfers, as by FTP: each flow of the group transfers `size` bytes, or has no end,
//! starting at `start`. All parameters are keys of the group.

use aqmlab_core::{Component, Stream, params};

use super::Workload;
use crate::workload::app::App;

params! {
    /// Bulk transfers.
    pub struct BulkParams {
    }
}

impl Component for BulkParams {
    const NAME: &'static str = "bulk";
    const SUMMARY: &'static str = "Greedy flows, of the group's `size` or endless";
}

impl Workload for BulkParams {
    fn has_app(&self) -> bool {
        false
    }

    fn app(&self, _streams: &dyn Fn(&str) -> Stream) -> Option<Box<dyn App>> {
        None
    }
}
