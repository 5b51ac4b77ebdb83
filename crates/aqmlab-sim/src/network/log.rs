//! Growing list whose copies share the entries before the last few.

use std::sync::Arc;

/// Number of entries in a shared part.
pub(crate) const PART: usize = 1024;

/// List to which entries are appended. A copy costs the number of parts, not of entries.
#[derive(Clone)]
pub(crate) struct Log<T> {
    full: Vec<Arc<Vec<T>>>,
    last: Vec<T>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log { full: Vec::new(), last: Vec::new() }
    }
}

impl<T: Clone> Log<T> {
    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, entry: T) {
        self.last.push(entry);
        if self.last.len() == PART {
            self.seal();
        }
    }

    #[cold]
    #[inline(never)]
    fn seal(&mut self) {
        let part = std::mem::replace(&mut self.last, Vec::with_capacity(PART));
        self.full.push(Arc::new(part));
    }

    /// Returns all entries, in order. Parts are freed one after another.
    pub fn into_vec(self) -> Vec<T> {
        let mut all = Vec::with_capacity(self.full.len() * PART + self.last.len());
        for part in self.full {
            match Arc::try_unwrap(part) {
                Ok(part) => all.extend(part),
                Err(shared) => all.extend_from_slice(&shared),
            }
        }
        all.extend(self.last);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_their_past_and_differ_afterwards() {
        let mut log = Log::default();
        (0..5_000).for_each(|entry| log.push(entry));
        let mut copy = log.clone();
        assert!(Arc::ptr_eq(&log.full[3], &copy.full[3]) && copy.last.len() < PART);
        (5_000..9_000).for_each(|entry| log.push(entry));
        (0..4_000).for_each(|entry| copy.push(-entry));
        assert_eq!(log.into_vec(), (0..9_000).collect::<Vec<i32>>());
        let expected: Vec<i32> = (0..5_000).chain((0..4_000).map(|entry| -entry)).collect();
        assert_eq!(copy.into_vec(), expected);
    }
}
