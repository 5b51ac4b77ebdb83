//! Record of lost segments, for logs.

/// List of lost segments, kept on request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(Option<Box<Kept>>);

/// The number of the first byte and the length of each.
#[derive(Clone, Debug, Default)]
struct Kept(Vec<(u64, u32)>);

impl Losses {
    /// A segment is taken for lost.
    #[inline]
    pub fn add(&mut self, seq: u64, len: u32) {
        if let Some(kept) = &mut self.0 {
            kept.0.push((seq, len));
        }
    }
    /// Returns the losses since the last call, in order. The first call starts the list.
    pub fn take(&mut self) -> Vec<(u64, u32)> {
        std::mem::take(&mut self.0.get_or_insert_default().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_kept_from_the_first_call_on() {
        let mut losses = Losses::default();
        losses.add(0, 10);
        assert_eq!(losses.take(), []);
        losses.add(10, 10);
        losses.add(30, 10);
        assert_eq!(losses.take(), [(10, 10), (30, 10)]);
        assert_eq!(losses.take(), []);
    }
}
